/**
 * Preferences that this browser keeps for all pages of this address.
 *
 * <input type="checkbox" data-preference="keys">                   on or off
 * <input type="checkbox" data-preference="notify" value="crash">   one of several
 */
export type Preference = keyof typeof DEFAULTS

const DEFAULTS = Object.freeze({ keys: 'on', times: 'local', notify: 'off', notified: '', 'logs-wrap': 'on' })
const PREFIX = 'clusterdeck-'
/** Preferences of this page alone, if the browser stores nothing. */
const kept: Partial<Record<Preference, string>> = {}

document.addEventListener('change', ({ target }) => {
  if (target instanceof HTMLInputElement) choosePreference(target)
})
// A preference was changed in another tab.
window.addEventListener('storage', ({ key }) => {
  const name = key?.startsWith(PREFIX) && key.slice(PREFIX.length)
  if (isPreference(name)) announceChange(name)
})

export function preference (name: Preference): string {
  const usual = kept[name] ?? DEFAULTS[name]
  try {
    return localStorage.getItem(PREFIX + name) ?? usual
  } catch {
    return usual
  }
}

export function setPreference (name: Preference, value: string) {
  kept[name] = value
  try {
    localStorage.setItem(PREFIX + name, value)
  } catch {}
  announceChange(name)
}

export function choicesOf (name: Preference): string[] {
  return preference(name).split(' ').filter((choice) => choice !== 'off')
}

/** `element`: with fields for preferences */
export function showPreferences (element: Element) {
  const fields: NodeListOf<HTMLInputElement> = element.querySelectorAll('[data-preference]')
  for (const field of fields) {
    const { preference: name } = field.dataset
    if (isPreference(name)) field.checked = choicesOf(name).includes(field.value)
  }
}

function choosePreference ({ dataset, value, checked }: HTMLInputElement) {
  const { preference: name } = dataset
  if (!isPreference(name)) return
  const others = choicesOf(name).filter((choice) => choice !== value)
  setPreference(name, [...others, ...(checked ? [value] : [])].join(' ') || 'off')
}

function isPreference (name: unknown): name is Preference {
  return typeof name === 'string' && Object.hasOwn(DEFAULTS, name)
}

function announceChange (name: Preference) {
  document.dispatchEvent(new CustomEvent('clusterdeck:preference', { detail: name }))
}
