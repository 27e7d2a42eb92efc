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
  if (target instanceof HTMLInputElement && target.dataset.preference) choosePreference(target)
})
// A preference was changed in another tab.
window.addEventListener('storage', ({ key }) => {
  if (key?.startsWith(PREFIX)) announceChange(/** @type {Preference} */ (key.slice(PREFIX.length)))
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
  for (const each of element.querySelectorAll('[data-preference]')) {
    const field = /** @type {HTMLInputElement} */ (each)
    field.checked = choicesOf(/** @type {Preference} */ (field.dataset.preference)).includes(field.value)
  }
}

/** @param {HTMLInputElement} field */
function choosePreference ({ dataset, value, checked }) {
  const name = /** @type {Preference} */ (dataset.preference)
  const others = choicesOf(name).filter((choice) => choice !== value)
  setPreference(name, [...others, ...(checked ? [value] : [])].join(' ') || 'off')
}

/** @param {Preference} name */
function announceChange (name) {
  document.dispatchEvent(new CustomEvent('clusterdeck:preference', { detail: name }))
}
