/**
 * Finds the known name that was most likely meant by a mistyped one. Returns null if none is near enough to be helpful.
 */
export function nearestName (name: string, known: Iterable<string>): string | null {
  const given = normalizeName(name)
  // A third of the letters may be wrong. In a short word two may be, as in two letters swapped, but never all.
  const tolerated = Math.min(Math.max(2, Math.floor(given.length / 3)), given.length - 1)
  let best = null
  let bestDistance = tolerated + 1
  for (const candidate of known) {
    const distance = editDistance(given, normalizeName(candidate))
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Says so at the end of an error message. @returns for example ` (did you mean "--workers"?)`, or nothing */
export function didYouMean (name: string, known: Iterable<string>): string {
  const match = nearestName(name, known)
  return match === null ? '' : ` (did you mean "${match}"?)`
}

/** `admin_port`, `adminPort` and `--admin-port` differ in spelling, not in meaning. */
function normalizeName (name: string) {
  return name.toLowerCase().replace(/[-_.]/g, '').slice(0, 64)
}

/** Levenshtein's distance: letters to insert, delete or replace. */
function editDistance (from: string, to: string) {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row++) {
    const current = [row]
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1] + (from[row - 1] === to[column - 1] ? 0 : 1)
      current[column] = Math.min(replaced, previous[column] + 1, current[column - 1] + 1)
    }
    previous = current
  }
  return previous[to.length]
}
