import { setTimeout as wait } from 'node:timers/promises'
import { cpuMs, ownMegabytes, pssMegabytes } from '../../support/process-figures.ts'
import { freePort } from '../../support/ports.ts'
import { answerTimes, keepBusy, largestShare } from './connections.ts'
import { quantile } from '../figures.ts'
import { loadAtRate, ONE_CORE, pin, saturate } from './client.ts'
import { measureInstall } from './installs.ts'
import { killAndWatch } from './kills.ts'
import { countSyscalls, timeFirstAnswer } from './starts.ts'
import type { Peer, Running } from './peers.ts'

/** figures by their name, of which less is better; a text where there is none */
export type Cell = Record<string, number | string>
type Pace = { seconds: number }
/** What is measured, of each peer in turn, round by round. */
export type Row = {
  title: string,
  /** their names, in their order */
  figures: string[],
  /** peers to which it means nothing */
  without?: string[],
  /** variants that it is about */
  also?: string[],
  /** variants that are compared too */
  pairs?: [own: string, peer: string][],
  workers: number,
  /** a quick run does without it */
  isExtra?: boolean,
  /** leaves those that run as they were, so the next row goes on with them */
  isGentle?: boolean,
  /** where its figures hardly vary, or it takes long */
  once?: 'each pass' | 'first pass',
  /** figures that are those of the same round ÷ those of another peer */
  ratios?: Record<string, { figure: string, to: string }>,
  /** of one that runs through the rounds of a pass */
  measure?: (running: Running, pace: Pace) => Promise<Cell>,
  /** of one that is started for it */
  measureFrom?: (peer: Peer) => Promise<Cell>
}

const WORKERS = 2
const MANY = 8
const LONG_LIVED = 160
const SINGLE = ['node']
/** Far below what the slowest here can do on one core. */
const REQUESTS_PER_SECOND = 5000
const CONNECTIONS_PER_SECOND = 500
const RESTARTED_AT_PER_SECOND = 2000
/** At rest: by then apps have loaded all they need, and garbage of the start has been collected. */
const SETTLES_MS = 20_000
const RESTS_MS = 20_000
/** Of what is looked at by somebody. */
const VIEWED_MS = 10_000
/** What has just started still loads, and its next worker would wait for that. */
const RUNS_MS = 3000
/** From the begin of a restart on. */
const WATCHED_MS = 2000

/** by the name that a flag has */
export const ROWS: Record<string, Row> = Object.freeze({
  cpu: {
    title:
      'CPU of one worker per request, in µs: as many requests as it answers over 8 keep-alive connections, the worker on a core of its own',
    figures: ['hello', 'hello ÷ shared', 'express', 'express ÷ shared'],
    without: SINGLE,
    workers: 1,
    ratios: { 'hello ÷ shared': { figure: 'hello', to: 'shared' },
      'express ÷ shared': { figure: 'express', to: 'shared' } },
    async measure (running) {
      const pids = await workersOf(running)
      await pin(pids, ONE_CORE)
      const perRequest = async (path: string) => {
        const before = cpuMs(pids)
        const total = await saturate(running.port, { path, connections: 8, seconds: 1 })
        return 1000 * (cpuMs(pids) - before) / total
      }
      return { hello: await perRequest('/hello'), express: await perRequest('/express') }
    }
  },

  rate: { title: `${REQUESTS_PER_SECOND.toLocaleString('en')} requests a second over 32 keep-alive connections`,
    figures: ['failed', 'p50 ms', 'p99 ms', 'CPU µs per request'], workers: WORKERS, isGentle: true,
    measure: (running, { seconds }) => measureRate(running, { perSecond: REQUESTS_PER_SECOND, seconds }) },

  closing: { title: `${CONNECTIONS_PER_SECOND} requests a second, a connection for each`,
    figures: ['failed', 'p50 ms', 'p99 ms', 'CPU µs per request'], workers: WORKERS, isGentle: true,
    measure: (running, { seconds }) =>
      measureRate(running, { perSecond: CONNECTIONS_PER_SECOND, seconds, isClosing: true }) },

  spread: {
    title: `${LONG_LIVED} long-lived connections over ${MANY} workers: the largest share of a worker ÷ the mean`,
    figures: ['10 ms apart', 'at once'],
    without: SINGLE,
    workers: MANY,
    isGentle: true,
    async measure ({ port }) {
      const share = (gapMs: number) =>
        largestShare({ port, path: '/who' }, { connections: LONG_LIVED, workers: MANY, gapMs })
      return { '10 ms apart': await share(10), 'at once': await share(0) }
    }
  },

  busy: {
    title:
      `A fresh connection every 50 ms while two of ${MANY} workers are in JavaScript for a second at a time: the first answer`,
    figures: ['p50 ms', 'p99 ms'],
    without: SINGLE,
    workers: MANY,
    isGentle: true,
    async measure ({ port }, { seconds }) {
      const end = await keepBusy({ port, path: '/who' }, { count: 2, busyPath: '/busy' })
      const times = await answerTimes({ port, path: '/who' }, { everyMs: 50, seconds })
      await end()
      return { 'p50 ms': quantile(times, 0.5), 'p99 ms': quantile(times, 0.99) }
    }
  },

  reload: {
    title: `A rolling restart of two workers under ${
      RESTARTED_AT_PER_SECOND.toLocaleString('en')
    } requests a second over 32 keep-alive connections`,
    figures: ['failed', 'of requests', 'seconds', 'p99 ms before', 'p99 ms during', 'p99 ms of all'],
    without: [...SINGLE, 'shared', 'round-robin'],
    also: ['restart'],
    workers: WORKERS,
    async measure ({ port, reload }, { seconds }) {
      const load = loadAtRate(port, { perSecond: RESTARTED_AT_PER_SECOND })
      await wait(300)
      await load.take()
      await wait(1000 * seconds)
      const before = await load.take()
      const begunAt = performance.now()
      await reload?.()
      const took = (performance.now() - begunAt) / 1000
      // Old workers may have connections for a while longer; and a share of the requests means the same for all only in
      // the same time.
      await wait(Math.max(500, WATCHED_MS - 1000 * took))
      const during = await load.end()
      return { failed: during.failed, 'of requests': during.total, seconds: took, 'p99 ms before': before.p99Ms,
        'p99 ms during': during.p99Ms, 'p99 ms of all': during.p99MsOfAll }
    }
  },

  kill: {
    title:
      'One worker of two is SIGKILLed three seconds after the start, then both, with a fresh connection every 10 ms',
    figures: ['one: failed', 'one: hung', 'one: ms to full strength', 'both: failed', 'both: hung',
      'both: ms to full strength'],
    without: [...SINGLE, 'watt'],
    also: ['standby'],
    workers: WORKERS,
    // Anew for each round: who has died before may come back later.
    async measureFrom (peer) {
      const running = await peer.start(WORKERS, await freePort())
      await wait(RUNS_MS)
      const cell = { ...await killAndWatch(running, { name: 'one', workers: WORKERS, count: 1 }),
        ...await killAndWatch(running, { name: 'both', workers: WORKERS, count: WORKERS }) }
      await running.stop()
      return cell
    }
  },

  start: { title: 'From the command to the first answer, two workers', figures: ['ms'],
    also: ['later', 'host', 'daemon'], pairs: [['later', 'daemon'], ['later', 'shared'], ['host', 'daemon']],
    workers: WORKERS, measureFrom: (peer) => timeFirstAnswer(peer, WORKERS) },

  rest: {
    title: `What manages two workers at rest: for ${RESTS_MS / 1000} s from ${
      SETTLES_MS / 1000
    } s after a start, then for ${VIEWED_MS / 1000} s from ${
      VIEWED_MS / 1000
    } s after a viewer has opened its page, then ${VIEWED_MS / 1000} s after that has been closed`,
    figures: ['processes', 'PSS MB', 'private MB', 'CPU ms a minute', 'with workers: CPU ms a minute', 'viewed: PSS MB',
      'viewed: CPU ms a minute', 'no longer viewed: PSS MB'],
    without: [...SINGLE, 'round-robin'],
    workers: WORKERS,
    isExtra: true,
    once: 'each pass',
    // Alone, as those that run at the same time share the memory of the program of Node.
    async measureFrom (peer) {
      const running = await peer.start(WORKERS, await freePort())
      const pids = running.managers()
      const cell = { processes: pids.length, ...await restOf(pids, await running.workers()),
        'private MB': ownMegabytes(pids) }
      const viewed = running.view ? await restViewed(running) : {}
      await running.stop()
      return { ...cell, ...viewed }
    }
  },

  syscalls: { title: 'Calls of the kernel from the command to the first answer, two workers, by strace',
    figures: ['calls', 'files opened', 'processes'], without: ['round-robin'], also: ['later', 'daemon'],
    workers: WORKERS, isExtra: true, once: 'each pass', measureFrom: (peer) => countSyscalls(peer, WORKERS) },

  install: { title: 'Installed by npm into an empty folder, with an empty cache and no compiler',
    figures: ['seconds', 'MB', 'packages'], without: [...SINGLE, 'shared', 'round-robin'], also: ['clone'], workers: 0,
    isExtra: true, once: 'first pass', measureFrom: measureInstall }
})

/** Watt's are threads of its one process. */
async function workersOf ({ workers, managers }: Running): Promise<number[]> {
  const pids = await workers()
  return pids.length > 0 ? pids : managers()
}

async function measureRate (running: Running,
  { perSecond, seconds, isClosing = false }: { perSecond: number, seconds: number, isClosing?: boolean }): Promise<Cell>
{
  const pids = [...new Set([...running.managers(), ...await running.workers()])]
  await pin(pids)
  const load = loadAtRate(running.port, { perSecond, isClosing, isBusy: true })
  await wait(300)
  await load.take()
  const before = cpuMs(pids)
  await wait(1000 * seconds)
  const used = cpuMs(pids) - before
  const { total, failed, p50Ms, p99Ms } = await load.end()
  if (failed === total) throw new Error('no request was answered')
  return { failed, 'p50 ms': p50Ms, 'p99 ms': p99Ms, 'CPU µs per request': 1000 * used / total }
}

/** `pids`: of what manages */
async function restOf (pids: number[], workers: number[]): Promise<Cell> {
  await wait(SETTLES_MS)
  const spent = () => [pids, workers].map(cpuMs)
  const before = spent()
  await wait(RESTS_MS)
  const [managers, worked] = spent().map((ms, index) => (ms - before[index]) / RESTS_MS * 60_000)
  return { 'PSS MB': pssMegabytes(pids), 'CPU ms a minute': managers,
    'with workers: CPU ms a minute': managers + worked }
}

async function restViewed ({ managers, view }: Running): Promise<Cell> {
  const close = await view?.()
  await wait(VIEWED_MS)
  const before = cpuMs(managers())
  await wait(VIEWED_MS)
  const viewed = { 'viewed: PSS MB': pssMegabytes(managers()),
    'viewed: CPU ms a minute': (cpuMs(managers()) - before) / VIEWED_MS * 60_000 }
  close?.()
  await wait(VIEWED_MS)
  return { ...viewed, 'no longer viewed: PSS MB': pssMegabytes(managers()) }
}
