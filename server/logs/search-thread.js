import os from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { liveFile, locateRange, sizeOf } from './log-files.js'
import { lineEnds, lineStartSync, readRangeSync, toLines, withoutLastEnd } from './reader.js'
import { readTimesSync } from './stamps.js'

/**
 * The search itself; see search.js. It goes from the newest line to older ones, always in the log whose next bytes are
 * the newest, and stops once it has enough or its time is spent.
 * @typedef {import('./search.js').Line} Line
 * @typedef {import('./search.js').Wanted} Wanted
 * @typedef {{ line: Line, end: number, key: number }} Match `end`: its last byte; `key`: no less than that of any older one of its log
 * @typedef {object} Place  what is still to be read of one log
 * @property {import('./log-files.js').Log} log
 * @property {import('./stamps.js').Times} times
 * @property {number} from
 * @property {number} to
 * @property {Match[]} found  newest first
 */

const CHUNK_BYTES = 1024 * 1024
/** What is read of one log to show what came after a time. */
const AFTER_BYTES = 256 * 1024
/** Of a line in an answer. */
const MAX_LINE_CHARS = 16 * 1024
/** What stands before a match that would not be seen otherwise. */
const CONTEXT_CHARS = 200
const MAX_FOUND_CHARS = 4 * 1024 * 1024

/** @type {Wanted & { folder: string, budgetMs: number }} */
const wanted = workerData
const { folder, lines, budgetMs } = wanted
const isWanted = createMatcher(wanted.q ?? '')
const deadline = performance.now() + budgetMs
let foundChars = 0

// On Linux that is this thread's alone: whoever searches is not to slow the app down.
if (process.platform === 'linux') os.setPriority(os.constants.priority.PRIORITY_LOW)
parentPort?.postMessage(wanted.around === undefined ? searchLogs(wanted, lines) : readAround(wanted.around))

/** @param {number} time @returns {import('./search.js').Found} */
function readAround (time) {
  const before = searchLogs({ ...wanted, until: time }, Math.ceil(lines / 2))
  const after = wanted.logs.flatMap((log) => linesFrom(log, time, Math.floor(lines / 2)))
  const next = after.sort((a, b) => a.key - b.key).slice(0, Math.floor(lines / 2))
  return { items: [...before.items, ...next.map(({ line }) => line)], next: before.next }
}

/** @param {Wanted} limits @param {number} count @returns {import('./search.js').Found} */
function searchLogs (limits, count) {
  const places = limits.logs.map((log) => placeIn(log, limits))
  while (!isSpent()) {
    const open = places.filter(({ from, to, found }) => to > from && found.length < count)
    if (open.length === 0) break
    const newest = open.reduce((best, place) => keyAt(place, place.to) > keyAt(best, best.to) ? place : best)
    const certain = places.reduce((sum, { found }) => sum + found.filter(({ key }) => key >= keyAt(newest, newest.to)).length, 0)
    if (certain >= count) break
    readBack(newest, count)
  }
  return answerOf(places, count)
}

function isSpent () {
  return performance.now() > deadline || foundChars > MAX_FOUND_CHARS
}

/** @param {import('./log-files.js').Log} log @param {Wanted} limits @returns {Place} */
function placeIn (log, { since, until, before }) {
  const times = readTimesSync(folder, log)
  const size = sizeOf(liveFile(folder, log)) ?? 0
  const first = locateRange(folder, log, { from: 0, to: size })[0]?.from ?? 0
  // A place in a log that was emptied since is behind its end.
  const end = Math.min(size, before?.find((place) => place.log.slot === log.slot && place.log.stream === log.stream)?.position ?? (before ? first : size))
  const to = until === undefined ? end : Math.min(end, lineStartSync(folder, log, times.sizeBefore(until)))
  const from = since === undefined ? first : Math.max(first, lineStartSync(folder, log, times.sizeBefore(since)))
  return { log, times, from, to, found: [] }
}

/** @param {Place} place @param {number} end */
function keyAt ({ times, found }, end) {
  return Math.min(found.at(-1)?.key ?? Infinity, times.orderOf(end))
}

/** Reads the next bytes before those that were read. @param {Place} place @param {number} count */
function readBack (place, count) {
  const from = Math.max(place.from, place.to - CHUNK_BYTES)
  const bytes = readRangeSync(folder, place.log, from, place.to)
  let start = place.to - bytes.length
  const firstEnd = bytes.indexOf(10) + 1
  // The first line begins before these bytes, unless it is longer than them.
  const skipped = from > place.from && firstEnd > 0 && firstEnd < bytes.length ? firstEnd : 0
  start += skipped
  const before = place.to
  place.to = bytes.length === 0 ? from : start
  const text = bytes.subarray(skipped)
  if (text.length === 0 || isWanted(text.toString()) < 0) return
  const all = toLines(withoutLastEnd(text))
  const ends = lineEnds(text, start)
  for (let index = all.length - 1; index >= 0; index--) {
    const at = isWanted(all[index])
    if (at < 0) continue
    takeMatch(place, all[index], at, ends[index] ?? before)
    if (place.found.length < count) continue
    place.to = ends[index - 1] ?? start
    return
  }
}

/** @param {Place} place @param {string} text @param {number} at where the match is @param {number} end */
function takeMatch (place, text, at, end) {
  const line = { ...place.log, text: excerptOf(text, at), arrivedAt: place.times.at(end) }
  foundChars += line.text.length
  place.found.push({ line, end, key: keyAt(place, end) })
}

/** @param {Place[]} places @param {number} count @returns {import('./search.js').Found} */
function answerOf (places, count) {
  const newest = places.toReversed().flatMap(({ found }) => found).sort((a, b) => b.key - a.key).slice(0, count)
  const isShown = new Set(newest)
  const next = places.map(({ log, from, to, found }) => {
    const left = found.find((match) => !isShown.has(match))
    return { log, position: left?.end ?? Math.max(from, to), isDone: !left && to <= from }
  })
  return { items: newest.reverse().map(({ line }) => line), next: next.every(({ isDone }) => isDone) ? null : next.map(({ log, position }) => ({ log, position })) }
}

/** What a log has from a time on. @param {import('./log-files.js').Log} log @param {number} time @param {number} count @returns {Match[]} oldest first */
function linesFrom (log, time, count) {
  const { times, from, to } = placeIn(log, { logs: [], lines: 0, since: time })
  const bytes = readRangeSync(folder, log, from, Math.min(to, from + AFTER_BYTES))
  if (bytes.length === 0) return []
  const ends = lineEnds(bytes, from)
  let key = 0
  return toLines(withoutLastEnd(bytes)).slice(0, count).map((text, index) => {
    key = Math.max(key, times.orderOf(ends[index]))
    return { line: { ...log, text: excerptOf(text, 0), arrivedAt: times.at(ends[index]) }, end: ends[index], key }
  })
}

/** @param {string} text @param {number} at */
function excerptOf (text, at) {
  const from = at < MAX_LINE_CHARS ? 0 : at - CONTEXT_CHARS
  return text.slice(from, from + MAX_LINE_CHARS)
}

/** @param {string} q @returns {(text: string) => number} where it is in there; -1: nowhere */
function createMatcher (q) {
  const folded = q.toLowerCase()
  return (text) => text.toLowerCase().indexOf(folded)
}
