/**
 * What a check has found. `ok`: nothing is wrong; `unknown`: it cannot be known here.
 * @typedef {typeof SEVERITIES[number]} Severity
 *
 * A line that mends it. `command`: for a shell; `option`: for the config file; `flags`: for the command that starts the app; `code`: for
 * the app itself, in words.
 * @typedef {{ how: 'command' | 'option' | 'flags' | 'code', text: string, where: string | null }} Mend
 *
 * @typedef {object} Finding
 * @property {string} id  of the check
 * @property {Severity} severity
 * @property {string} title  what it is
 * @property {string} why  it matters, in one sentence
 * @property {Mend[]} mend  the lines to paste, in this order; none where nothing has to be done
 *
 * @typedef {(facts: import('./facts.js').Facts) => Finding[]} Check
 */

/** The worst comes first. */
export const SEVERITIES = Object.freeze(/** @type {const} */ (['error', 'warning', 'unknown', 'info', 'ok']))
/** Severities that need somebody. @type {readonly Severity[]} */
export const PROBLEMS = Object.freeze(['error', 'warning'])

/** @param {string} id @param {Severity} severity @param {string} title @param {string} [why] @param {Mend[]} [mend] @returns {Finding} */
export function finding (id, severity, title, why = '', mend = []) {
  return { id, severity, title, why, mend }
}

/** @param {string} text @param {string | null} [where] the folder to be in @returns {Mend} */
export function command (text, where = null) {
  return { how: 'command', text, where }
}

/** @param {{ isRoot: boolean }} user @param {string} text @returns {string} the line by which this user runs it as root */
export function asRoot ({ isRoot }, text) {
  return isRoot ? text : `sudo ${text}`
}

/** @param {string} text @returns {Mend} */
export function inCode (text) {
  return { how: 'code', text, where: null }
}
