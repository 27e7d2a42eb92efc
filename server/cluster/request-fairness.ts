import type { Config } from '../config/config.ts'
import type { PoolState } from '../lifecycle/state.ts'
import type { Cluster } from './cluster.ts'

export type Balance = Pick<Config, 'dispatch' | 'rebalance'>
type Sample = { requestsPerSecond: number | null, eventLoopUtilization: number | null }

/** Reports of so many seconds are the least to go by, as the requests of one second say little. */
const MIN_SECONDS = 4
/** Where even these do not make it sure, it goes on adding up, but not for ever: the load changes. */
const MAX_SECONDS = 60
/** A worker begins to let go above the first share of the mean, and goes on until it is below the second one. */
const BEGINS_ABOVE = 1.1
const ENDS_BELOW = 1.05
/** Standard deviations that chance seldom reaches. */
const SURE = 3
/**
 * A worker that is less busy than the others by more than this keeps what it has: the requests of the others are more
 * work.
 */
const LESS_BUSY = 0.1
/** Each connection that ends is to be opened again, which costs a TLS handshake. */
const CONNECTIONS_AT_ONCE = 100
/** A worker answers sooner, unless it has died or hangs. */
const ANSWERS_WITHIN_MS = 30_000
/**
 * A worker that had nothing to let go of, say one connection with all the requests, is asked again after twice as long
 * each time.
 */
const FIRST_PAUSE_MS = 10_000
const LONGEST_PAUSE_MS = 600_000

/**
 * Connections that stay pile up at one worker if the others were busy or away when they were opened. A worker that gets
 * more requests than the others, and has more to do, is told by how many, and lets go of as many connections as make up
 * for that (workers/busy-connections.ts): they come back to whoever is idle.
 */
export function createRequestFairness (cluster: Cluster, now: () => number = () => performance.now()) {
  let isOn = mayLetGo(cluster.balance)
  /** by worker */
  const sums: Map<number, Sum> = new Map()
  /** workers that get too many requests */
  const letting: Set<number> = new Set()
  /** until when each is not asked: it is at it, or has nothing that it could let go of */
  const notBefore: Map<number, number> = new Map()
  /** how long, in ms, each was not to be asked after its last answer */
  const pauses: Map<number, number> = new Map()
  /** The workers that the sums are of. */
  let together = ''
  cluster.on('left', (worker) => {
    for (const each of [sums, letting, notBefore, pauses]) each.delete(worker)
  })

  return {
    configure (balance: Balance) {
      isOn = mayLetGo(balance)
    },

    /** `sample`: its report of the last second */
    heard (worker: number, sample: Sample | null) {
      const workers = isOn ? sharingWorkers(cluster.state) : []
      if (String(workers) !== together) startAnew(workers)
      if (workers.length < 2 || !workers.includes(worker) || sample?.requestsPerSecond == null) return
      addSample(worker, sample)
      const seconds = Math.min(...workers.map((each) => sums.get(each)?.seconds ?? 0))
      if (seconds < MIN_SECONDS) return
      if (evenOut(workers) || seconds >= MAX_SECONDS) sums.clear()
    },

    /** `connections`: that it has let go */
    answered (worker: number, connections: number) {
      const pauseMs = connections > 0
        ? 0
        : Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * (pauses.get(worker) ?? 0)))
      pauses.set(worker, pauseMs)
      notBefore.set(worker, now() + pauseMs)
      // What came meanwhile came to another number of connections.
      sums.clear()
    }
  }

  function startAnew (workers: number[]) {
    together = String(workers)
    sums.clear()
  }

  function addSample (worker: number, { requestsPerSecond, eventLoopUtilization }: Sample) {
    const sum = sums.get(worker) ?? { seconds: 0, requests: 0, busy: 0 }
    sum.seconds++
    sum.requests += requestsPerSecond ?? 0
    sum.busy += eventLoopUtilization ?? 0
    sums.set(worker, sum)
  }

  /** Tells whether one gets too many: what is known by now has been used */
  function evenOut (workers: number[]): boolean {
    const all = workers.map((worker) => ({ worker, ...ratesOf(sums.get(worker)) }))
    const [requests, busy] = [meanOf(all.map((each) => each.requests)), meanOf(all.map((each) => each.busy))]
    const overloaded = all.filter((each) => isTooMany(each, requests))
    for (const { worker, requests: own, busy: ownBusy } of overloaded) {
      if (ownBusy < busy - LESS_BUSY || now() < (notBefore.get(worker) ?? 0)) continue
      notBefore.set(worker, now() + ANSWERS_WITHIN_MS)
      cluster.tell(worker, { type: 'let-go', requestsPerSecond: own - requests, connections: CONNECTIONS_AT_ONCE })
    }
    return overloaded.length > 0
  }

  function isTooMany ({ worker, seconds, requests }: { worker: number, seconds: number, requests: number },
    mean: number)
  {
    if (requests < mean * ENDS_BELOW) letting.delete(worker)
    if (requests <= mean * (letting.has(worker) ? ENDS_BELOW : BEGINS_ABOVE)) return false
    if ((requests - mean) * seconds < SURE * Math.sqrt(mean * seconds)) return false
    letting.add(worker)
    return true
  }
}

/** Tells whether a worker with too many requests lets go of connections: these may come back to another one */
function mayLetGo ({ dispatch, rebalance }: Balance): boolean {
  return rebalance === 'on' && dispatch !== 'sticky'
}

/** @returns those that share all requests, which tell of them once a second; none in a rollout */
function sharingWorkers (state: PoolState): number[] {
  const ready = Object.values(state.workers).filter(({ state }) => state === 'ready')
  return state.rollout || ready.some(({ orphan }) => orphan) ? [] : ready.map(({ id }) => id)
}

type Sum = { seconds: number, requests: number, busy: number }

function ratesOf ({ seconds, requests, busy }: Sum = { seconds: 1, requests: 0, busy: 0 }) {
  return { seconds, requests: requests / seconds, busy: busy / seconds }
}

function meanOf (values: number[]) {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
