import { DeckError } from '../errors.ts'
import { keepConnections } from '../system/http.ts'
import { createApiClient } from './api-client.ts'
import { figuresOf } from '../figures.ts'
import type { App } from './top-model.ts'
import type { Master } from './find-master.ts'
import type { AppView } from '../api/apps.ts'
import type { Status } from '../api/cluster.ts'

/** Who tells `clusterdeck top` of apps: a host of several, or the master of one. */
export type Source = ReturnType<typeof createSource>

/** A master that does not answer within this time is replaced, or does so by the next look. */
const ANSWER_WITHIN_MS = 5000

export function createSource ({ name: source, master: first, findAgain, isHost, isMeant = () => true }: {
  /** no other source has it */
  name: string,
  master: Master,
  /** finds the master that has followed */
  findAgain: () => Promise<Master>,
  isHost: boolean,
  /** which apps of the host; default: all */
  isMeant?: (app: { name: string }) => boolean
}) {
  let master = withAgent(first)
  /** of the master that has answered last */
  let pid: number | null = null
  let isLost = false

  return {
    name: source,
    isHost,

    /**
     * Returns `status`: of the only app; `notice`: a change of the master.
     * @throws {DeckError} as the API client does
     */
    async read (): Promise<{ apps: App[], status: Status | null, notice: string | null }> {
      try {
        const { apps, status } = await readAgain()
        return { apps, status, notice: noteMaster(status?.master.pid ?? master.recipient?.processes[0].pid ?? null) }
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

  async function readAll () {
    return isHost ? await readHost() : await readDeck()
  }

  async function readHost () {
    const { items } = await call().get<{ items: AppView[] }>('/apps')
    return { apps: items.filter(isMeant).map((view) => appOfHost(view, source)), status: null }
  }

  async function readDeck () {
    const status = await call().get<Status>('/status')
    return { apps: [appOfDeck(status, source)], status }
  }

  function pathOf ({ name }: App) {
    return isHost ? `/apps/${name}` : ''
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

function appOfHost (
  { name, dataDir, state, reason, health, workers, cpu, memoryBytes, requestsPerSecond, p99Ms, restarts, release,
    addresses }: AppView,
  source: string
): App {
  return { key: `${source} ${name}`, name, source, dataDir, isInHost: true, state, reason, health, workers, cpu,
    memoryBytes, requestsPerSecond, p99Ms, restarts, release, addresses }
}

function appOfDeck ({ state, app, health, readyWorkers, finishedWorkers, desiredWorkers, workers, release }: Status,
  source: string): App
{
  return { key: source, name: app.name, source, dataDir: source, isInHost: false, state, reason: null, health,
    workers: { ready: readyWorkers + finishedWorkers, desired: desiredWorkers }, ...figuresOf(workers),
    release: release?.id ?? null, addresses: app.addresses }
}
