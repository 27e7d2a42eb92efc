/**
 * How lines of the workers' output are shown. They are the app's, and anybody's who makes it log something, so nothing
 * in them is obeyed. Used by the server for the first paint and by the browser for what comes, so that both agree.
 */

/** A line may be as long as a worker likes; what a page holds of it has an end. */
export const MAX_SHOWN_CHARS = 4000

// ECMA-48: control sequences (colours among them), strings such as titles and links that have an end, and escapes of a
// few characters. What begins one of them is in no other, so a line of nothing but beginnings takes no longer than others.
// eslint-disable-next-line no-control-regex
const ESCAPES = /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d-\u009f])[^\u0007\u001b\u0090-\u009f]*(?:\u0007|\u001b\\|\u009c)|\u001b[ -/]*[0-~]/g
// Control characters, and those that turn round the direction in which what follows is read.
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g

/**
 * @param {string} text a line as it was written
 * @returns {{ text: string, cutChars: number }} without escape sequences, a space for each other control character but
 *   tabs; `cutChars`: how many characters of the line were left out at its end
 */
export function shownLine (text) {
  // Cut before it is looked at: what it costs to show a line must not depend on who wrote it.
  const part = text.length > MAX_SHOWN_CHARS ? wholeCharacters(text.slice(0, MAX_SHOWN_CHARS)) : text
  return { text: part.replace(ESCAPES, '').replace(CONTROLS, ' '), cutChars: text.length - part.length }
}

/** @param {string} text what is shown @param {string} wanted @returns {boolean} whether it is in there, in upper or lower case */
export function isMatch (text, wanted) {
  return wanted === '' || text.toLowerCase().includes(wanted.toLowerCase())
}

/** @param {number} n @returns {string} `12,345`: digits in groups, the same on the server and in every browser */
export function formatCount (n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** Half a surrogate pair at the end is no character. @param {string} text */
function wholeCharacters (text) {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text
}
