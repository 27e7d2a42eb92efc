import { levelOf } from './log-levels.js'

/**
 * What somebody looks for in the logs: `timeout` or a request id as text, in upper or lower case; `/time(d )?out/` as a regular
 * expression, `/…/i` in upper or lower case; `"/orders/"` as text all the same.
 * @typedef {{ q?: string, level?: readonly import('./log-levels.js').Level[] }} Wanted
 * @typedef {(text: string) => [number, number][]} FindHits  where each begins and ends
 */

/** No other flags: `/api/my` is a path. */
const PATTERN = /^\/(.+)\/(i?)$/
const QUOTED = /^"([^"]+)"$/
/** More marks would hide the text. */
const MAX_HITS = 50

/** @param {string} q @returns {boolean} what it costs depends on who wrote it */
export function isPattern (q) {
  return PATTERN.test(q)
}

/** @param {string} q @returns {RegExp} @throws {SyntaxError} */
export function toPattern (q) {
  const [, source, flags] = PATTERN.exec(q) ?? []
  if (source !== undefined) return new RegExp(source, `g${flags}`)
  const [, quoted = q] = QUOTED.exec(q) ?? []
  return new RegExp(quoted.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'), 'gi')
}

/**
 * @param {Wanted} wanted
 * @returns {(text: string, stream: 'stdout' | 'stderr') => number} where the first match begins, -1: nowhere
 */
export function createLineFilter ({ q, level }) {
  const pattern = q === undefined ? null : toPattern(q)
  return (text, stream) => {
    if (level && !level.includes(levelOf(text, stream))) return -1
    if (!pattern) return 0
    pattern.lastIndex = 0
    return pattern.exec(text)?.index ?? -1
  }
}

/** @param {string | undefined} q @returns {FindHits} */
export function createHits (q) {
  if (q === undefined) return () => []
  const pattern = toPattern(q)
  return (text) => Array.from(text.matchAll(pattern)).filter(([hit]) => hit !== '').slice(0, MAX_HITS).map(({ 0: hit, index }) => [index, index + hit.length])
}
