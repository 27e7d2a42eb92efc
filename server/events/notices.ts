import { attempt, DeckError } from '../errors.ts'
import { sentenceOf } from './sentences.ts'
import type { DeckEvent, EventStream } from './stream.ts'
import type { Notice } from '../api/shapes.ts'

/** Keeps what has gone wrong until an operator acknowledges it. */
export type Notices = ReturnType<typeof createNotices>
/** newest first */
export type Past = {
  page: (query: { type: string[] | string, cause?: string, limit: number }) => { items: DeckEvent[] }
}
export type NoticeKind = Notice['kind']

export const NOTICE_KINDS = Object.freeze(
  ['master-lost', 'keeper-lost', 'rollout-failed', 'rolled-back', 'upgrade-failed', 'recycling-slowed',
    'history-degraded'] as const
)

const ACKNOWLEDGED = 'notice.acknowledged'
/** Each query at the start reads so many events. */
const MAX_EVENTS = 100

const KINDS: Readonly<Record<string, (event: DeckEvent) => NoticeKind | null>> = {
  'master.stopped': ({ cause }) => cause === 'master-lost' ? 'master-lost' : null,
  'keeper.lost': () => 'keeper-lost',
  'rollout.failed': (event) => isAborted(event) ? null : 'rollout-failed',
  'rollback.refused': () => 'rollout-failed',
  'start.rolled-back': () => 'rolled-back',
  'rollout.rolled-back': (event) => isAborted(event) ? null : 'rolled-back',
  // The guard has rolled back a deploy that had succeeded.
  'rollout.succeeded': ({ actor }) => actor === 'guard' ? 'rolled-back' : null,
  'master.upgrade-failed': () => 'upgrade-failed',
  'recycling.slowed': () => 'recycling-slowed',
  'history.degraded': () => 'history-degraded'
}

/** The events after which a notice tells of the past. */
const ENDS: Readonly<Record<string, readonly NoticeKind[]>> = Object.freeze({ 'history.recovered': ['history-degraded'],
  'master.upgraded': ['upgrade-failed'], 'rollout.succeeded': ['rollout-failed', 'rolled-back'] })
/** After so many deploys that have succeeded nobody has to acknowledge one that has not. */
const OVERTAKEN = 3

/** These types are frequent for other reasons, so they are queried by their cause. */
const BY_CAUSE = [{ type: 'master.stopped', cause: 'master-lost' },
  ...['deploy', 'rollback'].map((cause) => ({ type: 'rollout.succeeded', cause }))]
const WHOLE_TYPES = [...Object.keys({ ...KINDS, ...ENDS }), ACKNOWLEDGED].filter((type) =>
  !BY_CAUSE.some((each) => each.type === type)
)
const QUERIES = Object.freeze([{ type: WHOLE_TYPES }, ...BY_CAUSE])

/** `isOwn`: not: the host tells it */
export function createNotices (
  { history, events, isOwn = () => true }: { history: Past, events: Pick<EventStream, 'subscribe' | 'publish'>,
    isOwn?: (event: DeckEvent) => boolean }
) {
  const open: Map<NoticeKind, Notice> = new Map()
  /** by kind: how many deploys have succeeded since the notice */
  const overtaken: Map<NoticeKind, number> = new Map()
  for (const event of readPast(history)) note(event)
  events.subscribe(note)

  return {
    /** Newest first. */
    list: () => Array.from(open.values()).sort((a, b) => b.id - a.id),

    /**
     * Only the newest id of a notice is accepted, so that nobody acknowledges an event that they have not seen.
     * @throws {DeckError} not-found
     */
    acknowledge (id: number, actor: string): Notice {
      const notice = Array.from(open.values()).find((each) => each.id === id)
      if (!notice)
        throw new DeckError('not-found',
          `Notice ${id} does not exist, is already acknowledged, or has been replaced by a newer one`)
      events.publish({ type: ACKNOWLEDGED, actor, message: notice.message,
        detail: { notice: id, kind: notice.kind, count: notice.count } })
      return notice
    }
  }

  function note (event: DeckEvent) {
    if (event.type === ACKNOWLEDGED) return forget(event)
    const kind = noticeKindOf(event)
    if (!kind) { for (const ended of endsOf(event)) end(ended, event) }
    if (!kind || !isOwn(event)) return
    const before = open.get(kind)
    overtaken.delete(kind)
    const { id, at } = event
    open.set(kind, { id, kind, at, firstAt: before?.firstAt ?? at, count: (before?.count ?? 0) + 1,
      message: sentenceOf(event), endedAt: null })
  }

  function end (kind: NoticeKind, { type, at }: DeckEvent) {
    const notice = open.get(kind)
    if (!notice) return
    const count = (overtaken.get(kind) ?? 0) + 1
    overtaken.set(kind, count)
    if (type === 'rollout.succeeded' && count >= OVERTAKEN) open.delete(kind)
    else open.set(kind, { ...notice, endedAt: notice.endedAt ?? at })
  }

  function forget ({ detail }: DeckEvent) {
    const notice = open.get(detail?.kind as NoticeKind)
    if (notice && notice.id <= Number(detail?.notice)) open.delete(notice.kind)
  }
}

export function noticeKindOf (event: DeckEvent): NoticeKind | null {
  return Object.hasOwn(KINDS, event.type) ? KINDS[event.type](event) : null
}

/** A restart proves nothing of a deploy. */
function endsOf ({ type, cause }: DeckEvent): readonly NoticeKind[] {
  return Object.hasOwn(ENDS, type) && cause !== 'restart' ? ENDS[type] : []
}

/** @returns oldest first */
function readPast (history: Past): DeckEvent[] {
  // The master starts without a history too.
  const all = attempt(() => QUERIES.flatMap((query) => history.page({ ...query, limit: MAX_EVENTS }).items), [])
  return all.sort((a, b) => a.id - b.id)
}

/** An operator who aborts a rollout needs no notice. `event`: its detail is the rollout. */
function isAborted ({ detail }: DeckEvent) {
  return (detail?.abortedBy ?? null) !== null
}
