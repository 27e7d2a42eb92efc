import { DeckError } from '../errors.js'
import { sentenceOf } from './sentences.js'

/**
 * What has gone wrong while nobody looked, until somebody says that they have seen it.
 * @typedef {import('./stream.js').DeckEvent} DeckEvent
 * @typedef {ReturnType<typeof createNotices>} Notices
 * @typedef {{ page: (query: { type: string[] | string, cause?: string, limit: number }) => { items: DeckEvent[] } }} Past  newest first
 * @typedef {typeof NOTICE_KINDS[number]} NoticeKind
 * @typedef {object} Notice  one of each kind stands for all of that kind
 * @property {number} id  of its newest event
 * @property {NoticeKind} kind
 * @property {string} at  when that was
 * @property {string} firstAt  of the first that nobody has acknowledged
 * @property {number} count
 * @property {string} message  of the newest, for people; may hold what an app has thrown
 * @property {string | null} endedAt  when it was over by itself
 */

export const NOTICE_KINDS = /** @type {const} */ (['master-lost', 'keeper-lost', 'rollout-failed', 'rolled-back', 'upgrade-failed', 'recycling-slowed', 'history-degraded'])

const ACKNOWLEDGED = 'notice.acknowledged'
/** Of each look into the history at the start. */
const MAX_EVENTS = 100

/** By type of event. */
const KINDS = Object.freeze(/** @type {Record<string, (event: DeckEvent) => NoticeKind | null>} */ ({
  'master.stopped': ({ cause }) => cause === 'master-lost' ? 'master-lost' : null,
  'keeper.lost': () => 'keeper-lost',
  'rollout.failed': (event) => isAborted(event) ? null : 'rollout-failed',
  'rollout.rolled-back': (event) => isAborted(event) ? null : 'rolled-back',
  // A deploy that had succeeded, and was taken back.
  'rollout.succeeded': ({ actor }) => actor === 'guard' ? 'rolled-back' : null,
  'master.upgrade-failed': () => 'upgrade-failed',
  'recycling.slowed': () => 'recycling-slowed',
  'history.degraded': () => 'history-degraded'
}))

/** What ends by itself, by the event that tells of it. */
const ENDS = Object.freeze(/** @type {Record<string, NoticeKind>} */ ({ 'history.recovered': 'history-degraded' }))

/** Those that come often for other reasons are asked for by their cause. */
const QUERIES = Object.freeze([
  { type: ['keeper.lost', 'rollout.failed', 'rollout.rolled-back', 'master.upgrade-failed', 'recycling.slowed', 'history.degraded', 'history.recovered', ACKNOWLEDGED] },
  { type: 'master.stopped', cause: 'master-lost' },
  { type: 'rollout.succeeded', cause: 'rollback' }
])

/**
 * @param {object} parts
 * @param {Past} parts.history
 * @param {Pick<import('./stream.js').EventStream, 'subscribe' | 'publish'>} parts.events
 */
export function createNotices ({ history, events }) {
  /** @type {Map<NoticeKind, Notice>} */
  const open = new Map()
  for (const event of readPast(history)) note(event)
  events.subscribe(note)

  return {
    /** Those that nobody has acknowledged, newest first. */
    list: () => Array.from(open.values()).sort((a, b) => b.id - a.id),

    /**
     * What has come since the caller looked stays.
     * @param {number} id @param {string} actor @returns {Notice} the one that is acknowledged
     * @throws {DeckError} not-found
     */
    acknowledge (id, actor) {
      const notice = Array.from(open.values()).find((each) => each.id === id)
      if (!notice) throw new DeckError('not-found', `Notice ${id} does not exist, has been acknowledged, or a newer one of its kind has come`)
      events.publish({ type: ACKNOWLEDGED, actor, message: notice.message, detail: { notice: id, kind: notice.kind, count: notice.count } })
      return notice
    }
  }

  /** @param {DeckEvent} event */
  function note (event) {
    if (event.type === ACKNOWLEDGED) return forget(event)
    const ended = open.get(ENDS[event.type])
    if (ended) open.set(ended.kind, { ...ended, endedAt: event.at })
    const kind = noticeKindOf(event)
    if (!kind) return
    const before = open.get(kind)
    open.set(kind, { id: event.id, kind, at: event.at, firstAt: before?.firstAt ?? event.at, count: (before?.count ?? 0) + 1, message: sentenceOf(event), endedAt: null })
  }

  /** @param {DeckEvent} event */
  function forget ({ detail }) {
    const notice = open.get(detail?.kind)
    if (notice && notice.id <= detail?.notice) open.delete(notice.kind)
  }
}

/** @param {DeckEvent} event @returns {NoticeKind | null} */
export function noticeKindOf (event) {
  return Object.hasOwn(KINDS, event.type) ? KINDS[event.type](event) : null
}

/** @param {Past} history @returns {DeckEvent[]} oldest first */
function readPast (history) {
  try {
    return QUERIES.flatMap((query) => history.page({ ...query, limit: MAX_EVENTS }).items).sort((a, b) => a.id - b.id)
  } catch {
    // No start depends on the history.
    return []
  }
}

/** Whoever has aborted a rollout knows of it. @param {DeckEvent} event whose detail is the rollout */
function isAborted ({ detail }) {
  return (detail?.abortedBy ?? null) !== null
}
