import os from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { createLineFilter, isPattern, toPattern } from '../../public/log-query.js'
import { endOf, locateRange } from './log-files.js'
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
/** A line in an answer is cut after so many. */
const MAX_LINE_CHARS = 16 * 1024
/** What stands before a match that would not be seen otherwise. */
const CONTEXT_CHARS = 200
const MAX_FOUND_CHARS = 4 * 1024 * 1024

/** @type {Wanted & { folder: string, budgetMs: number }} */
const wanted = workerData
const { folder, lines, budgetMs } = wanted
const findIn = createLineFilter(wanted)
/** Rules out many lines at once. A regular expression has to see each line alone, as it may name its ends. */
const plainText = wanted.q === undefined || isPattern(wanted.q) ? null : toPattern(wanted.q)
const deadline = performance.now() + budgetMs
let foundChars = 0

// On Linux that is this thread's alone: whoever searches is not to slow the app down.
if (process.platform === 'linux') os.setPriority(os.constants.priority.PRIORITY_LOW)
parentPort?.postMessage(answer())

function answer () {
  const { around } = wanted
  if (around === undefined) return searchLogs(wanted, lines)
  return typeof around === 'number' ? readAround(around) : readAroundLine(around)
}

/** @param {number} time @returns {import('./search.js').Found} */
function readAround (time) {
  return joinSides(searchLogs({ ...wanted, until: time }, Math.ceil(lines / 2)), wanted.logs.flatMap((log) => linesFrom(placeIn(log, { since: time }))))
}

/**
 * Lines that arrived with this one count as after it, since nobody knows which of them was earlier.
 * @param {import('./search.js').Place} place @returns {import('./search.js').Found} nothing: the line is no longer kept
 */
function readAroundLine ({ log, position }) {
  const own = placeIn(log, {})
  const [end] = lineEnds(readRangeSync(folder, log, position, Math.min(own.to, position + AFTER_BYTES)), position)
  if (position < own.from || end === undefined) return { items: [], next: null }
  const time = own.times.orderOf(end)
  const others = wanted.logs.filter(({ slot, stream }) => slot !== log.slot || stream !== log.stream)
  const sides = others.map((each) => ({ before: placeIn(each, { until: time }), after: placeIn(each, { since: time }) }))
  const before = searchPlaces([{ ...own, to: position }, ...sides.map((side) => side.before)], Math.ceil(lines / 2))
  // Its own first, so that no other lines of that moment crowd it out.
  return joinSides(before, [{ ...own, from: position }, ...sides.map((side) => side.after)].flatMap(linesFrom))
}

/** @param {import('./search.js').Found} before @param {Match[]} after */
function joinSides (before, after) {
  const next = after.sort((a, b) => a.key - b.key).slice(0, Math.floor(lines / 2))
  return { items: [...before.items, ...next.map(({ line }) => line)], next: before.next }
}

/** @param {Wanted} limits @param {number} count */
function searchLogs (limits, count) {
  return searchPlaces(limits.logs.map((log) => placeIn(log, limits)), count)
}

/** @param {Place[]} places @param {number} count @returns {import('./search.js').Found} */
function searchPlaces (places, count) {
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

/** @param {import('./log-files.js').Log} log @param {Pick<Wanted, 'since' | 'until' | 'before'>} limits @returns {Place} */
function placeIn (log, { since, until, before }) {
  const times = readTimesSync(folder, log)
  const size = endOf(folder, log)
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
  const whole = bytes.subarray(skipped)
  if (whole.length === 0 || (plainText && whole.toString().search(plainText) < 0)) return
  const all = toLines(withoutLastEnd(whole))
  const ends = lineEnds(whole, start)
  for (let index = all.length - 1; index >= 0; index--) {
    if (isSpent()) {
      place.to = ends[index] ?? before
      return
    }
    const at = findIn(all[index], place.log.stream)
    if (at < 0) continue
    takeMatch(place, all[index], { at, start: ends[index - 1] ?? start, end: ends[index] ?? before })
    if (place.found.length < count) continue
    place.to = ends[index - 1] ?? start
    return
  }
}

/** @param {Place} place @param {string} text @param {{ at: number, start: number, end: number }} where `at`: of the match in the text */
function takeMatch (place, text, { at, start, end }) {
  const line = { ...place.log, text: excerptOf(text, at), position: start, arrivedAt: place.times.at(end) }
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

/** What a log has from a place on. @param {Place} place @returns {Match[]} oldest first */
function linesFrom ({ log, times, from, to }) {
  const bytes = readRangeSync(folder, log, from, Math.min(to, from + AFTER_BYTES))
  if (bytes.length === 0) return []
  const ends = lineEnds(bytes, from)
  let key = 0
  return toLines(withoutLastEnd(bytes)).slice(0, Math.floor(lines / 2)).map((text, index) => {
    key = Math.max(key, times.orderOf(ends[index]))
    return { line: { ...log, text: excerptOf(text, 0), position: ends[index - 1] ?? from, arrivedAt: times.at(ends[index]) }, end: ends[index], key }
  })
}

/** @param {string} text @param {number} at */
function excerptOf (text, at) {
  const from = at < MAX_LINE_CHARS ? 0 : at - CONTEXT_CHARS
  return text.slice(from, from + MAX_LINE_CHARS)
}
