/** @param {string} text @returns {boolean} whether it is no path, but where something is fetched from */
export function isAddress (text) {
  return /^[^/]*:/.test(text)
}
