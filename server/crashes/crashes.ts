import { attempt, DeckError, orUnavailable } from '../errors.ts'
import { createSourceLines } from './source-lines.ts'
import type { CrashGroup, GroupQuery, GroupState } from '../../db/crash-groups.ts'
import type { History } from '../../db/history.ts'
import type { DeckEvent, EventStream } from '../events/stream.ts'
import type { Frame } from '../../db/crashes.ts'

export type CrashAction = 'resolve' | 'mute' | 'reopen'
export type CrashService = ReturnType<typeof createCrashService>

type KnownRelease = { id: string, path: string, outcome: string | null, deployedAt: string | null }

const STATES: Readonly<Record<CrashAction, GroupState>> = Object.freeze({ resolve: 'resolved', mute: 'muted',
  reopen: 'open' })
const EVENTS = Object.freeze({ resolve: 'crash.group-resolved', mute: 'crash.group-muted',
  reopen: 'crash.group-reopened' })

const MIN_QUIET_MS = 10 * 60 * 1000

/** Lets an operator read crashes, and resolve, mute and reopen them. */
export function createCrashService ({ store, events, release, releases = () => [], now = Date.now }: {
  store: History['crashes'],
  events: Pick<EventStream, 'publish'>,
  /** the one that runs */
  release: () => string | null,
  releases?: () => KnownRelease[],
  now?: () => number
}) {
  const sourceLines = createSourceLines()

  return {
    page (query: GroupQuery) {
      const { items, next } = store.page(query)
      return { items: withNews(items), next }
    },

    /** How many groups there are of each state. */
    counts: () => store.counts(),

    /**
     * One group without its samples, which is cheap to read often.
     * @throws {DeckError} not-found
     */
    group (id: number) {
      const group = mustFind(id)
      return withNews([group])[0]
    },

    /**
     * One group with its samples, newest first, and the whole record of the newest.
     * @throws {DeckError} not-found
     */
    find (id: number) {
      const group = mustFind(id)
      return { ...withNews([group])[0], occurrences: store.occurrences(id), latest: store.newest(id) }
    },

    /** @throws {DeckError} not-found */
    occurrence (id: number, crash: number) {
      mustFind(id)
      const record = store.occurrence(id, crash)
      if (!record)
        throw new DeckError('not-found', `Crash group ${id} has no occurrence ${crash}; a group keeps only some`)
      return record
    },

    /**
     * What is known of the crash that an event tells of. `detail`: of the event. Returns null: it tells of none, or of
     * one that is no longer kept.
     */
    evidence (detail: DeckEvent['detail']) {
      const { crashGroup, crash: id } = detail ?? {}
      if (!crashGroup || !id) return null
      // Whoever is told of the event is told without it.
      return attempt(() => {
        const { fingerprint, culprit } = mustFind(crashGroup)
        const crash = this.occurrence(crashGroup, id)
        return { crash, lines: this.sourceLines(crash), fingerprint, culprit }
      })
    },

    /** The crashes of each hour, oldest first, without hours that had none. `since`: ms. */
    hours: (id: number, since: number) => store.hours(id, since),

    /** The lines around the app's own frames, if its release still has them. */
    sourceLines: (crash: { at: string, release: string | null, stack: string | null, frames: Frame[] }) =>
      sourceLines(crash, releases().find(({ id }) => id === crash.release)?.path ?? null),

    /** @throws {DeckError} not-found, history-unavailable */
    act (id: number, action: CrashAction, actor: string) {
      settleGroup(mustFind(id), action, actor)
      return this.group(id)
    }
  }

  function mustFind (id: number) {
    const group = store.find(id)
    if (!group) throw new DeckError('not-found', `Crash group ${id} does not exist or is no longer kept`)
    return group
  }

  function settleGroup ({ id, state, errorName, kind }: CrashGroup, action: CrashAction, actor: string) {
    const to = STATES[action]
    if (state === to) return
    orUnavailable(() => store.setState(id, { state: to, atMs: now(), actor }), 'the history database cannot be written')
    const message = `crash group ${id} (${errorName ?? kind}) is ${to}`
    events.publish({ type: EVENTS[action], actor, message, detail: { crashGroup: id, from: state, to } })
  }

  function withNews<T extends CrashGroup> (groups: T[]) {
    const running = release()
    const known = releases()
    return groups.map(({ highestRelease, ...group }) => ({ ...group,
      isNewInRelease: group.firstRelease !== null && group.firstRelease === running,
      goneSince: goneSince({ ...group, highestRelease }, { running, releases: known, now: now() }),
      hasReturned: group.returnedAt !== null })
    )
  }
}

/**
 * The first release without a fault, once the running release has not had it for longer than the average time between
 * two of its crashes. `highestRelease`: the n of `r<n>`. Returns null: not gone, or unknown.
 */
export function goneSince (
  { highestRelease, count, firstSeenAt, lastSeenAt }: { highestRelease: number | null, count: number,
    firstSeenAt: string, lastSeenAt: string },
  { running, releases, now }: { running: string | null, releases: KnownRelease[], now: number }
): string | null {
  const current = numberOf(running)
  if (highestRelease === null || current === null || current <= highestRelease) return null
  const clean = releases.filter(({ id, outcome }) =>
    Number(numberOf(id)) > highestRelease && Number(numberOf(id)) <= current &&
    (outcome === 'succeeded' || id === running)
  ).sort((a, b) => Number(numberOf(a.id)) - Number(numberOf(b.id)))
  const since = clean[0]?.deployedAt
  if (!since) return null
  const gapMs = count > 1 ? (Date.parse(lastSeenAt) - Date.parse(firstSeenAt)) / (count - 1) : 0
  return now - Date.parse(since) >= Math.max(MIN_QUIET_MS, gapMs) ? clean[0].id : null
}

function numberOf (id: string | null) {
  return id === null ? null : Number(id.slice(1))
}
