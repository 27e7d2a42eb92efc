import { createRateLimiter } from './rate-limiter.js'
import { createMember, reduceMember } from './member.js'
import { STATES } from './states.js'

/**
 * Does what a member decides about rollouts of its fleet: reads and writes the document, remembers, and has its own deck deploy.
 * @typedef {ReturnType<typeof createMemberRuntime>} MemberRuntime
 * @typedef {import('./rollout.js').FleetRollout} FleetRollout
 * @typedef {{ begin: (document: FleetRollout) => Promise<number>, rollBack: (release: string | null, document: FleetRollout) => Promise<number>, abort: (rollout: number, document: FleetRollout) => void, release: () => string | null }} DeckAdapter
 *   `begin`, `rollBack`: resolve with the number of the own rollout; they throw what the deck refuses it with
 */

/** As a net under the announcements: one that is lost is not waited for. */
const LOOK_EVERY_MS = 10_000
const AGAIN_MS = 2000
const READ_EVERY_MS = 60_000
/** How long each change is read, once somebody has wanted to know. */
const ATTENTIVE_MS = 60_000
/** A flood of announcements is not read one by one: each may cost 10 ms. */
const READS = Object.freeze({ burst: 20, everyMs: 100 })
/** Of a timer. */
const LONGEST_MS = 2 ** 31 - 1

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
 * @param {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval'>} [parts.timers]
 */
export function createMemberRuntime ({ rolloutStore, member, boot, memory, remember, deckAdapter, tell, onWritten = () => {}, onDocument = () => {}, now = () => performance.now(), time = Date.now, timers = globalThis }) {
  let state = createMember({ member, boot, memory })
  /** What there is to show, while the next look is under way. @type {FleetRollout | null} */
  let last = null
  let isKnown = false
  let attentiveUntil = -Infinity
  /** Of NATS's state, when it was last read. @type {number | null} */
  let version = null
  /** The newest that was announced. @type {number | null} */
  let heard = null
  /** The newest that came otherwise than by reading. */
  let written = 0
  let readAt = -Infinity
  /** @type {Promise<void> | null} */
  let reading = null
  /** @type {Promise<void> | null} */
  let next = null
  /** @type {any} */
  let alarm = null
  /** @type {any} */
  let again = null
  /** @type {any} */
  let soon = null
  const waitMs = createRateLimiter({ ...READS, now })
  let isClosed = false
  const every = timers.setInterval(checkVersion, LOOK_EVERY_MS)
  every?.unref?.()
  rolloutStore.follow((announcement) => {
    heard = announcement.revision
    if (concerns(announcement)) readSoon()
  }, readDocument)

  /** @type {Record<import('./member.js').Command['type'], (command: any) => unknown>} */
  const DO = {
    write: writeDocument,
    remember: (command) => remember(command.memory),
    begin: ({ document }) => runOwnRollout(() => deckAdapter.begin(document)),
    'roll-back': ({ release, document }) => runOwnRollout(() => deckAdapter.rollBack(release, document)),
    abort: abortOwnRollout,
    read: readDocument,
    wake: setAlarm
  }

  return {
    /** As it was last seen; for a while each change will be. @returns {FleetRollout | null} */
    get document () {
      payAttention()
      return last
    },

    /** Whether this master has seen what there is, be it none. */
    get isKnown () { return isKnown },

    /** As it is now, or as it was last seen where NATS is away. @returns {Promise<FleetRollout | null>} */
    async newest () {
      payAttention()
      await readDocument()
      return last
    },

    /** What it has seen of all. @returns {{ rollout: number, revision: number }} */
    get seen () { return { rollout: state.memory.rollout, revision: state.memory.revision } },

    /** @param {FleetRollout} document @param {number} revision */
    see (document, revision) {
      written = revision
      dispatchInput({ type: 'seen', document, revision })
      showDocument(document)
    },

    /** NATS has gone. */
    away: () => dispatchInput({ type: 'away' }),

    /** @param {boolean} isOwn  whether its name is its own */
    named: (isOwn) => dispatchInput({ type: 'named', isOwn }),

    /** @param {import('./member.js').Result} result  of the own rollout that was begun for the fleet */
    ended: (result) => dispatchInput({ type: 'ended', result }),

    /** What it has done for the fleet does not last: its deck goes back by itself. @param {{ release: string | null, reason: string }} what  `release`: that it goes back from */
    undone: (what) => dispatchInput({ type: 'undone', ...what }),

    /** What it does for the fleet, while it does it. @returns {{ fleet: string, rollout: number | null, way: 'forward' | 'back', isAborted: boolean } | null} `fleet`: the uid of its rollout */
    get task () {
      const { task } = state.memory
      return task && task.result === null ? { fleet: task.fleet, rollout: task.rollout, way: task.way, isAborted: state.isAborting } : null
    },

    close () {
      isClosed = true
      timers.clearInterval(every)
      timers.clearTimeout(alarm)
      timers.clearTimeout(again)
      timers.clearTimeout(soon)
    }
  }

  function payAttention () {
    if (now() >= attentiveUntil) readDocument()
    attentiveUntil = now() + ATTENTIVE_MS
  }

  /** With many members most changes concern few of them. @param {import('./rollout-store.js').Announcement} announcement */
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
      soon = null
      readSoon()
    }, ms)
    soon?.unref?.()
  }

  /** What was announced has been read by whom it concerns; what was not, and now and then all of it, is read by all. */
  async function checkVersion () {
    const found = await rolloutStore.version()
    const isHeard = found !== null && (found === version || found === heard)
    if (isHeard && now() - readAt < patience()) return
    await readDocument()
    version = found
  }

  /** So that whoever is late in its turn is seen, without all of many reading all the time. */
  function patience () {
    const document = state.known?.document
    return !document || STATES[document.state].done ? Infinity : Math.min(Math.max(document.deadlineMs / 4, LOOK_EVERY_MS), READ_EVERY_MS)
  }

  /** @returns {Promise<void>} whoever asks while one is under way waits for the one after it: that one may have been too early */
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
    // What was written meanwhile was faster than the answer.
    if (written !== before && found.value.revision < written) return readOnce()
    dispatchInput({ type: 'seen', ...found.value })
    showDocument(found.value.document)
  }

  /** NATS gives no answer, though it may be connected: as while its servers elect a leader. */
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
    for (const command of turn.commands) DO[command.type](command)
  }

  /** @param {{ document: FleetRollout, revision: number, news?: import('./member.js').News }} command */
  async function writeDocument ({ document, revision, news }) {
    const before = /** @type {FleetRollout} */ (state.known?.document)
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
    } catch (/** @type {any} */ error) {
      dispatchInput({ type: 'ended', result: { state: 'failed', reason: error.message } })
    }
  }

  /** @param {{ rollout: number, document: FleetRollout }} command */
  function abortOwnRollout ({ rollout, document }) {
    try {
      deckAdapter.abort(rollout, document)
    } catch (/** @type {any} */ error) {
      // It has ended in this moment, which is told by itself.
      tell('fleet.abort-refused', error.message)
    }
  }

  /** @param {{ ms: number }} command */
  function setAlarm ({ ms }) {
    timers.clearTimeout(alarm)
    alarm = timers.setTimeout(() => dispatchInput({ type: 'look' }), Math.min(ms, LONGEST_MS))
    alarm?.unref?.()
  }
}
