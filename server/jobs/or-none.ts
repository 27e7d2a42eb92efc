/** Reads something from the history, on which no job depends. Returns null: the history cannot be read. */
export function orNone<T> (read: () => T): T | null {
  try {
    return read()
  } catch {
    return null
  }
}
