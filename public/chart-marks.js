import { BASE } from './base.js'
import { causeText } from './cause-words.js'
import { isLive, liveRange, spanParams } from './chart-range.js'
import { DEPLOY_TYPES, exitTypes } from './mark-clusters.js'
import { serverTime } from './ticks.js'

/**
 * Marks the deploys on the charts, and the workers that ended without being asked to. The server counts them, so that an
 * answer stays short however many there were.
 * @typedef {import('./mark-clusters.js').Mark} Mark
 * @typedef {import('../server/api/event-counts.js').EventCount} EventCount
 */

/** Marks are loaded this often at most, as a crash loop causes many events a second. */
const PAUSE_MS = 3000
const MAX_PARTS = 50

/**
 * @param {object} parts
 * @param {HTMLElement} parts.news  whose `data-event` the server keeps up to date
 * @param {readonly string[]} parts.faults  causes of exits that nobody asked for
 * @param {number | null} [parts.slot]  whose exits alone are meant
 * @param {(marks: Mark[]) => void} parts.onChange  ascending
 */
export function createMarks ({ news, faults, slot = null, onChange }) {
  const exits = exitTypes(faults)
  /** @type {Record<string, string>[]} */
  const queries = slot === null ? [{ type: [...exits, ...DEPLOY_TYPES].join() }] : [{ type: exits.join(), slot: String(slot) }, { type: DEPLOY_TYPES.join() }]
  /** @type {import('./chart-range.js').ChosenRange} */
  let range = liveRange('')
  /** @type {EventCount[]} */
  let counts = []
  /** Counts from this time on are loaded again. */
  let staleMs = 0
  let isStale = false
  let lookedAt = -Infinity
  let generation = 0
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer
  new MutationObserver(onNews).observe(news, { attributeFilter: ['data-event'] })
  document.addEventListener('visibilitychange', lookSoon)

  return {
    /** @param {import('./chart-range.js').ChosenRange} chosen */
    show (chosen) {
      range = chosen
      counts = []
      staleMs = isLive(range) ? serverTime() - range.ms : 0
      lookedAt = -Infinity
      generation++
      onNews()
    }
  }

  function onNews () {
    isStale = true
    lookSoon()
  }

  function lookSoon () {
    clearTimeout(timer)
    if (isStale && !document.hidden) timer = setTimeout(loadMarks, Math.max(0, lookedAt + PAUSE_MS - performance.now()))
  }

  async function loadMarks () {
    const mine = generation
    isStale = false
    lookedAt = performance.now()
    try {
      const parts = await Promise.all(queries.map((query) => readEvents({
        ...query,
        ...(isLive(range) ? { since: new Date(staleMs).toISOString(), step: range.marksStep } : spanParams(range))
      })))
      if (mine !== generation) return
      const stepMs = parts[0].stepMs
      counts = [...counts.filter(({ at }) => Date.parse(at) < staleMs), ...parts.flatMap(({ items }) => items)]
      // The current step is not complete, and events that are written late belong to the step before it.
      if (isLive(range)) staleMs = (Math.floor(serverTime() / stepMs) - 1) * stepMs
      onChange(counts.map(toMark).sort((a, b) => a.firstS - b.firstS))
    } catch {
      // The master is away: try again after a pause.
      if (mine === generation) onNews()
    }
  }

  /** @param {Record<string, string>} query @returns {Promise<{ stepMs: number, items: EventCount[] }>} several items may be of the same step */
  async function readEvents (query) {
    /** @type {EventCount[]} */
    const items = []
    /** @type {string | null} */
    let cursor = null
    for (let part = 0; part < MAX_PARTS; part++) {
      const response = await fetch(
        `${BASE}/api/v1/events/counts?${new URLSearchParams({ ...query, ...(cursor && { cursor }) })}`,
        { headers: { Accept: 'application/json' } }
      )
      if (!response.ok) throw new Error(String(response.status))
      /** @type {import('../server/api/event-counts.js').EventCounts} */
      const body = await response.json()
      items.push(...body.items)
      cursor = body.next
      if (cursor === null) return { stepMs: body.stepMs, items }
    }
    throw new Error('too many events')
  }
}

/** @param {EventCount} count @returns {Mark} */
function toMark ({ type, cause, count, firstAt, lastAt, lastId }) {
  const times = { count, lastId, firstS: Date.parse(firstAt) / 1000, lastS: Date.parse(lastAt) / 1000 }
  if (type === 'worker.exited') return { lane: 'exits', tone: 'bad', label: causeText(String(cause)), ...times }
  const outcome = type.slice('rollout.'.length)
  return {
    lane: 'deploys',
    tone: outcome === 'succeeded' ? 'ok' : outcome === 'started' ? 'info' : 'bad',
    label: `${cause ?? 'rollout'} ${outcome.replace('-', ' ')}`,
    ...times
  }
}
