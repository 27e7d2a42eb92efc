import path from 'node:path'
import { startDeck, type TestOwner as Owner } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { createReleases } from '../support/releases.ts'
import { PLACES_OF_HOST, type Place } from '../support/places.ts'
import { lacksSmallDisk, smallDisk } from '../support/small-disk.ts'
import { openHostOfShop, openShop } from './shop.ts'
import { ENDINGS } from './story.ts'
import type { DeckClient } from '../support/deck-client.ts'
import type { Scene } from './camera.ts'

/** How a deck can be. Most are endings of one story; where a real deck is brought there within seconds, it is one. */

const WORKERS = 4

/** `places`: all that there is to be seen; `hasStillPages`: those too which show nothing of the state */
type State = { name: string, make: (owner: Owner) => Promise<Scene>, skip?: string | false, hasStillPages?: boolean,
  places?: readonly Place[] }

export const STATES: readonly State[] = Object.freeze([{ name: 'healthy', make: (owner) => openShop(owner),
  hasStillPages: true }, { name: 'host', make: openHostOfShop, places: PLACES_OF_HOST },
  ...Object.entries(ENDINGS).map(([name, ending]) => ({ name, make: (owner: Owner) => openShop(owner, { ending }) })), {
  name: 'master-lost',
  make: masterLost
}, { name: 'offline', make: offline }, { name: 'full-disk', make: fullDisk, skip: lacksSmallDisk }, { name: 'empty',
  make: empty }])

async function masterLost (owner: Owner) {
  const { entry } = await createReleases('hello.js')
  const deck = await startDeck(owner, entry, { workers: WORKERS })
  await deck.until({ ready: WORKERS })
  await deck.loseMaster()
  await deck.until({ ready: WORKERS })
  return sceneOf(deck)
}

async function offline (owner: Owner) {
  const { close, ...scene } = await openShop(owner)
  return { ...scene, leave: close }
}

async function fullDisk (owner: Owner) {
  const disk = smallDisk(owner)
  const deck = await startDeck(owner, 'hello.js', { workers: WORKERS, dataDir: path.join(disk.folder, 'data') })
  const { workers: [{ pid }] } = await deck.until({ ready: WORKERS })
  disk.fill()
  process.kill(pid, 'SIGKILL')
  await deck.untilEvent(({ type }) => type === 'history.degraded', 'the news of the full disk')
  await deck.until({ ready: WORKERS })
  return sceneOf(deck)
}

async function empty (owner: Owner) {
  const deck = await startDeckHere(owner, 'hello.js', { workers: 1 })
  await deck.until({ ready: 1 })
  return sceneOf(deck)
}

function sceneOf (deck: DeckClient): Scene {
  return { url: deck.adminUrl, signInLink: deck.signInLink,
    ask: async <T>(where: string) => (await deck.api<T>(where)).body as T }
}
