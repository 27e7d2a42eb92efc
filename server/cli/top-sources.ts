import { DeckError } from '../errors.ts'
import { keepConnections } from '../system/http.ts'
import { createApiClient } from './api-client.ts'
import { flagOfDeck, namesDeck } from './deck-options.ts'
import { findMaster, findMasterAt, findNext, withoutPlace, type Master } from './find-master.ts'
import { expectHost, findHost } from './host.ts'
import { decksHere, findTargets, toTarget, type Target } from './known-apps.ts'
import { misuse } from './usage.ts'
import type { Options } from './commands.ts'
import type { Place } from './program.ts'
import type { App } from './top-model.ts'
import type { AppView } from '../api/apps.ts'
import type { Status } from '../api/cluster.ts'

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
  return createSource({ name: master.url, master, findAgain: () => findNext(master, options, place) })
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
  return createSource({ name: HOST, master: expectHost(env), findAgain: async () => expectHost(env), isMeant })
}

async function deckSource (target: Target['place'], place: Place) {
  const { env, cwd } = place
  const master = await findMaster(target, { env: withoutPlace(env), cwd })
  return createSource({ name: master.dataDir, master, findAgain: () => findMasterAt(master.dataDir, place) })
}

/** Who tells `clusterdeck top` of apps: the host of a user, or a deck in the foreground. */
export type Source = ReturnType<typeof createSource>

/** A master that does not answer within this time is replaced, or does so by the next look. */
const ANSWER_WITHIN_MS = 5000

function createSource ({ name: source, master: first, findAgain, isMeant = () => true }: {
  /** no other source has it */
  name: string,
  master: Master,
  /** finds the master that has followed */
  findAgain: () => Promise<Master>,
  /** which of its apps; default: all */
  isMeant?: (app: { name: string }) => boolean
}) {
  let master = withAgent(first)
  /** of the master that has answered last */
  let pid: number | null = null
  let isLost = false

  return {
    name: source,

    /**
     * Returns `notice`: a change of the master.
     * @throws {DeckError} as the API client does
     */
    async read (): Promise<{ apps: App[], notice: string | null }> {
      try {
        const apps = await readAgain()
        return { apps, notice: noteMaster(master.recipient?.processes[0].pid ?? null) }
      } catch (error) {
        isLost ||= isLoss(error)
        throw error
      }
    },

    readStatus: (app: App): Promise<Status> => call().get(`${pathOf(app)}/status`),

    /** @returns of its calls */
    pathOf,

    call,

    streamLogs: (app: App, { lines, place, until }: { lines: number, place: string | undefined, until: AbortSignal }) =>
      call().stream(`${pathOf(app)}/logs/stream?lines=${lines}`, { lastEventId: place, until }),

    close () {
      master.agent.destroy()
    }
  }

  /** A connection that was kept may have ended just now, and the next master may have another address. */
  async function readAgain () {
    try {
      return await readAll()
    } catch (error) {
      if (!isLoss(error)) throw error
      // Until the next one has written its address, the old one may still be right.
      await findNext().catch(() => {})
      if (error.code === 'timed-out') throw error
      return await readAll()
    }
  }

  async function readAll (): Promise<App[]> {
    const { items } = await call().get<{ items: AppView[] }>('/apps')
    return items.filter(isMeant).map((view) => appOf(view, source))
  }

  function pathOf ({ name }: App) {
    return `/apps/${name}`
  }

  function call (signal?: AbortSignal) {
    return createApiClient(master, { timeoutMs: ANSWER_WITHIN_MS, signal, findAgain: findNext })
  }

  async function findNext () {
    const next = await findAgain()
    master.agent.destroy()
    master = withAgent(next)
    return master
  }

  function noteMaster (now: number | null): string | null {
    const [before, wasLost] = [pid, isLost]
    pid = now
    isLost = false
    if (before !== null && now !== before) return `master ${now} has replaced master ${before}`
    return wasLost && before !== null ? `master ${now} answers again` : null
  }
}

function withAgent (master: Master) {
  return { ...master, agent: keepConnections(master.url, master) }
}

/** @returns nobody has answered */
export function isLoss (error: unknown): error is DeckError {
  return error instanceof DeckError && ['no-master', 'timed-out'].includes(error.code)
}

function appOf (
  { name, dataDir, state, reason, health, workers, cpu, memoryBytes, requestsPerSecond, p99Ms, restarts, release,
    addresses }: AppView,
  source: string
): App {
  return { key: `${source} ${name}`, name, source, dataDir, state, reason, health, workers, cpu, memoryBytes,
    requestsPerSecond, p99Ms, restarts, release, addresses }
}
