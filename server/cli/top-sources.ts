import { DeckError } from '../errors.ts'
import { createApiClient } from './api-client.ts'
import { flagOfDeck, namesDeck } from './deck-options.ts'
import { findMaster, findMasterAt, findNext, withoutPlace, type Master } from './find-master.ts'
import { expectHost, findHost } from './host.ts'
import { decksHere, findTargets, toTarget, type Target } from './known-apps.ts'
import { ANSWER_WITHIN_MS } from './reachable.ts'
import { createSource, type Source } from './top-source.ts'
import { misuse } from './usage.ts'
import type { Options } from './commands.ts'
import type { Place } from './program.ts'

export type Sources = {
  first: Source[],
  /** the data folder of the app that is meant first */
  chosen: string | null,
  /** finds those that have come since; null: only the first ones are meant */
  findMore: ((known: ReadonlySet<string>) => Promise<Source[]>) | null
}

const HOST = 'host'

/**
 * Finds who is to be asked: for the named apps, for that of the named master, else for all apps of this user.
 * @throws {DeckError} as findMaster() and findTargets() do
 */
export async function findSources (names: readonly string[], options: Options, place: Place): Promise<Sources> {
  const flag = flagOfDeck(options)
  if (names.length > 0 && flag !== null) throw misuse('top', `either an app or ${flag}`, 'both')
  if (names.length > 0) return { first: await sourcesOf(names, place), chosen: null, findMore: null }
  if (namesDeck(options, place.env)) return { first: [await sourceOfOne(options, place)], chosen: null, findMore: null }
  const findMore = (known: ReadonlySet<string>) => findAll(place, known)
  const first = await findMore(new Set())
  if (first.length === 0)
    throw new DeckError('no-master', 'top: no app of this user runs on this machine, nor does a host')
  // The app of this folder is meant first.
  const chosen = await findMaster({}, place).then(({ dataDir }) => dataDir, () => null)
  return { first, chosen, findMore }
}

async function sourcesOf (names: readonly string[], place: Place) {
  const targets = await findTargets('top', [...new Set(names)], place)
  const inHost = targets.filter(({ view }) => view !== null).map(({ name }) => name)
  const decks = targets.filter(({ view }) => view === null)
  return [...(inHost.length > 0 ? [hostSource(place, ({ name }) => inHost.includes(name))] : []),
    ...await Promise.all(decks.map(async (target) => await deckSource(target.place, place)))]
}

async function sourceOfOne (options: Options, place: Place) {
  const master = await findMaster(options, place)
  const { app } = master
  if (app !== null && findHost(place.env)?.url === app.hostUrl)
    return hostSource(place, ({ name }) => name === app.name)
  return createSource({ name: master.url, master, findAgain: () => findNext(master, options, place),
    isHost: await isHost(master) })
}

/** Who listens at an address may be a host. */
async function isHost (master: Master) {
  try {
    await createApiClient(master, { timeoutMs: ANSWER_WITHIN_MS }).get('/apps')
    return true
  } catch (error) {
    if (error instanceof DeckError && error.code === 'not-found') return false
    throw error
  }
}

/** @returns the host, and decks that are not in it */
async function findAll (place: Place, known: ReadonlySet<string>): Promise<Source[]> {
  const { env } = place
  const hasHost = findHost(env) !== null
  const decks = decksHere(env).filter(({ dataDir, isInHost }) => !known.has(String(dataDir)) && !(hasHost && isInHost))
  const found = await Promise.all(decks.map((deck) => deckSource(toTarget(deck).place, place).catch(nullIfUnreadable)))
  return [...(hasHost && !known.has(HOST) ? [hostSource(place)] : []), ...found.filter((source) => source !== null)]
}

/** @returns its folder says nothing, as that of a deck that is ending */
function nullIfUnreadable (error: unknown): null {
  if (error instanceof DeckError) return null
  throw error
}

function hostSource ({ env }: Place, isMeant?: (app: { name: string }) => boolean) {
  return createSource({ name: HOST, master: expectHost(env), findAgain: async () => expectHost(env), isHost: true,
    isMeant })
}

async function deckSource (target: Target['place'], place: Place) {
  const { env, cwd } = place
  const master = await findMaster(target, { env: withoutPlace(env), cwd })
  return createSource({ name: master.dataDir, master, findAgain: () => findMasterAt(master.dataDir, place),
    isHost: false })
}
