import { errorText } from '../errors.js'
import { createRateLimiter } from './rate-limiter.js'
import { createMember, reduceMember } from './member.js'
import { STATES } from './states.js'

/**
 * Does what a member decides about rollouts of its fleet: reads and writes the document, remembers, and has its own deck deploy.
 * @typedef {import('./rollout.js').FleetRollout} FleetRollout
 * @typedef {import('./member.js').Command} Command
 */
/** @template {Command['type']} T @typedef {Extract<Command, { type: T }>} CommandOf */
/**
 * `begin` and `rollBack` resolve with the number of the own rollout and throw what the deck refuses it with.
 * @typedef {object} DeckAdapter
 * @property {(document: FleetRollout) => Promise<number>} begin
 * @property {(release: string | null, document: FleetRollout) => Promise<number>} rollBack
 * @property {(rollout: number, document: FleetRollout) => void} abort
 * @property {() => string | null} release
 */

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

/**
 * @param {object} parts
 * @param {import('./rollout-store.js').RolloutStore} parts.rolloutStore
 * @param {string} parts.member
 * @param {string} parts.boot
 * @param {import('./member.js').Memory} parts.memory
 * @param {(memory: import('./member.js').Memory) => void} parts.remember
 * @param {DeckAdapter} parts.deckAdapter
 * @param {(event: string, message: string) => void} parts.tell
 * @param {(document: FleetRollout, before: FleetRollout) => void} [parts.onWritten]  by this member
 * @param {(document: FleetRollout | null) => void} [parts.onDocument]
 * @param {() => number} [parts.now]  monotonic, ms
 * @param {() => number} [parts.time]  wall, ms
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>} [parts.timers]
 */
export function createMemberRuntime ({
  rolloutStore,
  member,
  boot,
  memory,
  remember,
  deckAdapter,
  tell,
  onWritten = () => {},
  onDocument = () => {},
  now = () => performance.now(),
  time = Date.now,
  timers = globalThis
}) {
  let state = createMember({ member, boot, memory })
  /** @type {FleetRollout | null} */
  let last = null
  let isKnown = false
  let attentiveUntil = -Infinity
  /** The version of the bucket at the last read. @type {number | null} */
  let version = null
  /** The newest revision that was announced. @type {number | null} */
  let heard = null
  /** The newest revision that this deck has written. */
  let written = 0
  let readAt = -Infinity
  /** @type {Promise<void> | null} */
  let reading = null
  /** @type {Promise<void> | null} */
  let next = null
  /** @type {NodeJS.Timeout | undefined} */
  let alarm
  /** @type {NodeJS.Timeout | undefined} */
  let again
  /** @type {NodeJS.Timeout | undefined} */
  let soon
  const waitMs = createRateLimiter({ ...READS, now })
  let isClosed = false
  const unfollowVersion = rolloutStore.followVersion(checkVersion)
  const unfollow = rolloutStore.follow((announcement) => {
    heard = announcement.revision
    if (concerns(announcement)) readSoon()
  }, readDocument)

  return {
    /** As it was last seen; from now on, for a while, each change is read. @returns {FleetRollout | null} */
    get document () {
      payAttention()
      return last
    },

    /** Whether this master has read the document, or that there is none. */
    get isKnown () { return isKnown },

    /** As it is now, or as it was last seen where NATS is out of reach. @returns {Promise<FleetRollout | null>} */
    async newest () {
      payAttention()
      await readDocument()
      return last
    },

    /** The newest that it has seen. @returns {{ rollout: number, revision: number }} */
    get seen () { return { rollout: state.memory.rollout, revision: state.memory.revision } },

    /** @param {FleetRollout} document @param {number} revision */
    see (document, revision) {
      written = revision
      dispatchInput({ type: 'seen', document, revision })
      showDocument(document)
    },

    /** NATS is out of reach. */
    away: () => dispatchInput({ type: 'away' }),

    /** @param {boolean} isOwn  false: another deck has its name */
    named: (isOwn) => dispatchInput({ type: 'named', isOwn }),

    /** @param {import('./member.js').Result} result  of the own rollout that was begun for the fleet */
    ended: (result) => dispatchInput({ type: 'ended', result }),

    /** The guard of its deck rolls this release of the fleet back. @param {{ release: string | null, reason: string }} what */
    undone: (what) => dispatchInput({ type: 'undone', ...what }),

    /**
     * What it does for the fleet at the moment; `fleet`: the uid of the fleet's rollout.
     * @returns {{ fleet: string, rollout: number | null, way: 'forward' | 'back', isAborted: boolean } | null}
     */
    get task () {
      const { task } = state.memory
      return task && task.result === null ? { fleet: task.fleet, rollout: task.rollout, way: task.way, isAborted: state.isAborting } : null
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

  /** Most changes concern few members, and reading costs each of them. @param {import('./rollout-store.js').Announcement} announcement */
  function concerns ({ id, revision, state: as, due }) {
    const { known, memory: { task } } = state
    if (known === null || known.document.id !== id || known.document.state !== as) return true
    if (revision <= known.revision) return false
    return due.includes(member) || (task !== null && task.fleet === known.document.uid && task.result === null) || now() < attentiveUntil
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

  /** Reads a change whose announcement was lost, and now and then reads anyway. @param {number | null} found */
  async function checkVersion (found) {
    const isHeard = found !== null && (found === version || found === heard)
    if (isHeard && now() - readAt < patience()) return
    await readDocument()
    version = found
  }

  /** Often enough to notice a member that is late in its turn, and no more: there may be hundreds of readers. */
  function patience () {
    const document = state.known?.document
    return !document || STATES[document.state].done ? Infinity : Math.min(Math.max(document.deadlineMs / 4, LEAST_READ_MS), READ_EVERY_MS)
  }

  /** @returns {Promise<void>} a call during a read waits for the next one: the present one may have begun too early */
  function readDocument () {
    if (reading) {
      next ??= reading.then(() => {
        next = null
        return readDocument()
      })
      return next
    }
    reading = readOnce().finally(() => { reading = null })
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

  /** @param {FleetRollout | null} document */
  function showDocument (document) {
    last = document
    isKnown = true
    onDocument(document)
  }

  /** @param {import('./member.js').Input} input */
  function dispatchInput (input) {
    if (isClosed) return
    const turn = reduceMember(state, input, { at: now(), iso: new Date(time()).toISOString(), release: deckAdapter.release() })
    state = turn.state
    for (const command of turn.commands) perform(command)
  }

  /** @param {Command} command */
  function perform (command) {
    switch (command.type) {
      case 'write': return writeDocument(command)
      case 'remember': return remember(command.memory)
      case 'begin': return runOwnRollout(() => deckAdapter.begin(command.document))
      case 'roll-back': return runOwnRollout(() => deckAdapter.rollBack(command.release, command.document))
      case 'abort': return abortOwnRollout(command)
      case 'read': return readDocument()
      case 'wake': return setAlarm(command)
    }
  }

  /** @param {CommandOf<'write'>} command */
  async function writeDocument ({ document, before, revision, news }) {
    const told = await rolloutStore.write(document, revision)
    if (told.is === 'away') return handleAway()
    if (told.is === 'refused') return dispatchInput({ type: 'refused' })
    written = told.revision
    onWritten(document, before)
    if (news) tell(news.event, news.message)
    dispatchInput({ type: 'written', document, revision: told.revision })
    showDocument(document)
  }

  /** @param {() => Promise<number>} work */
  async function runOwnRollout (work) {
    try {
      dispatchInput({ type: 'began', rollout: await work() })
    } catch (error) {
      dispatchInput({ type: 'ended', result: { state: 'failed', reason: errorText(error) } })
    }
  }

  /** @param {CommandOf<'abort'>} command */
  function abortOwnRollout ({ rollout, document }) {
    try {
      deckAdapter.abort(rollout, document)
    } catch (error) {
      // The rollout has just ended; its end is an input of its own.
      tell('fleet.abort-refused', errorText(error))
    }
  }

  /** @param {CommandOf<'wake'>} command */
  function setAlarm ({ ms }) {
    timers.clearTimeout(alarm)
    alarm = timers.setTimeout(() => dispatchInput({ type: 'look' }), Math.min(ms, MAX_TIMER_MS))
    alarm?.unref?.()
  }
}
