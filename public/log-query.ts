import { levelOf, type Level } from './log-levels.ts'

/**
 * What somebody looks for in the logs: `timeout` or a request id as text, in upper or lower case; `/time(d )?out/` as a
 * regular expression, `/…/i` in upper or lower case; `"/orders/"` as text all the same.
 */
export type Wanted = { q?: string, level?: readonly Level[] }
/** where each begins and ends */
export type FindHits = (text: string) => [number, number][]

/** No other flags: `/api/my` is a path. */
const PATTERN = /^\/(.+)\/(i?)$/
const QUOTED = /^"([^"]+)"$/
/** More marks would hide the text. */
const MAX_HITS = 50

/** @returns what it costs depends on who wrote it */
export function isPattern (q: string): boolean {
  return PATTERN.test(q)
}

/** @throws {SyntaxError} */
export function toPattern (q: string): RegExp {
  const [, source, flags] = PATTERN.exec(q) ?? []
  if (source !== undefined) return new RegExp(source, `g${flags}`)
  const [, quoted = q] = QUOTED.exec(q) ?? []
  return new RegExp(quoted.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'), 'gi')
}

/** @returns where the first match begins, -1: nowhere */
export function createLineFilter ({ q, level }: Wanted): (text: string, stream: 'stdout' | 'stderr') => number {
  const pattern = q === undefined ? null : toPattern(q)
  return (text, stream) => {
    if (level && !level.includes(levelOf(text, stream))) return -1
    if (!pattern) return 0
    pattern.lastIndex = 0
    return pattern.exec(text)?.index ?? -1
  }
}

export function createHits (q: string | undefined): FindHits {
  if (q === undefined) return () => []
  const pattern = toPattern(q)
  return (text) =>
    Array.from(text.matchAll(pattern)).filter(([hit]) => hit !== '').slice(0, MAX_HITS).map((
      { 0: hit, index }
    ) => [index, index + hit.length])
}
