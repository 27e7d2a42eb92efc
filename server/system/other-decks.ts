import { DeckError } from '../errors.ts'
import { askSignInLink, askStatus, idOf, isOnLoopback } from './other-deck.ts'
import { isAlive } from './process-identity.ts'
import { runningDecks, type RunningDeck } from './running-decks.ts'

/** The decks of this user on this machine, as one of them sees the others. */
export type OtherDecks = ReturnType<typeof createOtherDecks>
/**
 * `silent`: its master lives and does not answer; `restarting`: its keeper lives alone; `elsewhere`: its admin page is
 * not on loopback, so it was not asked
 */
export type Presence = 'answers' | 'silent' | 'restarting' | 'elsewhere'
/** `publicUrl`: for people, where that is another one; `status`: null unless it answers */
export type OtherDeck = { id: string, name: string, cwd: string, adminUrl: string, publicUrl: string | null,
  presence: Presence, status: unknown }

const LOOK_EVERY_MS = 2000
const ASK_WITHIN_MS = 1000
const LINK_WITHIN_MS = 5000

export function createOtherDecks (
  { isOwn, list = runningDecks, ask = { status: askStatus, signInLink: askSignInLink }, now = () => performance.now() }:
    {
      /** whether it is run by the one who asks */
      isOwn: (deck: RunningDeck) => boolean,
      list?: () => RunningDeck[],
      ask?: { status: typeof askStatus, signInLink: typeof askSignInLink },
      /** ms, of any clock */
      now?: () => number
    }
) {
  const known = keepFor(LOOK_EVERY_MS, readDecks, now)
  const asked = keepFor(LOOK_EVERY_MS, () => Promise.all(readDecks().map(lookAtDeck)), now)

  return {
    /** Those that are registered: nobody is asked. */
    list: (): { id: string, name: string, cwd: string }[] =>
      known().map(({ name, cwd, dataDir }) => ({ id: idOf({ dataDir }), name, cwd })),

    /** Each is asked, all at once; those who ask at about the same time share the answers. */
    health: asked,

    /** @returns as it is registered now @throws {DeckError} not-found */
    get: (id: string): Pick<OtherDeck, 'id' | 'name' | 'adminUrl' | 'publicUrl'> => addressOf(findDeck(id)),

    /**
     * A link into another one, for the user of this one. Returns see askSignInLink().
     * @throws {DeckError} not-found, no-master
     */
    signInLink: async (id: string,
      order: Parameters<typeof askSignInLink>[1]): Promise<{ code: string, url: string }> =>
      ask.signInLink(findDeck(id), order, { timeoutMs: LINK_WITHIN_MS })
  }

  function readDecks (): RunningDeck[] {
    try {
      return list().filter((deck) => !isOwn(deck))
    } catch (error) {
      // runtime-dir-unusable: the log of this master says so, and its own registration has failed too.
      if (error instanceof DeckError) return []
      throw error
    }
  }

  function findDeck (id: string) {
    const found = readDecks().find((deck) => idOf(deck) === id)
    if (!found) throw new DeckError('not-found', 'This deck does not run any more')
    return found
  }

  async function lookAtDeck (deck: RunningDeck): Promise<OtherDeck> {
    const toOtherDeck = (presence: Presence, status: unknown = null) => ({ ...addressOf(deck), cwd: deck.cwd, presence,
      status })
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

function addressOf ({ dataDir, name, adminUrl, publicUrl = null }: RunningDeck) {
  return { id: idOf({ dataDir }), name, adminUrl, publicUrl }
}

/** @returns the same for that long */
function keepFor<T> (ms: number, make: () => T, now: () => number): () => T {
  let madeAt = -Infinity
  let kept: T
  return () => {
    if (now() - madeAt >= ms) {
      madeAt = now()
      kept = make()
    }
    return kept
  }
}
