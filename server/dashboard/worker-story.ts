import { toShownEvent, type ShownEvent } from '../events/page-shown-event.ts'
import type { DeckEvent } from '../events/stream.ts'

/** The history of one worker, and of its slot around that time. */
export type History = Pick<import('../../db/history.ts').History, 'page' | 'lastEventId'> & { away?: string | null }
export type Story = {
  forked: DeckEvent | null,
  exited: ShownEvent | null,
  /** the fork of the next worker of its slot, once this one has ended; `readyAt`: null: it never was */
  next: DeckEvent & { readyAt: string | null } | null,
  /** newest first */
  events: ShownEvent[],
  /** workers of its slot, newest first */
  lives: Life[]
}
export type Life = { worker: number, pid: number | null, release: string | null, startedAt: string | null,
  end: ShownEvent | null }

const MAX_EVENTS = 12
/** Each worker has two. */
const MAX_SLOT_EVENTS = 20
const MAX_FORKS = 200
/** Events that follow from the exit are recorded by then. */
const AFTERMATH_MS = 1000
/** Longer than any slot waits for its next worker. */
const MAX_WAIT_MS = 10 * 60_000

/**
 * Reads the history again only after it has changed.
 * @param which `slot`: of a live worker; `at`: a time at which it lived, as a cluster that starts again counts from 1
 * @returns throws what the database throws
 */
export function followStory (history: History, worker: number,
  { slot, at }: { slot?: number, at?: string }): () => Story
{
  let seen = -1
  let story: Story | null = null
  return () => {
    const last = history.lastEventId()
    if (story === null || last !== seen) story = readStory(history, worker, { slot, at })
    seen = last
    return story
  }
}

function readStory (history: History, worker: number, which: { slot?: number, at?: string }): Story {
  const until = which.at === undefined ? undefined : Date.parse(which.at) + 1
  const [forked = null] = history.page({ type: 'worker.forked', worker, until, limit: 1 }).items
  const exited = forked
    ? exitOf(history, forked)
    : history.page({ type: 'worker.exited', worker, until, limit: 1 }).items[0] ?? null
  const slot = forked?.slot ?? exited?.slot ?? which.slot ?? undefined
  const endMs = exited === null ? null : Date.parse(exited.at)
  return { forked, exited: exited && toShownEvent(exited),
    next: exited === null || slot === undefined
      ? null
      : nextOf(history, { slot, first: forked ?? exited, untilMs: Date.parse(exited.at) + MAX_WAIT_MS }),
    events: history.page({ worker, since: forked?.at, until: endMs === null ? undefined : endMs + AFTERMATH_MS,
      limit: MAX_EVENTS }).items.filter(({ id }) => id >= (forked?.id ?? 0)).map(toShownEvent),
    lives: slot === undefined
      ? []
      : toLives(
        history.page({ type: ['worker.forked', 'worker.exited'], slot, until: endMs === null ? undefined : endMs + 1,
          limit: MAX_SLOT_EVENTS }).items,
        (fork) => exitOf(history, fork)
      ) }
}

/** Finds how a worker ended. Null: it lives, or nobody knows */
export function exitOf (history: Pick<History, 'page'>, { id, worker, at }: DeckEvent): DeckEvent | null {
  const { items } = history.page({ type: 'worker.exited', worker: worker ?? undefined, since: at, limit: MAX_FORKS })
  return items.findLast((exit) => exit.id > id) ?? null
}

/** Finds the next worker of the slot. In a rollout it starts before the old one has ended. */
function nextOf (history: History,
  { slot, first, untilMs }: { slot: number, first: DeckEvent, untilMs: number }): Story['next']
{
  const { items } = history.page({ type: 'worker.forked', slot, since: first.at, until: untilMs, limit: MAX_FORKS })
  const next = items.findLast(({ id }) => id > first.id)
  if (!next) return null
  const ready = history.page({ type: 'worker.ready', worker: next.worker ?? undefined, since: next.at,
    limit: MAX_FORKS })
  return { ...next, readyAt: ready.items.at(-1)?.at ?? null }
}

/**
 * `events`: newest first; `exitLater`: finds an exit behind them: in a rollout the next worker of a slot begins before
 * the one before it ends, and may have ended long after that
 */
function toLives (events: DeckEvent[], exitLater: (fork: DeckEvent) => DeckEvent | null): Life[] {
  /** exits by worker, whose fork is older */
  const ends: Map<number | null, DeckEvent> = new Map()
  const lives: Life[] = []
  for (const event of events) {
    if (event.type === 'worker.exited') {
      ends.set(event.worker, event)
    } else {
      lives.push(toLife(event.worker, event, ends.get(event.worker) ?? exitLater(event)))
      ends.delete(event.worker)
    }
  }
  return [...lives, ...[...ends].map(([worker, end]) => toLife(worker, null, end))]
}

function toLife (worker: number | null, forked: DeckEvent | null, end: DeckEvent | null): Life {
  const { pid = null, release = null } = forked ?? end ?? {}
  return { worker: Number(worker), pid, release, startedAt: forked?.at ?? null, end: end ? toShownEvent(end) : null }
}
