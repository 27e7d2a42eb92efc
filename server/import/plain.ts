const MAX_DEPTH = 50

/**
 * Takes the data of what a program exports. An object with toJSON() is converted by it.
 * @returns `dropped`: the places of functions and others that are no data
 * @throws {Error} for a circle, or as deep an object
 */
export function toPlain (exported: unknown): { value: unknown, dropped: string[] } {
  const dropped: string[] = []
  return { value: plainValue(exported, ''), dropped }

  function plainValue (value: unknown, place: string, depth: number = 0): unknown {
    if (depth > MAX_DEPTH) throw new Error(`objects within objects, more than ${MAX_DEPTH} deep, or a circle`)
    if (typeof value === 'function' || typeof value === 'symbol')
      return noteDropped(`${place || 'what it exports'} is a ${typeof value}`)
    if (typeof value === 'bigint' || (typeof value === 'number' && !Number.isFinite(value))) return String(value)
    if (typeof value !== 'object' || value === null) return value
    if ('toJSON' in value && typeof value.toJSON === 'function') return plainValue(value.toJSON(), place, depth + 1)
    if (Array.isArray(value))
      return value.map((each, index) => plainValue(each, `${place}[${index}]`, depth + 1) ?? null)
    const fields = Object.entries(value).map((
      [key, each]
    ) => [key, plainValue(each, place === '' ? key : `${place}.${key}`, depth + 1)])
    return Object.fromEntries(fields.filter(([, each]) => each !== undefined))
  }

  function noteDropped (what: string): undefined {
    dropped.push(what)
  }
}
