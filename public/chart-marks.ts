import { BASE } from './base.ts'
import { causeText } from './cause-words.ts'
import { isLive, liveRange, spanParams, type ChosenRange } from './chart-range.ts'
import { DEPLOY_TYPES, exitTypes, type Mark } from './mark-clusters.ts'
import { serverTime } from './ticks.ts'
import type { EventCount, EventCounts } from '../server/events/api-counts.ts'

/**
 * Marks the deploys on the charts, and the workers that ended without being asked to. The server counts them, so that
 * an answer stays short however many there were.
 */

/** Marks are loaded this often at most, as a crash loop causes many events a second. */
const PAUSE_MS = 3000
const MAX_PARTS = 50

export function createMarks ({ news, faults, slot = null, onChange }: {
  /** whose `data-event` the server keeps up to date */
  news: HTMLElement,
  /** causes of exits that nobody asked for */
  faults: readonly string[],
  /** whose exits alone are meant */
  slot?: number | null,
  /** ascending */
  onChange: (marks: Mark[]) => void
}) {
  const exits = exitTypes(faults)
  const queries: Record<string, string>[] = slot === null
    ? [{ type: [...exits, ...DEPLOY_TYPES].join() }]
    : [{ type: exits.join(), slot: String(slot) }, { type: DEPLOY_TYPES.join() }]
  let range: ChosenRange = liveRange('')
  let counts: EventCount[] = []
  /** Counts from this time on are loaded again. */
  let staleMs = 0
  let isStale = false
  let lookedAt = -Infinity
  let generation = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  new MutationObserver(onNews).observe(news, { attributeFilter: ['data-event'] })
  document.addEventListener('visibilitychange', lookSoon)

  return { show (chosen: ChosenRange) {
    range = chosen
    counts = []
    staleMs = isLive(range) ? serverTime() - range.ms : 0
    lookedAt = -Infinity
    generation++
    onNews()
  } }

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
      const parts = await Promise.all(
        queries.map((query) =>
          readEvents({ ...query, ...(isLive(range)
            ? { since: new Date(staleMs).toISOString(), step: range.marksStep }
            : spanParams(range)) })
        )
      )
      if (mine !== generation)
        return
      const stepMs = parts[0].stepMs
      counts = [...counts.filter(({ at }) =>
        Date.parse(at) < staleMs
      ), ...parts.flatMap(({ items }) => items)]
      // The current step is not complete, and events that are written late belong to the step before it.
      if (isLive(range)) staleMs = (Math.floor(serverTime() / stepMs) - 1) * stepMs
      onChange(counts.map(toMark).sort((a, b) => a.firstS - b.firstS))
    } catch {
      // The master is away: try again after a pause.
      if (mine === generation) onNews()
    }
  }

  /** @returns several items may be of the same step */
  async function readEvents (query: Record<string, string>): Promise<{ stepMs: number, items: EventCount[] }> {
    const items: EventCount[] = []
    let cursor: string | null = null
    for (let part = 0; part < MAX_PARTS; part++) {
      const response = await fetch(
        `${BASE}/api/v1/events/counts?${new URLSearchParams({ ...query, ...(cursor && { cursor }) })}`,
        { headers: { Accept: 'application/json' } }
      )
      if (!response.ok) throw new Error(String(response.status))
      const body: EventCounts = await response.json()
      items.push(...body.items)
      cursor = body.next
      if (cursor === null) return { stepMs: body.stepMs, items }
    }
    throw new Error('too many events')
  }
}

function toMark ({ type, cause, count, firstAt, lastAt, lastId }: EventCount): Mark {
  const times = { count, lastId, firstS: Date.parse(firstAt) / 1000, lastS: Date.parse(lastAt) / 1000 }
  if (type === 'worker.exited') return { lane: 'exits', tone: 'bad', label: causeText(String(cause)), ...times }
  const outcome = type.slice('rollout.'.length)
  return { lane: 'deploys', tone: outcome === 'succeeded' ? 'ok' : outcome === 'started' ? 'info' : 'bad',
    label: `${cause ?? 'rollout'} ${outcome.replace('-', ' ')}`, ...times }
}
