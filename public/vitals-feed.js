import { BASE } from './base.js'
import { CHART_COLUMNS } from './chart-columns.js'
import { isLive, liveRange, spanParams } from './chart-range.js'
import { serverTime } from './ticks.js'
import { createSeries, pointLength } from './vitals-series.js'

/**
 * The vitals of the cluster, or of one of its slots, over a range of time, kept up to date while the page is visible.
 * @typedef {import('./vitals-series.js').Vitals} Vitals
 * @typedef {import('./vitals-series.js').Range} Range
 * @typedef {{ since: string, until?: string, step?: string, pointMs?: string }} Query
 * @typedef {import('./live-events.d.ts').ChartValues} Pushed  as the live page gets it
 * @typedef {'known' | 'failed'} FeedState  `failed`: the last request was not answered
 */

/** Values that the server pushes are requested if none came for this long. */
const SILENCE_MS = 5000
const MIN_POLL_MS = 2000
/** @type {Readonly<Record<string, number>>} */
const STEPS_S = Object.freeze({ '1s': 1, '10s': 10, '1m': 60 })
/** Several polls a step, so that a step is shown soon after its end. */
const POLLS_PER_STEP = 5

/**
 * @param {object} parts
 * @param {readonly string[]} parts.columns
 * @param {number | null} [parts.slot] null: the cluster
 * @param {() => number} parts.room  for how many points
 * @param {(vitals: Vitals, range: Range, state: FeedState) => void} parts.onChange  also without new values, as the range moves with time
 */
export function createFeed ({ columns, slot = null, room, onChange }) {
  /** @type {import('./chart-range.js').ChosenRange} */
  let range = liveRange('')
  let series = createSeries(columns)
  let stepMs = 1000
  let isComplete = false
  /** @type {FeedState} */
  let state = 'known'
  let generation = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  /** How many requests are running. */
  let asking = 0
  document.addEventListener('visibilitychange', pollVitals)
  document.addEventListener('vitals', ({ detail }) => takeValues(detail))

  return {
    /** @param {import('./chart-range.js').ChosenRange} chosen */
    show (chosen) {
      range = chosen
      series = createSeries(columns)
      isComplete = false
      generation++
      pollVitals()
    },

    /** Call it after a change of the room. */
    refresh: showSeries
  }

  async function pollVitals () {
    clearTimeout(timer)
    if (document.hidden || isComplete) return
    const mine = generation
    asking++
    try {
      await loadRange(mine)
      state = 'known'
    } catch {
      // The master is away, or the session has ended: polling continues.
      state = 'failed'
    }
    asking--
    if (mine !== generation) return
    showSeries()
    waitAndPoll()
  }

  function waitAndPoll () {
    clearTimeout(timer)
    timer = setTimeout(pollVitals, isPushed() ? SILENCE_MS : Math.max(MIN_POLL_MS, stepMs / POLLS_PER_STEP))
  }

  /** Only steps of a second come over the live connection. */
  function isPushed () {
    return isLive(range) && range.step === '1s'
  }

  /** @param {Pushed} pushed */
  function takeValues ({ time, columns: values }) {
    if (!isPushed() || asking > 0) return
    // Values are missing, for instance after the tab was hidden.
    if (series.knownUntil === null || time[0] > series.knownUntil) {
      pollVitals()
      return
    }
    series.append({ time, stepMs: 1000, values: Object.fromEntries(CHART_COLUMNS.map((name, index) => [name, values[index] ?? []])) })
    showSeries()
    waitAndPoll()
  }

  /** @param {number} mine */
  async function loadRange (mine) {
    const isFirst = series.knownUntil === null
    const { steps, ...query } = await readVitals(isLive(range)
      ? { since: toIso(Math.max(startMs(), (series.knownUntil ?? 0) * 1000)), step: range.step, pointMs: String(pointMs()) }
      : spanParams(range))
    const rest = isFirst ? await loadBefore(steps, query) : []
    if (mine !== generation) return
    stepMs = steps[steps.length - 1].stepMs
    for (const each of [...rest, ...steps]) series.append(each)
    isComplete = !isLive(range)
  }

  /**
   * Loads what is older than the master: it has steps of a second only since its start, and the disk has longer ones.
   * @param {import('./vitals-series.js').Steps[]} steps @param {{ since: string, until?: string }} query
   */
  async function loadBefore (steps, { since, until = toIso(serverTime()) }) {
    if (steps[steps.length - 1].stepMs > 1000) return []
    const first = steps.find(({ time }) => time.length > 0)?.time[0]
    const end = first === undefined ? until : toIso(first * 1000)
    return Date.parse(end) - Date.parse(since) > 1000 ? (await readVitals({ since, until: end, step: '10s' })).steps : []
  }

  /** @param {Query} query @returns {Promise<{ steps: import('./vitals-series.js').Steps[], since: string, until?: string }>} all parts of the answer */
  async function readVitals (query) {
    const steps = []
    let { since, step } = query
    /** @type {string | null} */
    let next = since
    while (next !== null) {
      /** @type {import('../server/api/vitals.js').Series} */
      const body = await askForVitals({ ...query, since: next, ...(step && { step }) })
      steps.push(...stepsOf(body))
      // All parts use the step of the first one.
      step = body.step
      next = body.next
    }
    return { steps, since, until: query.until }
  }

  /** @param {import('../server/api/vitals.js').Series} body @returns {import('./vitals-series.js').Steps[]} the last are the steps that were asked for */
  function stepsOf ({ time, stepMs, cluster, slots, points }) {
    const steps = { time, stepMs, values: slot === null ? cluster : slots[0]?.columns ?? {} }
    const joined = slot === null ? points?.cluster : points?.slots[0]
    return points && joined ? [{ time: points.time, stepMs: points.pointMs, values: joined.mean, low: joined.low, high: joined.high }, steps] : [steps]
  }

  /** @param {Query} query */
  async function askForVitals (query) {
    const response = await fetch(
      `${BASE}/api/v1/vitals?${new URLSearchParams({ ...query, slots: slot === null ? 'none' : String(slot), columns: columns.join() })}`,
      { headers: { Accept: 'application/json' } }
    )
    if (!response.ok) throw new Error(String(response.status))
    return response.json()
  }

  function showSeries () {
    const toS = isLive(range) ? Math.floor(serverTime() / 1000) : range.untilMs / 1000
    const fromS = startMs() / 1000
    const shown = { fromS, toS, stepS: stepMs / 1000 }
    if (isLive(range)) series.trim(fromS)
    onChange(series.within(shown, room()), shown, state)
  }

  /** How long a point stands for: the server joins steps as the chart would. */
  function pointMs () {
    return pointLength({ fromS: startMs() / 1000, toS: Math.floor(serverTime() / 1000), stepS: isLive(range) ? STEPS_S[range.step] : 1 }, room()) * 1000
  }

  function startMs () {
    return isLive(range) ? Math.floor(serverTime() / 1000) * 1000 - range.ms : range.sinceMs
  }
}

function toIso (/** @type {number} */ ms) {
  return new Date(ms).toISOString()
}
