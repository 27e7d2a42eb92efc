import { DeckError } from '../errors.js'
import { sentenceOf } from './sentences.js'

/**
 * Keeps what has gone wrong until an operator acknowledges it.
 * @typedef {import('./stream.js').DeckEvent} DeckEvent
 * @typedef {ReturnType<typeof createNotices>} Notices
 * @typedef {{ page: (query: { type: string[] | string, cause?: string, limit: number }) => { items: DeckEvent[] } }} Past  newest first
 * @typedef {typeof NOTICE_KINDS[number]} NoticeKind
 * @typedef {object} Notice  there is one for all events of its kind
 * @property {number} id  of its newest event
 * @property {NoticeKind} kind
 * @property {string} at  time of the newest event
 * @property {string} firstAt  time of the first event that nobody has acknowledged
 * @property {number} count
 * @property {string} message  of the newest event, for people; may hold what an app has thrown
 * @property {string | null} endedAt  when it ended by itself
 */

export const NOTICE_KINDS = Object.freeze(/** @type {const} */ ([
  'master-lost', 'keeper-lost', 'rollout-failed', 'rolled-back', 'upgrade-failed', 'recycling-slowed', 'history-degraded'
]))

const ACKNOWLEDGED = 'notice.acknowledged'
/** Each query at the start reads so many events. */
const MAX_EVENTS = 100

/** @type {Readonly<Record<string, (event: DeckEvent) => NoticeKind | null>>} */
const KINDS = {
  'master.stopped': ({ cause }) => cause === 'master-lost' ? 'master-lost' : null,
  'keeper.lost': () => 'keeper-lost',
  'rollout.failed': (event) => isAborted(event) ? null : 'rollout-failed',
  'rollback.refused': () => 'rollout-failed',
  'rollout.rolled-back': (event) => isAborted(event) ? null : 'rolled-back',
  // The guard has rolled back a deploy that had succeeded.
  'rollout.succeeded': ({ actor }) => actor === 'guard' ? 'rolled-back' : null,
  'master.upgrade-failed': () => 'upgrade-failed',
  'recycling.slowed': () => 'recycling-slowed',
  'history.degraded': () => 'history-degraded'
}

/** The events that end a notice. @type {Readonly<Record<string, NoticeKind>>} */
const ENDS = Object.freeze({ 'history.recovered': 'history-degraded' })

/** These types are frequent for other reasons, so they are queried by their cause. */
const BY_CAUSE = [{ type: 'master.stopped', cause: 'master-lost' }, { type: 'rollout.succeeded', cause: 'rollback' }]
const WHOLE_TYPES = [...Object.keys({ ...KINDS, ...ENDS }), ACKNOWLEDGED].filter((type) => !BY_CAUSE.some((each) => each.type === type))
const QUERIES = Object.freeze([{ type: WHOLE_TYPES }, ...BY_CAUSE])

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
    /** Newest first. */
    list: () => Array.from(open.values()).sort((a, b) => b.id - a.id),

    /**
     * Only the newest id of a notice is accepted, so that nobody acknowledges an event that they have not seen.
     * @param {number} id @param {string} actor @returns {Notice}
     * @throws {DeckError} not-found
     */
    acknowledge (id, actor) {
      const notice = Array.from(open.values()).find((each) => each.id === id)
      if (!notice) throw new DeckError('not-found', `Notice ${id} does not exist, is already acknowledged, or has been replaced by a newer one`)
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
    const { id, at } = event
    open.set(kind, { id, kind, at, firstAt: before?.firstAt ?? at, count: (before?.count ?? 0) + 1, message: sentenceOf(event), endedAt: null })
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
    // The master starts without a history too.
    return []
  }
}

/** An operator who aborts a rollout needs no notice. @param {DeckEvent} event  its detail is the rollout */
function isAborted ({ detail }) {
  return (detail?.abortedBy ?? null) !== null
}
