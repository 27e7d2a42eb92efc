/**
 * The value that somebody has typed for an option: numbers, true, false and lists as JSON has them; anything else is a text.
 * @param {string} text @returns {unknown}
 */
export function valueFromText (text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** How it is typed. @param {unknown} value @returns {string} */
export function textOfValue (value) {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
