import { readable } from '../../public/readable-text.js'

export { readable }

/**
 * @param {unknown} text
 * @param {number} maxChars
 * @returns {string} its first line with text, cut, with an ellipsis if there is more
 */
export function firstLine (text, maxChars) {
  const whole = readable(text).trim()
  const line = whole.split('\n', 1)[0].slice(0, maxChars).trimEnd()
  return line.length < whole.length ? `${line} …` : line
}
