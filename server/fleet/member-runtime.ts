import { errorText } from '../errors.ts'
import { createRateLimiter } from './rate-limiter.ts'
import { createMember, reduceMember, type Command, type Input, type Memory, type Result } from './member.ts'
import { STATES, type Crash, type FleetRollout } from './document.ts'
import type { Announcement, RolloutStore } from './rollout-store.ts'

/**
 * Does what a member decides about rollouts of its fleet: reads and writes the document, remembers, and has its own
 * deck deploy.
 */
type CommandOf<T extends Command['type']> = Extract<Command, { type: T }>
/** `begin` and `rollBack` resolve with the number of the own rollout and throw what the deck refuses it with. */
export type DeckAdapter = { begin: (document: FleetRollout) => Promise<number>,
  rollBack: (release: string | null, document: FleetRollout) => Promise<number>,
  abort: (rollout: number, document: FleetRollout) => void, release: () => string | null }

const AGAIN_MS = 2000
/** A document that is not over is read at most so often, even if nothing is heard of it. */
const LEAST_READ_MS = 10_000
const READ_EVERY_MS = 60_000
/** How long each change is read after somebody has asked for the document. */
const ATTENTIVE_MS = 60_000
/** A flood of announcements is not read one by one: each may cost 10 ms. */
const READS = Object.freeze({ burst: 20, everyMs: 100 })
/** A timer with a longer time would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

export function createMemberRuntime (
  { rolloutStore, member, boot, memory, remember, deckAdapter, tell, onWritten = () => {}, onDocument = () => {},
    now = () => performance.now(), time = Date.now, timers = globalThis }: {
      rolloutStore: RolloutStore,
      member: string,
      boot: string,
      memory: Memory,
      remember: (memory: Memory) => void,
      deckAdapter: DeckAdapter,
      tell: (event: string, message: string) => void,
      /** by this member */
      onWritten?: (document: FleetRollout, before: FleetRollout) => void,
      onDocument?: (document: FleetRollout | null) => void,
      /** monotonic, ms */
      now?: () => number,
      /** wall, ms */
      time?: () => number,
      timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>
    }
) {
  let state = createMember({ member, boot, memory })
  let last: FleetRollout | null = null
  let isKnown = false
  let attentiveUntil = -Infinity
  /** The version of the bucket at the last read. */
  let version: number | null = null
  /** The newest revision that was announced. */
  let heard: number | null = null
  /** The newest revision that this deck has written. */
  let written = 0
  let readAt = -Infinity
  let reading: Promise<void> | null = null
  let next: Promise<void> | null = null
  let alarm: NodeJS.Timeout | undefined
  let again: NodeJS.Timeout | undefined
  let soon: NodeJS.Timeout | undefined
  const waitMs = createRateLimiter({ ...READS, now })
  let isClosed = false
  const unfollowVersion = rolloutStore.followVersion(checkVersion)
  const unfollow = rolloutStore.follow((announcement) => {
    heard = announcement.revision
    if (concerns(announcement)) readSoon()
  }, readDocument)

  return {
    /** As it was last seen; from now on, for a while, each change is read. */
    get document (): FleetRollout | null {
      payAttention()
      return last
    },

    /** Whether this master has read the document, or that there is none. */
    get isKnown () {
      return isKnown
    },

    /** As it is now, or as it was last seen where NATS is out of reach. */
    async newest (): Promise<FleetRollout | null> {
      payAttention()
      await readDocument()
      return last
    },

    /** The newest that it has seen. */
    get seen (): { rollout: number, revision: number } {
      return { rollout: state.memory.rollout, revision: state.memory.revision }
    },

    see (document: FleetRollout, revision: number) {
      written = revision
      dispatchInput({ type: 'seen', document, revision })
      showDocument(document)
    },

    /** NATS is out of reach. */
    away: () => dispatchInput({ type: 'away' }),

    /** `isOwn`: false: another deck has its name */
    named: (isOwn: boolean) => dispatchInput({ type: 'named', isOwn }),

    /** `result`: of the own rollout that was begun for the fleet */
    ended: (result: Result) => dispatchInput({ type: 'ended', result }),

    /** The guard of its deck rolls this release of the fleet back. */
    undone: (what: { release: string | null, reason: string }) => dispatchInput({ type: 'undone', ...what }),

    /** A release of its deck has a fault that it never had before. */
    crashed: (what: { release: string | null, crash: Crash }) => dispatchInput({ type: 'crashed', ...what }),

    /** What it does for the fleet at the moment; `fleet`: the uid of the fleet's rollout. */
    get task (): { fleet: string, rollout: number | null, way: 'forward' | 'back', isAborted: boolean } | null {
      const { task } = state.memory
      return task && task.result === null
        ? { fleet: task.fleet, rollout: task.rollout, way: task.way, isAborted: state.isAborting }
        : null
    },

    close () {
      isClosed = true
      unfollow()
      unfollowVersion()
      timers.clearTimeout(alarm)
      timers.clearTimeout(again)
      timers.clearTimeout(soon)
    }
  }

  function payAttention () {
    if (now() >= attentiveUntil) readDocument()
    attentiveUntil = now() + ATTENTIVE_MS
  }

  /** Most changes concern few members, and reading costs each of them. */
  function concerns ({ id, revision, state: as, due }: Announcement) {
    const { known, memory: { task } } = state
    if (known === null || known.document.id !== id || known.document.state !== as) return true
    if (revision <= known.revision) return false
    return due.includes(member) || (task !== null && task.fleet === known.document.uid && task.result === null) ||
      now() < attentiveUntil
  }

  function readSoon () {
    if (soon) return
    const ms = waitMs()
    if (ms === 0) return readDocument()
    soon = timers.setTimeout(() => {
      soon = undefined
      readSoon()
    }, ms)
    soon?.unref?.()
  }

  /** Reads a change whose announcement was lost, and now and then reads anyway. */
  async function checkVersion (found: number | null) {
    const isHeard = found !== null && (found === version || found === heard)
    if (isHeard && now() - readAt < patience()) return
    await readDocument()
    version = found
  }

  /** Often enough to notice a member that is late in its turn, and no more: there may be hundreds of readers. */
  function patience () {
    const document = state.known?.document
    return !document || STATES[document.state].done
      ? Infinity
      : Math.min(Math.max(document.deadlineMs / 4, LEAST_READ_MS), READ_EVERY_MS)
  }

  /** @returns a call during a read waits for the next one: the present one may have begun too early */
  function readDocument (): Promise<void> {
    if (reading) {
      next ??= reading.then(() => {
        next = null
        return readDocument()
      })
      return next
    }
    reading = readOnce().finally(() => {
      reading = null
    })
    return reading
  }

  async function readOnce () {
    readAt = now()
    const before = written
    const found = await rolloutStore.read()
    if (found.is === 'away') return handleAway()
    // This deck wrote meanwhile, and the answer is older than that.
    if (written !== before && found.value.revision < written) return readOnce()
    dispatchInput({ type: 'seen', ...found.value })
    showDocument(found.value.document)
  }

  /** Also a connected NATS may not answer, for example while its servers elect a leader. */
  function handleAway () {
    dispatchInput({ type: 'away' })
    timers.clearTimeout(again)
    again = timers.setTimeout(readDocument, AGAIN_MS)
    again?.unref?.()
  }

  function showDocument (document: FleetRollout | null) {
    last = document
    isKnown = true
    onDocument(document)
  }

  function dispatchInput (input: Input) {
    if (isClosed) return
    const turn = reduceMember(state, input, { at: now(), iso: new Date(time()).toISOString(),
      release: deckAdapter.release() })
    state = turn.state
    for (const command of turn.commands) perform(command)
  }

  function perform (command: Command) {
    switch (command.type) {
      case 'write':
        return writeDocument(command)
      case 'remember':
        return remember(command.memory)
      case 'begin':
        return runOwnRollout(() => deckAdapter.begin(command.document))
      case 'roll-back':
        return runOwnRollout(() => deckAdapter.rollBack(command.release, command.document))
      case 'abort':
        return abortOwnRollout(command)
      case 'read':
        return readDocument()
      case 'wake':
        return setAlarm(command)
    }
  }

  async function writeDocument ({ document, before, revision, news }: CommandOf<'write'>) {
    const told = await rolloutStore.write(document, revision)
    if (told.is === 'away') return handleAway()
    if (told.is === 'refused') return dispatchInput({ type: 'refused' })
    written = told.revision
    onWritten(document, before)
    if (news) tell(news.event, news.message)
    dispatchInput({ type: 'written', document, revision: told.revision })
    showDocument(document)
  }

  async function runOwnRollout (work: () => Promise<number>) {
    try {
      dispatchInput({ type: 'began', rollout: await work() })
    } catch (error) {
      dispatchInput({ type: 'ended', result: { state: 'failed', reason: errorText(error) } })
    }
  }

  function abortOwnRollout ({ rollout, document }: CommandOf<'abort'>) {
    try {
      deckAdapter.abort(rollout, document)
    } catch (error) {
      // The rollout has just ended; its end is an input of its own.
      tell('fleet.abort-refused', errorText(error))
    }
  }

  function setAlarm ({ ms }: CommandOf<'wake'>) {
    timers.clearTimeout(alarm)
    alarm = timers.setTimeout(() => dispatchInput({ type: 'look' }), Math.min(ms, MAX_TIMER_MS))
    alarm?.unref?.()
  }
}
