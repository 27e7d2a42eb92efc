/** @typedef {ReturnType<typeof createRequestFairness>} RequestFairness */
/** @typedef {{ requestsPerSecond: number | null, eventLoopUtilization: number | null }} Sample */

/** Reports of so many seconds are the least to go by, as the requests of one second say little. */
const MIN_SECONDS = 4
/** Where even these do not make it sure, it goes on adding up, but not for ever: the load changes. */
const MAX_SECONDS = 60
/** A worker begins to let go above the first share of the mean, and goes on until it is below the second one. */
const BEGINS_ABOVE = 1.1
const ENDS_BELOW = 1.05
/** Standard deviations that chance seldom reaches. */
const SURE = 3
/** A worker that is less busy than the others by more than this keeps what it has: the requests of the others are more work. */
const LESS_BUSY = 0.1
/** Each connection that ends is to be opened again, which costs a TLS handshake. */
const CONNECTIONS_AT_ONCE = 100
/** A worker answers sooner, unless it has died or hangs. */
const ANSWERS_WITHIN_MS = 30_000
/** A worker that had nothing to let go of, say one connection with all the requests, is asked again after twice as long each time. */
const FIRST_PAUSE_MS = 10_000
const LONGEST_PAUSE_MS = 600_000

/**
 * Connections that stay pile up at one worker if the others were busy or away when they were opened. A worker that gets
 * more requests than the others, and has more to do, is told by how many, and lets go of as many connections as make up
 * for that (workers/busy-connections.js): they come back to whoever is idle.
 * @param {object} parts
 * @param {() => number[]} parts.list  the workers that share all requests; those of a rollout are about to change
 * @param {(worker: number, message: import('../../workers/protocol.js').ToWorker) => void} parts.tell
 * @param {() => number} parts.now  monotonic, ms
 */
export function createRequestFairness ({ list, tell, now }) {
  /** @type {Map<number, Sum>} by worker */
  const sums = new Map()
  /** @type {Set<number>} workers that get too many requests */
  const letting = new Set()
  /** @type {Map<number, number>} until when each is not asked: it is at it, or has nothing that it could let go of */
  const notBefore = new Map()
  /** @type {Map<number, number>} how long, in ms, each was not to be asked after its last answer */
  const pauses = new Map()
  /** The workers that the sums are of. */
  let together = ''

  return {
    /** @param {number} worker @param {Sample | null} sample  its report of the last second */
    heard (worker, sample) {
      const workers = list()
      if (String(workers) !== together) startAnew(workers)
      if (workers.length < 2 || !workers.includes(worker) || sample?.requestsPerSecond == null) return
      addSample(worker, sample)
      const seconds = Math.min(...workers.map((each) => sums.get(each)?.seconds ?? 0))
      if (seconds < MIN_SECONDS) return
      if (evenOut(workers) || seconds >= MAX_SECONDS) sums.clear()
    },

    /** @param {number} worker @param {number} connections  that it has let go */
    answered (worker, connections) {
      const pauseMs = connections > 0 ? 0 : Math.min(LONGEST_PAUSE_MS, Math.max(FIRST_PAUSE_MS, 2 * (pauses.get(worker) ?? 0)))
      pauses.set(worker, pauseMs)
      notBefore.set(worker, now() + pauseMs)
      // What came meanwhile came to another number of connections.
      sums.clear()
    },

    /** @param {number} worker */
    left (worker) {
      for (const each of [sums, letting, notBefore, pauses]) each.delete(worker)
    }
  }

  /** @param {number[]} workers */
  function startAnew (workers) {
    together = String(workers)
    sums.clear()
  }

  /** @param {number} worker @param {Sample} sample */
  function addSample (worker, { requestsPerSecond, eventLoopUtilization }) {
    const sum = sums.get(worker) ?? { seconds: 0, requests: 0, busy: 0 }
    sum.seconds++
    sum.requests += requestsPerSecond ?? 0
    sum.busy += eventLoopUtilization ?? 0
    sums.set(worker, sum)
  }

  /** @param {number[]} workers @returns {boolean} whether one gets too many: what is known by now has been used */
  function evenOut (workers) {
    const all = workers.map((worker) => ({ worker, ...ratesOf(sums.get(worker)) }))
    const [requests, busy] = [meanOf(all.map((each) => each.requests)), meanOf(all.map((each) => each.busy))]
    const overloaded = all.filter((each) => isTooMany(each, requests))
    for (const { worker, requests: own, busy: ownBusy } of overloaded) {
      if (ownBusy < busy - LESS_BUSY || now() < (notBefore.get(worker) ?? 0)) continue
      notBefore.set(worker, now() + ANSWERS_WITHIN_MS)
      tell(worker, { type: 'let-go', requestsPerSecond: own - requests, connections: CONNECTIONS_AT_ONCE })
    }
    return overloaded.length > 0
  }

  /** @param {{ worker: number, seconds: number, requests: number }} rates @param {number} mean */
  function isTooMany ({ worker, seconds, requests }, mean) {
    if (requests < mean * ENDS_BELOW) letting.delete(worker)
    if (requests <= mean * (letting.has(worker) ? ENDS_BELOW : BEGINS_ABOVE)) return false
    if ((requests - mean) * seconds < SURE * Math.sqrt(mean * seconds)) return false
    letting.add(worker)
    return true
  }
}

/** @typedef {{ seconds: number, requests: number, busy: number }} Sum */

/** @param {Sum} [sum] */
function ratesOf ({ seconds, requests, busy } = { seconds: 1, requests: 0, busy: 0 }) {
  return { seconds, requests: requests / seconds, busy: busy / seconds }
}

/** @param {number[]} values */
function meanOf (values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}
