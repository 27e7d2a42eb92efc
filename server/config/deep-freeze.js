/**
 * Freezes data that is handed to many readers.
 * @template T @param {T} value plain data @returns {Readonly<T>}
 */
export function deepFreeze (value) {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(deepFreeze)
  return Object.freeze(value)
}
