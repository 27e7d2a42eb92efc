/**
 * Reads something from the history, on which no job depends.
 * @template T @param {() => T} read @returns {T | null} null: the history cannot be read
 */
export function orNone (read) {
  try {
    return read()
  } catch {
    return null
  }
}
