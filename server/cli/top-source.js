import { DeckError } from '../errors.js'
import { keepConnections } from '../system/http.js'
import { createApiClient } from './api-client.js'
import { areRequestsCounted } from './output.js'

/**
 * Who tells `clusterdeck top` of apps: a host of several, or the master of one.
 *
 * @typedef {import('./top-model.js').App} App
 * @typedef {import('./find-master.js').Master} Master
 * @typedef {import('./host.js').AppView} AppView
 * @typedef {import('./output.js').Status} Status
 * @typedef {ReturnType<typeof createSource>} Source
 */

/** A master that does not answer within this time is replaced, or does so by the next look. */
const ANSWER_WITHIN_MS = 5000

/**
 * @param {object} parts
 * @param {string} parts.name no other source has it
 * @param {Master} parts.master
 * @param {() => Promise<Master>} parts.findAgain finds the master that has followed
 * @param {boolean} parts.isHost
 * @param {((app: { name: string }) => boolean)} [parts.isMeant] which apps of the host; default: all
 */
export function createSource ({ name: source, master: first, findAgain, isHost, isMeant = () => true }) {
  let master = withAgent(first)
  /** @type {number | null} of the master that has answered last */
  let pid = null
  let isLost = false

  return {
    name: source,
    isHost,

    /**
     * @returns {Promise<{ apps: App[], status: Status | null, notice: string | null }>} `status`: of the only app; `notice`: a change of the master
     * @throws {DeckError} as the API client does
     */
    async read () {
      try {
        const { apps, status } = await readAgain()
        return { apps, status, notice: noteMaster(status?.master.pid ?? master.recipient?.processes[0].pid ?? null) }
      } catch (error) {
        isLost ||= isLoss(error)
        throw error
      }
    },

    /** @param {App} app @returns {Promise<Status>} */
    readStatus: (app) => call().get(`${pathOf(app)}/status`),

    /** @param {App} app @returns {string} of its calls */
    pathOf,

    call,

    /** @param {App} app @param {{ lines: number, place: string | undefined, until: AbortSignal }} from */
    streamLogs: (app, { lines, place, until }) =>
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
    const { items } = await call().get('/apps')
    return { apps: items.filter(isMeant).map((/** @type {AppView} */ view) => appOfHost(view, source)), status: null }
  }

  async function readDeck () {
    const status = await call().get('/status')
    return { apps: [appOfDeck(status, source)], status }
  }

  /** @param {App} app */
  function pathOf ({ name }) {
    return isHost ? `/apps/${name}` : ''
  }

  /** @param {AbortSignal} [signal] */
  function call (signal) {
    return createApiClient(master, { timeoutMs: ANSWER_WITHIN_MS, signal, findAgain: findNext })
  }

  async function findNext () {
    const next = await findAgain()
    master.agent.destroy()
    master = withAgent(next)
    return master
  }

  /** @param {number | null} now @returns {string | null} */
  function noteMaster (now) {
    const [before, wasLost] = [pid, isLost]
    pid = now
    isLost = false
    if (before !== null && now !== before) return `master ${now} has replaced master ${before}`
    return wasLost && before !== null ? `master ${now} answers again` : null
  }
}

/** @param {Master} master */
function withAgent (master) {
  return { ...master, agent: keepConnections(master.url, master) }
}

/** @param {unknown} error @returns {error is DeckError} nobody has answered */
export function isLoss (error) {
  return error instanceof DeckError && ['no-master', 'timed-out'].includes(error.code)
}

/** @param {AppView} view @param {string} source @returns {App} */
function appOfHost ({ name, dataDir, state, reason, health, workers, cpu, memoryBytes, requestsPerSecond, p99Ms, restarts, release, addresses }, source) {
  return { key: `${source} ${name}`, name, source, dataDir, isInHost: true, state, reason, health, workers, cpu, memoryBytes, requestsPerSecond, p99Ms, restarts, release, addresses }
}

/** @param {Status} status @param {string} source @returns {App} */
function appOfDeck ({ state, app, health, readyWorkers, finishedWorkers, desiredWorkers, workers, release }, source) {
  const vitals = workers.flatMap((worker) => worker.vitals ?? [])
  const latencies = vitals.flatMap(({ latencyP99Ms }) => latencyP99Ms ?? [])
  return {
    key: source,
    name: app.name,
    source,
    dataDir: source,
    isInHost: false,
    state,
    reason: null,
    health,
    workers: { ready: readyWorkers + finishedWorkers, desired: desiredWorkers },
    cpu: sumOf(vitals.map(({ cpuPercent }) => cpuPercent)),
    memoryBytes: sumOf(vitals.map(({ rssBytes }) => rssBytes)),
    requestsPerSecond: areRequestsCounted(workers) ? sumOf(vitals.map(({ requestsPerSecond }) => requestsPerSecond)) : null,
    p99Ms: latencies.length === 0 ? null : Math.max(...latencies),
    restarts: sumOf(workers.map(({ restarts }) => restarts)),
    release: release?.id ?? null,
    addresses: app.addresses
  }
}

/** @param {(number | null)[]} values */
function sumOf (values) {
  return values.reduce((/** @type {number} */ total, value) => total + (value ?? 0), 0)
}
