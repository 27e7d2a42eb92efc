/**
 * The cluster's vitals over a range of time, kept up to date for as long as somebody looks.
 * @typedef {{ time: number[] } & Record<string, (number | null)[]>} Vitals `time`: seconds since the epoch, ascending; a step without any is null in each column
 */

/** How far back, in which steps (ms), as GET /api/v1/vitals keeps them. */
export const RANGES = Object.freeze(/** @type {Record<string, { label: string, ms: number, stepMs: number, step: string }>} */ ({
  '15m': { label: '15 minutes', ms: 15 * 60_000, stepMs: 1000, step: '1s' },
  '3h': { label: '3 hours', ms: 3 * 3_600_000, stepMs: 10_000, step: '10s' },
  '24h': { label: '24 hours', ms: 24 * 3_600_000, stepMs: 60_000, step: '1m' },
  '30d': { label: '30 days', ms: 30 * 24 * 3_600_000, stepMs: 60_000, step: '1m' }
}))

/** A chart has no room for more. */
const MAX_POINTS = 3000

/**
 * @param {object} parts
 * @param {readonly string[]} parts.columns
 * @param {(vitals: Vitals, range: { fromS: number, toS: number }) => void} parts.onChange
 */
export function createFeed ({ columns, onChange }) {
  let range = RANGES['15m']
  let vitals = empty()
  let generation = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  document.addEventListener('visibilitychange', () => { if (!document.hidden) poll() })

  return {
    /** @param {string} name of RANGES */
    show (name) {
      range = RANGES[name]
      vitals = empty()
      generation++
      poll()
    }
  }

  async function poll () {
    clearTimeout(timer)
    const mine = generation
    try {
      const since = Math.max((vitals.time.at(-1) ?? 0) * 1000 + range.stepMs, Date.now() - range.ms)
      await load(since, mine)
    } catch {
      // The master is away, or the session is over: the page says so elsewhere, and this goes on when they are back.
    }
    if (mine === generation && !document.hidden) timer = setTimeout(poll, Math.max(1000, range.stepMs / 5))
  }

  async function load (/** @type {number} */ sinceMs, /** @type {number} */ mine) {
    /** @type {string | null} */
    let next = new Date(sinceMs).toISOString()
    while (next !== null) {
      /** @type {Response} */
      const response = await fetch(`/api/v1/vitals?${new URLSearchParams({ since: next, step: range.step, slots: 'none', columns: columns.join() })}`, { headers: { Accept: 'application/json' } })
      if (!response.ok) throw new Error(String(response.status))
      /** @type {any} */
      const body = await response.json()
      if (mine !== generation) return
      append(body)
      next = body.next
    }
    const toS = Math.floor(Date.now() / 1000)
    trim(toS - range.ms / 1000)
    onChange(thinned(vitals), { fromS: toS - range.ms / 1000, toS })
  }

  /** @param {{ time: number[], cluster: Record<string, (number | null)[]> }} more */
  function append ({ time, cluster }) {
    for (const [index, second] of time.entries()) {
      const last = vitals.time.at(-1)
      if (last !== undefined && second <= last) continue
      // Nothing was recorded in between: a line across would say that there was.
      if (last !== undefined && second - last > range.stepMs / 1000 * 1.5) push(last + range.stepMs / 1000, () => null)
      push(second, (name) => cluster[name]?.[index] ?? null)
    }
  }

  /** @param {number} second @param {(name: string) => number | null} valueOf */
  function push (second, valueOf) {
    vitals.time.push(second)
    for (const name of columns) vitals[name].push(valueOf(name))
  }

  function trim (/** @type {number} */ fromS) {
    const old = vitals.time.findIndex((second) => second >= fromS)
    if (old > 0) for (const values of Object.values(vitals)) values.splice(0, old)
  }

  /** @returns {Vitals} */
  function empty () {
    return /** @type {any} */ (Object.fromEntries(['time', ...columns].map((name) => [name, []])))
  }
}

/**
 * Of so many neighbours the highest stands for all: it is the peak that hurts.
 * @param {Vitals} vitals @returns {Vitals}
 */
export function thinned (vitals) {
  const size = Math.ceil(vitals.time.length / MAX_POINTS)
  if (size <= 1) return vitals
  const groups = (/** @type {(number | null)[]} */ values, /** @type {(group: (number | null)[]) => number | null} */ pick) =>
    Array.from({ length: Math.ceil(values.length / size) }, (_, index) => pick(values.slice(index * size, (index + 1) * size)))
  const highest = (/** @type {(number | null)[]} */ group) => group.reduce((most, value) => value !== null && (most === null || value > most) ? value : most, null)
  return /** @type {any} */ (Object.fromEntries(Object.entries(vitals).map(([name, values]) => [name, groups(values, name === 'time' ? ([first]) => first : highest)])))
}
