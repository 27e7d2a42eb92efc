import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '../../support/ports.js'
import { cpuMs, pssMegabytes, rssMegabytes } from '../../support/process-figures.js'
import { answerTimes, keepBusy, largestShare } from '../connections.js'
import { median, quantile } from '../figures.js'
import { ask, HUNG_MS, load, pin, saturate, untilAnswer, untilAnswered } from './client.js'

/** @typedef {import('./peers.js').Peer} Peer */
/** @typedef {import('./peers.js').Running} Running */
/** @typedef {Record<string, number | string>} Cell figures by their name; a text where there is none */
/** @typedef {{ rounds: number, seconds: number, connections: number[] }} Pace */
/**
 * What is measured, of each peer in turn, round by round.
 * @typedef {object} Row
 * @property {string} title
 * @property {string[]} figures  their names, in their order
 * @property {string[]} [without]  peers to which it means nothing
 * @property {string[]} [also]  variants that it is about
 * @property {number} workers
 * @property {boolean} [isExtra]  a quick run does without it
 * @property {boolean} [isGentle]  leaves those that run as they were: a quick run goes on with them
 * @property {{ starts: number, turns: number }} [often]  measured in many short turns instead of the rounds, with new processes at each start
 * @property {{ figure: string, peer: string, as: [median: string, half: string] }} [ratio]  of the same turns: its median, and between which values half of them are
 * @property {(running: Running, pace: Pace) => Promise<Cell>} [measure]  of one that runs through all rounds
 * @property {(peer: Peer, pace: Pace) => Promise<Cell>} [measureFrom]  of one that is started for it
 */

const WORKERS = 2
const MANY = 8
const LONG_LIVED = 160
const SINGLE = ['node']
const QUICK_KINDS = ['/hello', '/express']
const KINDS = Object.freeze({ hello: '/hello', express: '/express', 'fib(30)': '/fib', '5,000,000 turns': '/loop5m', '999,999 turns': '/loop1m', '3 MB': '/payload' })

/** @type {Record<string, Row>} by the name that a flag has */
export const ROWS = Object.freeze({
  ...Object.fromEntries(Object.entries(KINDS).map(([kind, path]) => [path.slice(1), {
    title: `${kind}: requests a second, by connections`,
    figures: [],
    workers: WORKERS,
    isExtra: !QUICK_KINDS.includes(path),
    isGentle: true,
    measure: async (/** @type {Running} */ { port }, /** @type {Pace} */ { connections, seconds }) => {
      const cell = /** @type {Cell} */ ({})
      for (const count of connections) {
        const { perSecond, failed } = await load(port, { path, connections: count, seconds })
        cell[count] = failed > 0 ? `${failed} failed` : perSecond
      }
      return cell
    }
  }])),

  closing: {
    title: 'A connection per request, 32 at a time',
    figures: ['requests/s', 'p99 ms'],
    workers: WORKERS,
    isGentle: true,
    async measure ({ port }, { seconds }) {
      const { perSecond, p99Ms } = await load(port, { connections: 32, seconds, isClosing: true })
      return { 'requests/s': perSecond, 'p99 ms': p99Ms }
    }
  },

  cpu: {
    title: 'CPU of one worker per request, keep-alive, 8 connections, one worker on a core of its own',
    figures: ['µs', '÷ shared', 'half of the turns'],
    without: [...SINGLE, 'watt'],
    also: ['again'],
    workers: 1,
    often: { starts: 3, turns: 12 },
    ratio: { figure: 'µs', peer: 'shared', as: ['÷ shared', 'half of the turns'] },
    async measure ({ port, workers }) {
      const pids = await workers()
      await pin(pids)
      const before = cpuMs(pids)
      const total = await saturate(port, { connections: 8, seconds: 1 })
      return { µs: 1000 * (cpuMs(pids) - before) / total }
    }
  },

  spread: {
    title: `${LONG_LIVED} long-lived connections over ${MANY} workers: the largest share of a worker ÷ the mean`,
    figures: ['10 ms apart', 'at once'],
    without: SINGLE,
    workers: MANY,
    isGentle: true,
    async measure ({ port }) {
      const share = (/** @type {number} */ gapMs) => largestShare({ port, path: '/who' }, { connections: LONG_LIVED, workers: MANY, gapMs })
      return { '10 ms apart': await share(10), 'at once': await share(0) }
    }
  },

  busy: {
    title: `A fresh connection every 50 ms while two of ${MANY} workers are in JavaScript for a second at a time: the first answer`,
    figures: ['p50 ms', 'p99 ms'],
    without: SINGLE,
    workers: MANY,
    isGentle: true,
    async measure ({ port }, { seconds }) {
      const end = await keepBusy({ port, path: '/who' }, { count: 2, busyPath: '/busy' })
      const times = await answerTimes({ port, path: '/who' }, { everyMs: 50, seconds: 2 * seconds })
      await end()
      return { 'p50 ms': quantile(times, 0.5), 'p99 ms': quantile(times, 0.99) }
    }
  },

  reload: {
    title: 'A rolling restart of two workers under 32 keep-alive connections',
    figures: ['failed', 'of requests', 'seconds', 'p99 during ÷ before', 'requests/s during ÷ before'],
    without: [...SINGLE, 'shared', 'round-robin'],
    also: ['restart'],
    workers: WORKERS,
    async measure ({ port, reload }, { seconds }) {
      const before = await load(port, { connections: 32, seconds: 2 * seconds })
      const loading = load(port, { connections: 32, seconds: 5 })
      await wait(1000)
      const begunAt = performance.now()
      await reload?.()
      const took = (performance.now() - begunAt) / 1000
      const during = await loading
      return {
        failed: during.failed,
        'of requests': during.total,
        seconds: took,
        'p99 during ÷ before': during.p99Ms / before.p99Ms,
        'requests/s during ÷ before': during.perSecond / before.perSecond
      }
    }
  },

  'kill-one': { ...killRow('One of two workers is SIGKILLed', 1), isExtra: true },
  'kill-all': killRow('Both workers are SIGKILLed', WORKERS),

  rest: {
    title: 'At rest, two workers: what manages them',
    figures: ['processes', 'MB', 'MB of its own', 'CPU ms a minute'],
    without: SINGLE,
    workers: WORKERS,
    isExtra: true,
    async measure ({ managers }, { seconds }) {
      const pids = managers()
      const before = cpuMs(pids)
      await wait(5000 * seconds)
      return {
        processes: pids.length,
        MB: rssMegabytes(pids),
        'MB of its own': pssMegabytes(pids),
        'CPU ms a minute': (cpuMs(pids) - before) / (5 * seconds) * 60
      }
    }
  },

  start: {
    title: 'From the start of the command to the first answer, two workers',
    figures: ['ms'],
    workers: WORKERS,
    async measureFrom (peer) {
      const port = await freePort()
      const begunAt = performance.now()
      const answered = untilAnswer(port).then(() => performance.now())
      const running = await peer.start(WORKERS, port)
      const ms = await answered - begunAt
      await running.stop()
      return { ms }
    }
  }
})

/** @param {string} title @param {number} count @returns {Row} */
function killRow (title, count) {
  return {
    title: `${title}, a fresh connection every 10 ms`,
    figures: ['failed', 'hung', 'ms to full strength'],
    without: [...SINGLE, 'watt'],
    also: ['standby'],
    workers: WORKERS,
    // Anew for each round: who has died before may come back later.
    async measureFrom (peer) {
      const running = await peer.start(WORKERS, await freePort())
      const cell = await killSome(running)
      await running.stop()
      return cell
    }
  }

  /** @param {Running} running @returns {Promise<Cell>} */
  async function killSome ({ port, workers }) {
    const before = await untilAnswered(port, WORKERS)
    const victims = (await workers()).filter((pid) => before.some((who) => who.startsWith(`${pid}.`))).slice(0, count)
    const over = new AbortController()
    const failures = /** @type {string[]} */ ([])
    const onFailure = (/** @type {Error} */ { name }) => { failures.push(name) }
    const asking = askEvery(port, { over: over.signal, onFailure })
    await wait(200)
    const killedAt = performance.now()
    for (const pid of victims) process.kill(pid, 'SIGKILL')
    const gone = before.filter((who) => victims.some((pid) => who.startsWith(`${pid}.`)))
    await untilAnswered(port, WORKERS, { others: gone, onFailure })
    const took = performance.now() - killedAt
    await wait(HUNG_MS + 300)
    over.abort()
    await asking
    const hung = failures.filter((name) => name === 'TimeoutError').length
    return { failed: failures.length - hung, hung, 'ms to full strength': took }
  }
}

/** @param {number} port @param {{ over: AbortSignal, onFailure: (error: Error) => void }} how */
async function askEvery (port, { over, onFailure }) {
  const all = []
  while (!over.aborted) {
    all.push(ask(port, '/hello').catch(onFailure))
    await wait(10)
  }
  await Promise.all(all)
}

/** @param {number[]} values */
function sum (values) {
  return values.reduce((total, value) => total + value, 0)
}

/**
 * @param {Cell[]} cells of the rounds @returns {Cell} the medians; of what failed or hung all of it
 */
export function combine (cells) {
  return Object.fromEntries(Object.keys(cells[0]).map((name) => {
    const values = cells.map((cell) => cell[name])
    const text = values.find((value) => typeof value === 'string')
    if (text !== undefined) return [name, text]
    const numbers = /** @type {number[]} */ (values)
    return [name, ['failed', 'hung', 'of requests'].includes(name) ? sum(numbers) : median(numbers)]
  }))
}

/**
 * @param {Map<string, Cell[]>} cells of the turns, by peer @param {NonNullable<Row['ratio']>} ratio
 * @returns {Map<string, Cell>} what is added to each peer's figures
 */
export function ratiosOf (cells, { figure, peer, as: [middle, half] }) {
  const own = cells.get(peer) ?? []
  return new Map([...cells].map(([name, turns]) => {
    const ratios = turns.map((cell, turn) => Number(cell[figure]) / Number(own[turn]?.[figure]))
    const [low, high] = [0.25, 0.75].map((share) => quantile(ratios, share)?.toFixed(2))
    return [name, { [middle]: median(ratios), [half]: `${low} to ${high}` }]
  }))
}
