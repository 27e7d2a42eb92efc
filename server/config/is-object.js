/** @param {unknown} value @returns {value is Record<string, unknown>} no list, and not null */
export function isObject (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
