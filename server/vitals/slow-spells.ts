import { addSparse, BUCKETS, bucketOf, quantile } from '../../workers/histogram.ts'
import { MAX_ROUTES, OTHER_ROUTES } from '../../workers/protocol.ts'
import type { Report } from './report.ts'

/** `at`: its begin, wall ms; `slow`: took longer than the limit */
type Window = { at: number, seconds: number, requests: number, p50Ms: number, p99Ms: number, slow: number }
/** `route`: null: of all requests, as no routes are counted; `others`: routes that are slow as well */
export type Spell = { route: string | null, sinceMs: number, requests: number, p99Ms: number, usualP99Ms: number,
  limitMs: number, others: string[] }
/** `isUsualNow`: it has lasted so long that it is what is usual */
export type SpellEnd = { spell: Spell, untilMs: number, isUsualNow: boolean }

const SECOND_MS = 1000
/**
 * A window of a route ends once it is this old and has enough requests, or enough that took longer than the limit:
 * where nearly nothing is answered any more, there are few of them. One that gets neither is not judged.
 */
const WINDOW_S = 10
const LONGEST_WINDOW_S = 60
const LEAST_REQUESTS = 20
/** A p99 above the limit counts if so many requests took longer than it: fewer may be chance. */
const LEAST_SLOW = 5
/** What is usual is known from the windows of this time, once there are so many. */
const USUAL_MS = 60 * 60_000
const LEAST_WINDOWS = 30
/**
 * The limit: the median of their p99, by so much more that each of these is reached. A spread that some bad minutes
 * have made counts up to the highest factor only: after some of them the next is to be told as well.
 */
const FACTOR = 2
const SPREADS = 2
const HIGHEST_FACTOR = 4
const LEAST_MORE_MS = 50
/** So many windows in a row begin a spell of a route, and end it. */
const IN_A_ROW = 3
/** Answers that usually take longer are streams, downloads or long polls: how long these take says nothing. */
const STREAM_MS = 30_000
const LONGEST_SPELL_MS = 60 * 60_000
const MAX_OTHERS = 50

/**
 * Tells when requests are slower than usual for long enough: the p99 of a route against that of its last hour. Routes
 * are judged by themselves, so that it is no slow spell when slow ones are asked for more often. One spell is open at a
 * time: what blocks the event loop makes many routes slow.
 */
export function createSlowSpells (
  { onBegin, onEnd }: { onBegin: (spell: Spell) => void, onEnd: (end: SpellEnd) => void }
) {
  const routes: Map<string | null, Route> = new Map()
  let open: Spell | null = null

  return {
    /** `second`: since the epoch; `report`: checked */
    add (second: number, { routes: byRoute, latency }: Pick<Report, 'routes' | 'latency'>) {
      if (byRoute.length === 0) {
        // Without routes all requests are one; with routes a report of none has no requests either.
        if (latency.length > 0) routeOf(null).add(second, latency)
        return
      }
      for (const { route, latency: own } of byRoute) routeOf(route).add(second, own)
    },

    /** Judges the windows that are over. `second`: since the epoch. */
    turn (second: number) {
      for (const [name, route] of routes) {
        route.turn(second)
        if (route.isForgotten(second)) routes.delete(name)
      }
      if (open === null) begin()
      else if (second * SECOND_MS - open.sinceMs >= LONGEST_SPELL_MS) end(open, second, true)
      else if (![...routes.values()].some(({ isSlow }) => isSlow)) end(open, second, false)
    }
  }

  function routeOf (name: string | null) {
    const known = routes.has(name) || routes.size < MAX_ROUTES ? name : OTHER_ROUTES
    let route = routes.get(known)
    if (!route) routes.set(known, route = new Route())
    return route
  }

  function begin () {
    if (![...routes.values()].some(({ isSlow }) => isSlow)) return
    const [worst, ...others] = [...routes].flatMap(([name, route]) =>
      route.over.length > 0 ? [{ name, route, window: route.over[route.over.length - 1] }] : []
    ).sort((one, other) => moreOf(other) - moreOf(one))
    const { name, route, window: { requests, p99Ms } } = worst
    const sinceMs = Math.min(...[worst, ...others].map((each) => each.route.over[0].at))
    open = { route: name, sinceMs, requests, p99Ms, usualP99Ms: route.usual?.p99Ms ?? 0,
      limitMs: route.usual?.limitMs ?? 0, others: others.slice(0, MAX_OTHERS).map((each) => String(each.name)) }
    onBegin(open)
  }

  function end (spell: Spell, second: number, isUsualNow: boolean) {
    const untilMs = Math.max(spell.sinceMs, ...[...routes.values()].map(({ lastOverMs }) => lastOverMs))
    if (isUsualNow) { for (const route of routes.values()) route.learnAnew() }
    open = null
    onEnd({ spell, untilMs: isUsualNow ? second * SECOND_MS : untilMs, isUsualNow })
  }
}

/**
 * What is slow because another route blocks the event loop waits for a part of it: of the slowest one the median rises
 * most.
 */
function moreOf ({ route, window }: { route: Route, window: Window }) {
  return window.p50Ms - (route.usual?.p50Ms ?? 0) + (window.p99Ms - (route.usual?.p99Ms ?? 0)) / 1000
}

/** The requests of one route. */
class Route {
  isSlow = false
  /** The windows in a row that were over the limit. */
  over: Window[] = []
  /** The end of the last window over the limit while it was slow. */
  lastOverMs = 0
  /** null: not known yet */
  usual: { p50Ms: number, p99Ms: number, limitMs: number } | null = null
  /** of the last hour, oldest first, without those of slow spells */
  #windows: Window[] = []
  #counts = new Float64Array(BUCKETS)
  #requests = 0
  /** The second in which the window began; 0: there has been no request. */
  #since = 0
  #calm = 0

  /** `latency`: sparse */
  add (second: number, latency: readonly number[]) {
    if (this.#since === 0) this.#since = second
    addSparse(this.#counts, latency)
    for (let n = 1; n < latency.length; n += 2) this.#requests += latency[n]
  }

  turn (second: number) {
    const seconds = second - this.#since
    // The clock was set back.
    if (seconds < -LONGEST_WINDOW_S) this.#since = second
    if (this.#since === 0 || seconds < WINDOW_S) return
    if (this.#requests >= LEAST_REQUESTS || this.#slowRequests() >= LEAST_SLOW) this.#judge(seconds)
    else if (seconds < LONGEST_WINDOW_S) return
    else this.#settle()
    this.#counts.fill(0)
    this.#requests = 0
    this.#since = second
  }

  isForgotten (second: number) {
    return this.#requests === 0 && !this.isSlow && this.over.length === 0 &&
      (this.#windows.at(-1)?.at ?? 0) < second * SECOND_MS - USUAL_MS
  }

  learnAnew () {
    if (!this.isSlow) return
    this.#windows = []
    this.usual = null
    this.#settle()
  }

  #judge (seconds: number) {
    const window = this.#windowOf(seconds)
    this.#learn(window.at)
    if (this.#isOver(window)) {
      this.#calm = 0
      this.over.push(window)
      this.over.splice(0, this.over.length - IN_A_ROW)
      if (this.over.length === IN_A_ROW) this.isSlow = true
      if (this.isSlow) this.lastOverMs = window.at + seconds * SECOND_MS
      return
    }
    this.#calm++
    if (!this.isSlow || this.#calm === IN_A_ROW) this.#settle()
    this.#windows.push(window)
  }

  /** It is not slow any more, or was not for long enough: what was over the limit then is usual too. */
  #settle () {
    if (!this.isSlow) this.#windows.push(...this.over)
    this.isSlow = false
    this.over = []
    this.#calm = 0
  }

  #windowOf (seconds: number): Window {
    return { at: this.#since * SECOND_MS, seconds, requests: this.#requests, p50Ms: quantile(this.#counts, 0.5),
      p99Ms: quantile(this.#counts, 0.99), slow: this.#slowRequests() }
  }

  #slowRequests () {
    if (!this.usual) return 0
    let count = 0
    for (let index = bucketOf(this.usual.limitMs) + 1; index < BUCKETS; index++) count += this.#counts[index]
    return count
  }

  #isOver ({ p99Ms, slow }: Window) {
    return this.usual !== null && this.usual.p99Ms < STREAM_MS && p99Ms > this.usual.limitMs && slow >= LEAST_SLOW
  }

  /** Of the windows before this one. */
  #learn (at: number) {
    while (this.#windows.length > 0 && this.#windows[0].at < at - USUAL_MS) this.#windows.shift()
    if (this.#windows.length < LEAST_WINDOWS) {
      if (!this.isSlow) this.usual = null
      return
    }
    const sorted = this.#windows.map(({ p99Ms }) => p99Ms).sort((a, b) => a - b)
    const p99Ms = shareOf(sorted, 0.5)
    const spreadMs = Math.min(p99Ms + SPREADS * (shareOf(sorted, 0.95) - p99Ms), p99Ms * HIGHEST_FACTOR)
    const limitMs = Math.max(p99Ms * FACTOR, spreadMs, p99Ms + LEAST_MORE_MS)
    this.usual = { p50Ms: shareOf(this.#windows.map(({ p50Ms }) => p50Ms).sort((a, b) => a - b), 0.5), p99Ms, limitMs }
  }
}

function shareOf (sorted: number[], share: number) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}
