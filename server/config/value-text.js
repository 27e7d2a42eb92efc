/**
 * Reads the value of an option as people type it: numbers, true, false and lists are JSON, anything else is a text.
 * @param {string} text @returns {unknown}
 */
export function valueFromText (text) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Writes a value as people type it. @param {unknown} value @returns {string} */
export function textOfValue (value) {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
