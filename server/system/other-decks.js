import { DeckError } from '../errors.js'
import { askSignInLink, askStatus, idOf, isOnLoopback } from './other-deck.js'
import { isAlive } from './process-identity.js'
import { runningDecks } from './running-decks.js'

/**
 * The decks of this user on this machine, as one of them sees the others.
 * @typedef {import('./running-decks.js').RunningDeck} RunningDeck
 * @typedef {ReturnType<typeof createOtherDecks>} OtherDecks
 * @typedef {'answers' | 'silent' | 'restarting' | 'elsewhere'} Presence  `silent`: its master lives and does not answer; `restarting`: its keeper lives alone; `elsewhere`: its admin page is not on loopback, so it was not asked
 * @typedef {{ id: string, name: string, cwd: string, adminUrl: string, publicUrl: string | null, presence: Presence, status: any }} OtherDeck  `publicUrl`: for people, where that is another one; `status`: null unless it answers
 */

const LOOK_EVERY_MS = 2000
const ASK_WITHIN_MS = 1000
const LINK_WITHIN_MS = 5000

/**
 * @param {object} parts
 * @param {(deck: RunningDeck) => boolean} parts.isOwn  whether it is run by the one who asks
 * @param {() => RunningDeck[]} [parts.list]
 * @param {{ status: typeof askStatus, signInLink: typeof askSignInLink }} [parts.ask]
 * @param {() => number} [parts.now]  ms, of any clock
 */
export function createOtherDecks ({ isOwn, list = runningDecks, ask = { status: askStatus, signInLink: askSignInLink }, now = () => performance.now() }) {
  const known = keepFor(LOOK_EVERY_MS, readDecks, now)
  const asked = keepFor(LOOK_EVERY_MS, () => Promise.all(readDecks().map(lookAtDeck)), now)

  return {
    /** Those that are registered: nobody is asked. @returns {{ id: string, name: string, cwd: string }[]} */
    list: () => known().map(({ name, cwd, dataDir }) => ({ id: idOf({ dataDir }), name, cwd })),

    /** Each is asked, all at once; those who ask at about the same time share the answers. @returns {Promise<OtherDeck[]>} */
    health: asked,

    /**
     * @param {string} id @returns {Pick<OtherDeck, 'id' | 'name' | 'adminUrl' | 'publicUrl'>} as it is registered now
     * @throws {DeckError} not-found
     */
    get: (id) => addressOf(findDeck(id)),

    /**
     * A link into another one, for the user of this one.
     * @param {string} id @param {Parameters<typeof askSignInLink>[1]} order
     * @returns {Promise<{ code: string, url: string }>} see askSignInLink()
     * @throws {DeckError} not-found, no-master
     */
    signInLink: async (id, order) => ask.signInLink(findDeck(id), order, { timeoutMs: LINK_WITHIN_MS })
  }

  /** @returns {RunningDeck[]} */
  function readDecks () {
    try {
      return list().filter((deck) => !isOwn(deck))
    } catch (error) {
      // runtime-dir-unusable: the log of this master says so, and its own registration has failed too.
      if (error instanceof DeckError) return []
      throw error
    }
  }

  /** @param {string} id */
  function findDeck (id) {
    const found = readDecks().find((deck) => idOf(deck) === id)
    if (!found) throw new DeckError('not-found', 'This deck does not run any more')
    return found
  }

  /** @param {RunningDeck} deck @returns {Promise<OtherDeck>} */
  async function lookAtDeck (deck) {
    const toOtherDeck = (/** @type {Presence} */ presence, status = null) => ({ ...addressOf(deck), cwd: deck.cwd, presence, status })
    if (!isAlive(deck.master)) return toOtherDeck('restarting')
    if (!isOnLoopback(deck)) return toOtherDeck('elsewhere')
    try {
      return toOtherDeck('answers', await ask.status(deck, { timeoutMs: ASK_WITHIN_MS }))
    } catch (error) {
      if (error instanceof DeckError) return toOtherDeck('silent')
      throw error
    }
  }
}

/** @param {RunningDeck} deck */
function addressOf ({ dataDir, name, adminUrl, publicUrl = null }) {
  return { id: idOf({ dataDir }), name, adminUrl, publicUrl }
}

/**
 * @template T
 * @param {number} ms @param {() => T} make @param {() => number} now
 * @returns {() => T} the same for that long
 */
function keepFor (ms, make, now) {
  let madeAt = -Infinity
  /** @type {T} */
  let kept
  return () => {
    if (now() - madeAt >= ms) {
      madeAt = now()
      kept = make()
    }
    return kept
  }
}
