import { BASE } from './base.ts'
import { CHART_COLUMNS } from './chart-columns.ts'
import { isLive, liveRange, spanParams, type ChosenRange } from './chart-range.ts'
import { serverTime } from './ticks.ts'
import { createSeries, pointLength, type Range, type Steps, type Vitals } from './vitals-series.ts'
import type { ChartValues as Pushed } from './live-events.d.ts'
import type { Series } from '../server/vitals/api.ts'

// The vitals of the cluster, or of one of its slots, over a range of time, kept up to date while the page is visible.

/** As the live page gets it. */
type Query = { since: string, until?: string, step?: string, pointMs?: string }
/** `loading`: nothing was answered yet; `failed`: the last request was not answered */
export type FeedState = 'loading' | 'known' | 'failed'

/** Values that the server pushes are requested if none came for this long. */
const SILENCE_MS = 5000
const MIN_POLL_MS = 2000
const STEPS_S: Readonly<Record<string, number>> = Object.freeze({ '1s': 1, '10s': 10, '1m': 60 })
/** Several polls a step, so that a step is shown soon after its end. */
const POLLS_PER_STEP = 5

export function createFeed ({ columns, slot = null, room, onChange }: {
  columns: readonly string[],
  /** null: the cluster */
  slot?: number | null,
  /** for how many points */
  room: () => number,
  /** also without new values, as the range moves with time */
  onChange: (vitals: Vitals, range: Range, state: FeedState) => void
}) {
  let range: ChosenRange = liveRange('')
  let series = createSeries(columns)
  let stepMs = 1000
  let isComplete = false
  let state: FeedState = 'loading'
  let generation = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  /** How many requests are running. */
  let asking = 0
  document.addEventListener('visibilitychange', pollVitals)
  document.addEventListener('vitals', ({ detail }) => takeValues(detail))

  return {
    show (chosen: ChosenRange) {
      range = chosen
      series = createSeries(columns)
      isComplete = false
      state = 'loading'
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
    const answered = await loadRange(mine).then(
      () => 'known' as const,
      // The master is away, or the session has ended: polling continues.
      () => 'failed' as const
    )
    asking--
    if (mine !== generation) return
    state = answered
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

  function takeValues ({ time, columns: values }: Pushed) {
    if (!isPushed() || asking > 0) return
    // Values are missing, for instance after the tab was hidden.
    if (series.knownUntil === null || time[0] > series.knownUntil) {
      pollVitals()
      return
    }
    series.append({ time, stepMs: 1000,
      values: Object.fromEntries(CHART_COLUMNS.map((name, index) => [name, values[index] ?? []])) })
    showSeries()
    waitAndPoll()
  }

  async function loadRange (mine: number) {
    const isFirst = series.knownUntil === null
    const { steps, ...query } = await readVitals(
      isLive(range)
        ? { since: toIso(Math.max(startMs(), (series.knownUntil ?? 0) * 1000)), step: range.step,
          pointMs: String(pointMs()) }
        : spanParams(range)
    )
    const rest = isFirst ? await loadBefore(steps, query) : []
    if (mine !== generation) return
    stepMs = steps[steps.length - 1].stepMs
    for (const each of [...rest, ...steps]) series.append(each)
    isComplete = !isLive(range)
  }

  /**
   * Loads what is older than the master: it has steps of a second only since its start, and the disk has longer ones.
   */
  async function loadBefore (steps: Steps[],
    { since, until = toIso(serverTime()) }: { since: string, until?: string })
  {
    if (steps[steps.length - 1].stepMs > 1000) return []
    const first = steps.find(({ time }) => time.length > 0)?.time[0]
    const end = first === undefined ? until : toIso(first * 1000)
    return Date.parse(end) - Date.parse(since) > 1000
      ? (await readVitals({ since, until: end, step: '10s' })).steps
      : []
  }

  /** @returns all parts of the answer */
  async function readVitals (query: Query): Promise<{ steps: Steps[], since: string, until?: string }> {
    const steps = []
    let { since, step } = query
    let next: string | null = since
    while (next !== null) {
      const body: Series = await askForVitals({ ...query, since: next, ...(step && { step }) })
      steps.push(...stepsOf(body))
      // All parts use the step of the first one.
      step = body.step
      next = body.next
    }
    return { steps, since, until: query.until }
  }

  /** @returns the last are the steps that were asked for */
  function stepsOf ({ time, stepMs, cluster, slots, points }: Series): Steps[] {
    const steps = { time, stepMs, values: slot === null ? cluster : slots[0]?.columns ?? {} }
    const joined = slot === null ? points?.cluster : points?.slots[0]
    return points && joined
      ? [{ time: points.time, stepMs: points.pointMs, values: joined.mean, low: joined.low, high: joined.high }, steps]
      : [steps]
  }

  async function askForVitals (query: Query) {
    const response = await fetch(
      `${BASE}/api/v1/vitals?${new URLSearchParams({ ...query, slots: slot === null ? 'none' : String(slot),
        columns: columns.join() })}`,
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
    return pointLength({ fromS: startMs() / 1000, toS: Math.floor(serverTime() / 1000),
      stepS: isLive(range) ? STEPS_S[range.step] : 1 }, room()) * 1000
  }

  function startMs () {
    return isLive(range) ? Math.floor(serverTime() / 1000) * 1000 - range.ms : range.sinceMs
  }
}

function toIso (ms: number) {
  return new Date(ms).toISOString()
}
