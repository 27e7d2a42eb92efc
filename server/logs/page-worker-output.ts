import { toIso } from '../api/fields.ts'
import { findLines, type Deck } from './api-lines.ts'
import { logsModel, type Line } from './page.ts'
import { logsUrlOf } from '../events/page-shown-event.ts'
import type { Life } from '../dashboard/worker-story.ts'

/** The last lines of a worker that has ended: what the files of its slot hold of its time. */
/** `logSlot`: 0 for the log of standby workers */
export type Ended = { id: number, logSlot: number, startedAt: string | null }

/**
 * @returns `reason`: why there are no lines; `others`: workers of the slot that wrote at the same time; `url`: of the
 * same lines on the page of the logs
 */
export async function lastOutput (worker: Ended,
  { end, lives, next }: { end: { at: string, uptimeMs: number | null } | null, lives: Life[],
    next: { worker: number, at: string } | null },
  { deck, now }: { deck: Deck, now: () => number }
): Promise<{ lines: Line[], reason: string, others: number[], url: string | null, textUrl: string | null }> {
  const { logSlot: slot, startedAt } = worker
  if (end === null) {
    const url = startedAt && logsUrlOf({ slot, at: startedAt })
    return { lines: [], others: [], url, textUrl: null,
      reason: 'When it ended was not recorded, so its lines cannot be told from those of the next worker.' }
  }
  const endedAt = Date.parse(end.at)
  const since = startedAt === null ? endedAt - (end.uptimeMs ?? 0) : Date.parse(startedAt)
  // A line that came in the millisecond of its end is its own.
  const params = new URLSearchParams({ slot: String(slot), since: toIso(since), until: toIso(endedAt + 1) })
  const { lines, problem, links } = await logsModel({ deck, params, now })
  return { lines, reason: problem?.message ?? (lines.length === 0 ? await whyNone({ slot, since }, deck) : ''),
    others: othersOf(worker, { since, endedAt, lives, next }), url: links && `/logs?${params}`,
    textUrl: links?.text ?? null }
}

async function whyNone ({ slot, since }: { slot: number, since: number }, deck: Deck): Promise<string> {
  const { items, next } = await findLines(deck, { slot, until: since, lines: 1 })
  return items.length > 0 || next !== null
    ? 'It wrote nothing to stdout and stderr.'
    : 'Its output is no longer kept, or it wrote none: the files hold no line from before its end. The options logs.maxBytes and logs.maxFiles say how much is kept.'
}

function othersOf ({ id }: Ended,
  { since, endedAt, lives, next }: { since: number, endedAt: number, lives: Life[],
    next: { worker: number, at: string } | null }): number[]
{
  const before = lives.filter(({ worker, startedAt, end }) =>
    worker !== id && end !== null && Date.parse(end.at) > since && Date.parse(startedAt ?? end.at) < endedAt
  )
  const after = next && Date.parse(next.at) < endedAt ? [next] : []
  return [...new Set([...before, ...after].map(({ worker }) => worker))]
}
