import { toShownEvent } from './shown-event.js'

/**
 * The history of one worker, and of its slot around that time.
 * @typedef {import('../events/stream.js').DeckEvent} DeckEvent
 * @typedef {import('./shown-event.js').ShownEvent} ShownEvent
 * @typedef {Pick<import('../../db/history.js').History, 'page' | 'lastEventId'> & { away?: string | null }} History
 *
 * @typedef {object} Story
 * @property {DeckEvent | null} forked
 * @property {ShownEvent | null} exited
 * @property {DeckEvent | null} next  the fork of the next worker of its slot, once this one has ended
 * @property {ShownEvent[]} events  newest first
 * @property {Life[]} lives  workers of its slot, newest first
 *
 * @typedef {{ worker: number, pid: number | null, release: string | null, startedAt: string | null, end: ShownEvent | null }} Life
 */

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
 * @param {History} history @param {number} worker
 * @param {{ slot?: number, at?: string }} which `slot`: of a live worker; `at`: a time at which it lived, as a cluster that starts again counts from 1
 * @returns {() => Story} throws what the database throws
 */
export function followStory (history, worker, { slot, at }) {
  let seen = -1
  /** @type {Story | null} */
  let story = null
  return () => {
    const last = history.lastEventId()
    if (story === null || last !== seen) story = readStory(history, worker, { slot, at })
    seen = last
    return story
  }
}

/** @param {History} history @param {number} worker @param {{ slot?: number, at?: string }} which @returns {Story} */
function readStory (history, worker, which) {
  const until = which.at === undefined ? undefined : Date.parse(which.at) + 1
  const [forked = null] = history.page({ type: 'worker.forked', worker, until, limit: 1 }).items
  const ends = history.page({ type: 'worker.exited', worker, since: forked?.at, until: forked ? undefined : until, limit: MAX_FORKS }).items
  const exited = (forked ? ends.findLast(({ id }) => id > forked.id) : ends[0]) ?? null
  const slot = forked?.slot ?? exited?.slot ?? which.slot ?? undefined
  const endMs = exited === null ? null : Date.parse(exited.at)
  return {
    forked,
    exited: exited && toShownEvent(exited),
    next: exited === null || slot === undefined
      ? null
      : nextOf(history, { slot, first: forked ?? exited, untilMs: Date.parse(exited.at) + MAX_WAIT_MS }),
    events: history.page({ worker, since: forked?.at, until: endMs === null ? undefined : endMs + AFTERMATH_MS, limit: MAX_EVENTS }).items
      .filter(({ id }) => id >= (forked?.id ?? 0))
      .map(toShownEvent),
    lives: slot === undefined
      ? []
      : toLives(history.page({ type: ['worker.forked', 'worker.exited'], slot, until: endMs === null ? undefined : endMs + 1, limit: MAX_SLOT_EVENTS }).items)
  }
}

/**
 * Finds the next worker of the slot. In a rollout it starts before the old one has ended.
 * @param {History} history
 * @param {{ slot: number, first: DeckEvent, untilMs: number }} search
 * @returns {DeckEvent | null}
 */
function nextOf (history, { slot, first, untilMs }) {
  const { items } = history.page({ type: 'worker.forked', slot, since: first.at, until: untilMs, limit: MAX_FORKS })
  return items.findLast(({ id }) => id > first.id) ?? null
}

/** @param {DeckEvent[]} events newest first @returns {Life[]} */
function toLives (events) {
  /** @type {Map<number | null, DeckEvent>} exits by worker, whose fork is older */
  const ends = new Map()
  /** @type {Life[]} */
  const lives = []
  for (const event of events) {
    if (event.type === 'worker.exited') {
      ends.set(event.worker, event)
    } else {
      lives.push(toLife(event.worker, event, ends.get(event.worker)))
      ends.delete(event.worker)
    }
  }
  return [...lives, ...[...ends].map(([worker, end]) => toLife(worker, null, end))]
}

/** @param {number | null} worker @param {DeckEvent | null} forked @param {DeckEvent} [end] @returns {Life} */
function toLife (worker, forked, end) {
  const { pid = null, release = null } = forked ?? end ?? {}
  return { worker: Number(worker), pid, release, startedAt: forked?.at ?? null, end: end ? toShownEvent(end) : null }
}
