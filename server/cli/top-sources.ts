import { DeckError } from '../errors.ts'
import { flagOfDeck, namesDeck } from './deck-options.ts'
import { findMaster, findMasterAt, findNext, type Master } from './find-master.ts'
import { findHost } from './host.ts'
import { decksHere, findTargets } from './known-apps.ts'
import { misuse } from './usage.ts'
import type { AppView } from '../api/apps.ts'
import type { Options } from './commands.ts'
import type { Place } from './program.ts'

/** Who tells `clusterdeck top` of apps: the host of a user, or a deck in the foreground. `isMeant`: which of its apps */
export type Source = { master: Master, isMeant: (app: AppView) => boolean }

/**
 * Finds who is to be asked: for the named apps, for that of the named master, else for all apps of this user. Returns
 * `find`: the masters that run now; `chosen`: the data folder of the app that is meant first.
 * @throws {DeckError} as findMaster() and findTargets() do
 */
export async function findSources (names: readonly string[], options: Options,
  place: Place): Promise<{ find: () => Promise<Source[]>, chosen: string | null }>
{
  const flag = flagOfDeck(options)
  if (names.length > 0 && flag !== null) throw misuse('top', `either an app or ${flag}`, 'both')
  if (names.length > 0) {
    const targets = await findTargets('top', names, place)
    const isMeant = ({ name, dataDir }: AppView) =>
      targets.some((target) => target.dataDir === null ? target.name === name : target.dataDir === dataDir)
    return { find: () => findAll(place, isMeant), chosen: null }
  }
  if (namesDeck(options, place.env)) {
    const first = await findMaster(options, place)
    return { find: async () => [ofMaster(await findNext(first, options, place))], chosen: null }
  }
  // The app of this folder is meant first.
  const chosen = await findMaster({}, place).then(({ dataDir }) => dataDir, () => null)
  return { find: () => findAll(place, () => true), chosen }
}

/** An app of a host is told of by its host. */
function ofMaster (master: Master): Source {
  const { app } = master
  return app === null
    ? { master, isMeant: () => true }
    : { master: { ...master, url: app.hostUrl }, isMeant: ({ name }) => name === app.name }
}

/** @returns the host, and decks that are not in it */
async function findAll (place: Place, isMeant: Source['isMeant']): Promise<Source[]> {
  const host = findHost(place.env)
  const decks = decksHere(place.env).filter(({ isInHost }) => !isInHost)
  const masters = await Promise.all(decks.map(({ dataDir }) => findMasterAt(String(dataDir), place).catch(nullIfKnown)))
  return [host, ...masters].flatMap((master) => master === null ? [] : [{ master, isMeant }])
}

/** The folder of a deck that is ending says nothing. @throws {unknown} what is no error of a call */
export function nullIfKnown (error: unknown): null {
  if (error instanceof DeckError) return null
  throw error
}
