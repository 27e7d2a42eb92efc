import { DeckError } from '../errors.js'
import { runningDecks } from '../system/running-decks.js'
import { createApiClient } from './api-client.js'
import { flagOfDeck, namesDeck } from './deck-options.js'
import { findMasterAt, withoutPlace } from './deck-status.js'
import { findMaster } from './find-master.js'
import { expectHost, findHost } from './host.js'
import { ANSWER_WITHIN_MS } from './reachable.js'
import { findTargets } from './targets.js'
import { createSource } from './top-source.js'

/**
 * @typedef {import('./top-source.js').Source} Source
 * @typedef {{ env: Record<string, string | undefined>, cwd: string }} Place
 *
 * @typedef {object} Sources
 * @property {Source[]} first
 * @property {string | null} chosen the data folder of the app that is meant first
 * @property {((known: ReadonlySet<string>) => Promise<Source[]>) | null} findMore finds those that have come since; null: only the first ones are meant
 */

const HOST = 'host'
/** The address of an app of a host. */
const IN_HOST = /\/apps\/[^/]+$/

/**
 * Finds who is to be asked: for the named apps, for that of the named master, else for all apps of this user.
 * @param {readonly string[]} names @param {import('./commands.js').Options} options @param {Place} place
 * @returns {Promise<Sources>}
 * @throws {DeckError} as findMaster() and findTargets() do
 */
export async function findSources (names, options, place) {
  const flag = flagOfDeck(options)
  if (names.length > 0 && flag !== null) throw new DeckError('usage', `top: expected either an app or ${flag}, received both`)
  if (names.length > 0) return { first: await sourcesOf(names, place), chosen: null, findMore: null }
  if (namesDeck(options, place.env)) return { first: [await sourceOfOne(options, place)], chosen: null, findMore: null }
  const findMore = (/** @type {ReadonlySet<string>} */ known) => findAll(place, known)
  const first = await findMore(new Set())
  if (first.length === 0) throw new DeckError('no-master', 'top: no app of this user runs on this machine, nor does a host')
  // The app of this folder is meant first.
  const chosen = await findMaster({}, place).then(({ dataDir }) => dataDir, () => null)
  return { first, chosen, findMore }
}

/** @param {readonly string[]} names @param {Place} place */
async function sourcesOf (names, place) {
  const targets = await findTargets('top', [...new Set(names)], place)
  const inHost = targets.filter(({ view }) => view !== null).map(({ name }) => name)
  const decks = targets.filter(({ view }) => view === null)
  return [
    ...(inHost.length > 0 ? [hostSource(place, ({ name }) => inHost.includes(name))] : []),
    ...await Promise.all(decks.map(async (target) => await deckSource(target.place, place)))
  ]
}

/** @param {import('./commands.js').Options} options @param {Place} place */
async function sourceOfOne (options, place) {
  const master = await findMaster(options, place)
  const { app } = master
  if (app !== null && findHost(place.env)?.url === app.hostUrl) return hostSource(place, ({ name }) => name === app.name)
  const findAgain = () => findMaster({ ...options, dataDir: master.dataDir, name: undefined, app: undefined }, place)
  return createSource({ name: master.url, master, findAgain, isHost: await isHost(master) })
}

/** Who listens at an address may be a host. @param {import('./find-master.js').Master} master */
async function isHost (master) {
  try {
    await createApiClient(master, { timeoutMs: ANSWER_WITHIN_MS }).get('/apps')
    return true
  } catch (error) {
    if (error instanceof DeckError && error.code === 'not-found') return false
    throw error
  }
}

/** @param {Place} place @param {ReadonlySet<string>} known @returns {Promise<Source[]>} the host, and decks that are not in it */
async function findAll (place, known) {
  const { env } = place
  const hasHost = findHost(env) !== null
  const decks = runningDecks(env).filter(({ dataDir, adminUrl }) => !known.has(dataDir) && !(hasHost && IN_HOST.test(adminUrl)))
  const found = await Promise.all(decks.map(({ dataDir }) => deckSource({ dataDir }, place).catch(nullIfUnreadable)))
  return [...(hasHost && !known.has(HOST) ? [hostSource(place)] : []), ...found.filter((source) => source !== null)]
}

/** @param {unknown} error @returns {null} its folder says nothing, as that of a deck that is ending */
function nullIfUnreadable (error) {
  if (error instanceof DeckError) return null
  throw error
}

/** @param {Place} place @param {(app: { name: string }) => boolean} [isMeant] */
function hostSource ({ env }, isMeant) {
  return createSource({ name: HOST, master: expectHost(env), findAgain: async () => expectHost(env), isHost: true, isMeant })
}

/** @param {import('./targets.js').Target['place']} target @param {Place} place */
async function deckSource (target, place) {
  const { env, cwd } = place
  const master = await findMaster(target, { env: withoutPlace(env), cwd })
  return createSource({ name: master.dataDir, master, findAgain: () => findMasterAt(master.dataDir, place), isHost: false })
}
