import os from 'node:os'
import { parentPort, workerData } from 'node:worker_threads'
import { createLineFilter, isPattern, toPattern } from '../../public/log-query.ts'
import { endOf, locateRange, type Log } from './log-files.ts'
import { lineEnds, lineStartSync, readRangeSync, toLines, withoutLastEnd } from './reader.ts'
import { readTimesSync, type Times } from './stamps.ts'
import type { Found, Line, Wanted } from './search.ts'

/**
 * The search itself; see search.ts. It goes from the newest line to older ones, always in the log whose next bytes are
 * the newest, and stops once it has enough or its time is spent.
 */
/** `end`: its last byte; `key`: no less than that of any older one of its log */
type Match = { line: Line, end: number, key: number }
/** what is still to be read of one log */
type Place = {
  log: Log,
  times: Times,
  from: number,
  to: number,
  /** newest first */
  found: Match[]
}

const CHUNK_BYTES = 1024 * 1024
/** What is read of one log to show what came after a time. */
const AFTER_BYTES = 256 * 1024
/** A line in an answer is cut after so many. */
const MAX_LINE_CHARS = 16 * 1024
/** What stands before a match that would not be seen otherwise. */
const CONTEXT_CHARS = 200
const MAX_FOUND_CHARS = 4 * 1024 * 1024

const wanted: Wanted & { folder: string, budgetMs: number } = workerData
const { folder, lines, budgetMs } = wanted
const findIn = createLineFilter(wanted)
/** Rules out many lines at once. A regular expression has to see each line alone, as it may name its ends. */
const plainText = wanted.q === undefined || isPattern(wanted.q) ? null : toPattern(wanted.q)
const deadline = performance.now() + budgetMs
let foundChars = 0
/** A thread that had no CPU meanwhile looks at one line all the same, so that whoever asks again gets on. */
let hasBegun = false

// On Linux a priority is that of one thread. This thread gets a third of the CPU that an app gets on a busy machine, so
// that it slows the app little, and still finds something there.
if (process.platform === 'linux') os.setPriority(5)
parentPort?.postMessage(answer())

function answer () {
  const { around } = wanted
  if (around === undefined) return searchLogs(wanted, lines)
  return typeof around === 'number' ? readAround(around) : readAroundLine(around)
}

function readAround (time: number): Found {
  return joinSides(searchLogs({ ...wanted, until: time }, Math.ceil(lines / 2)),
    wanted.logs.flatMap((log) => linesFrom(placeIn(log, { since: time }))))
}

/**
 * Lines that arrived with this one count as after it, since nobody knows which of them was earlier.
 * @returns nothing: the line is no longer kept
 */
function readAroundLine ({ log, position }: import('./search.ts').Place): Found {
  const own = placeIn(log, {})
  const [end] = lineEnds(readRangeSync(folder, log, position, Math.min(own.to, position + AFTER_BYTES)), position)
  if (position < own.from || end === undefined) return { items: [], next: null }
  const time = own.times.orderOf(end)
  const others = wanted.logs.filter(({ slot, stream }) => slot !== log.slot || stream !== log.stream)
  const sides = others.map((each) => ({ before: placeIn(each, { until: time }),
    after: placeIn(each, { since: time }) })
  )
  const before = searchPlaces([{ ...own, to: position }, ...sides.map((side) => side.before)], Math.ceil(lines / 2))
  // Its own first, so that no other lines of that moment crowd it out.
  return joinSides(before, [{ ...own, from: position }, ...sides.map((side) => side.after)].flatMap(linesFrom))
}

function joinSides (before: Found, after: Match[]) {
  const next = after.sort((a, b) => a.key - b.key).slice(0, Math.floor(lines / 2))
  return { items: [...before.items, ...next.map(({ line }) => line)], next: before.next }
}

function searchLogs (limits: Wanted, count: number) {
  return searchPlaces(limits.logs.map((log) => placeIn(log, limits)), count)
}

function searchPlaces (places: Place[], count: number): Found {
  while (!isSpent()) {
    const open = places.filter(({ from, to, found }) => to > from && found.length < count)
    if (open.length === 0) break
    const newest = open.reduce((best, place) => keyAt(place, place.to) > keyAt(best, best.to) ? place : best)
    if (certainMatches(places).length >= count) break
    readBack(newest, count)
    hasBegun = true
  }
  return answerOf(places, count)
}

function isSpent () {
  return hasBegun && (performance.now() > deadline || foundChars > MAX_FOUND_CHARS)
}

function placeIn (log: Log, { since, until, before }: Pick<Wanted, 'since' | 'until' | 'before'>): Place {
  const times = readTimesSync(folder, log)
  const size = endOf(folder, log)
  const first = locateRange(folder, log, { from: 0, to: size })[0]?.from ?? 0
  // A place in a log that was emptied since is behind its end.
  const end = Math.min(size,
    before?.find((place) => place.log.slot === log.slot && place.log.stream === log.stream)?.position ??
      (before ? first : size))
  const to = until === undefined ? end : Math.min(end, lineStartSync(folder, log, times.sizeBefore(until)))
  const from = since === undefined ? first : Math.max(first, lineStartSync(folder, log, times.sizeBefore(since)))
  return { log, times, from, to, found: [] }
}

function keyAt ({ times, found }: Place, end: number) {
  return Math.min(found.at(-1)?.key ?? Infinity, times.orderOf(end))
}

function readBack (place: Place, count: number) {
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
    hasBegun = true
    if (at < 0) continue
    takeMatch(place, all[index], { at, start: ends[index - 1] ?? start, end: ends[index] ?? before })
    if (place.found.length < count) continue
    place.to = ends[index - 1] ?? start
    return
  }
}

/** `at`: of the match in the text */
function takeMatch (place: Place, text: string, { at, start, end }: { at: number, start: number, end: number }) {
  const line = { ...place.log, text: excerptOf(text, at), position: start, arrivedAt: place.times.at(end) }
  foundChars += line.text.length
  place.found.push({ line, end, key: keyAt(place, end) })
}

/** @returns matches that no line still to be read is newer than; the others are left for the next answer */
function certainMatches (places: Place[]): Match[] {
  const unread = places.filter(({ from, to }) => to > from)
  const newestUnread = Math.max(...unread.map((place) => keyAt(place, place.to)))
  return places.toReversed().flatMap(({ found }) => found.filter(({ key }) => key >= newestUnread))
}

function answerOf (places: Place[], count: number): Found {
  const newest = certainMatches(places).sort((a, b) => b.key - a.key).slice(0, count)
  const isShown = new Set(newest)
  const next = places.map(({ log, from, to, found }) => {
    const left = found.find((match) => !isShown.has(match))
    return { log, position: left?.end ?? Math.max(from, to), isDone: !left && to <= from }
  })
  return { items: newest.reverse().map(({ line }) => line),
    next: next.every(({ isDone }) => isDone) ? null : next.map(({ log, position }) => ({ log, position })) }
}

/** What a log has from a place on. @returns oldest first */
function linesFrom ({ log, times, from, to }: Place): Match[] {
  const bytes = readRangeSync(folder, log, from, Math.min(to, from + AFTER_BYTES))
  if (bytes.length === 0) return []
  const ends = lineEnds(bytes, from)
  let key = 0
  return toLines(withoutLastEnd(bytes)).slice(0, Math.floor(lines / 2)).map((text, index) => {
    key = Math.max(key, times.orderOf(ends[index]))
    return {
      line: { ...log, text: excerptOf(text, 0), position: ends[index - 1] ?? from, arrivedAt: times.at(ends[index]) },
      end: ends[index],
      key
    }
  })
}

function excerptOf (text: string, at: number) {
  const from = at < MAX_LINE_CHARS ? 0 : at - CONTEXT_CHARS
  return text.slice(from, from + MAX_LINE_CHARS)
}
