/**
 * Preferences that this browser keeps for all pages of this address.
 *
 *     <input type="checkbox" data-preference="keys">                   on or off
 *     <input type="checkbox" data-preference="notify" value="crash">   one of several
 *
 * @typedef {keyof typeof DEFAULTS} Preference
 */

const DEFAULTS = Object.freeze({ keys: 'on', times: 'local', notify: 'off', notified: '' })
const PREFIX = 'clusterdeck-'
/** Preferences of this page alone, if the browser stores nothing. @type {Partial<Record<Preference, string>>} */
const kept = {}

document.addEventListener('change', ({ target }) => {
  if (target instanceof HTMLInputElement) choosePreference(target)
})
// A preference was changed in another tab.
window.addEventListener('storage', ({ key }) => {
  const name = key?.startsWith(PREFIX) && key.slice(PREFIX.length)
  if (isPreference(name)) announceChange(name)
})

/** @param {Preference} name @returns {string} */
export function preference (name) {
  const usual = kept[name] ?? DEFAULTS[name]
  try {
    return localStorage.getItem(PREFIX + name) ?? usual
  } catch {
    return usual
  }
}

/** @param {Preference} name @param {string} value */
export function setPreference (name, value) {
  kept[name] = value
  try {
    localStorage.setItem(PREFIX + name, value)
  } catch {}
  announceChange(name)
}

/** @param {Preference} name @returns {string[]} what is on */
export function choicesOf (name) {
  return preference(name).split(' ').filter((choice) => choice !== 'off')
}

/** @param {Element} element with fields for preferences */
export function showPreferences (element) {
  /** @type {NodeListOf<HTMLInputElement>} */
  const fields = element.querySelectorAll('[data-preference]')
  for (const field of fields) {
    const { preference: name } = field.dataset
    if (isPreference(name)) field.checked = choicesOf(name).includes(field.value)
  }
}

/** @param {HTMLInputElement} field */
function choosePreference ({ dataset, value, checked }) {
  const { preference: name } = dataset
  if (!isPreference(name)) return
  const others = choicesOf(name).filter((choice) => choice !== value)
  setPreference(name, [...others, ...(checked ? [value] : [])].join(' ') || 'off')
}

/** @param {unknown} name @returns {name is Preference} */
function isPreference (name) {
  return typeof name === 'string' && Object.hasOwn(DEFAULTS, name)
}

/** @param {Preference} name */
function announceChange (name) {
  document.dispatchEvent(new CustomEvent('clusterdeck:preference', { detail: name }))
}
