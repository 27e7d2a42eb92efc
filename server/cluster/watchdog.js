import { durationText } from '../lifecycle/duration.js'
import { CAPTURE_MS } from '../lifecycle/hang.js'
import { nameOf } from '../lifecycle/worker.js'
import { createHeartbeat, queuedMs, tickFor } from '../system/heartbeat.js'
import { lookInMiddleOfSecond } from '../../workers/look-together.js'
import { captureStack } from '../system/stuck-stack.js'

/**
 * @typedef {ReturnType<typeof createWatchdog>} Watchdog
 * @typedef {{ watchdog: { timeoutMs: number, stack: 'on' | 'off' }, recycle: { maxRssBytes: number } }} Limits  0: it does not watch, no limit
 */

/** Samples, one a second: a short peak is no reason to recycle a worker. */
const SAMPLES_OVER_LIMIT = 5
/** It ends before the worker is killed, so that it can say why there is no stack. */
const CAPTURE_WITHIN_MS = CAPTURE_MS - 500

/**
 * Checks that each worker reports once a second, and how much memory it reports.
 * @param {object} parts
 * @param {Limits['watchdog']} parts.watchdog
 * @param {Limits['recycle']} parts.recycle
 * @param {() => { id: number, slot: number | null, pid: number | null }[]} parts.listWatched  workers that have to report
 * @param {(input: import('../lifecycle/state.js').PlainInput) => void} parts.receive takes inputs of the lifecycle
 * @param {(worker: number) => void} parts.closeInspector
 * @param {() => number} [parts.now] monotonic, ms
 * @param {typeof captureStack} [parts.capture]
 */
export function createWatchdog ({ watchdog, recycle, listWatched, receive, closeInspector, now = () => performance.now(), capture = captureStack }) {
  /** @type {Map<number, number>} by worker: samples over the limit in a row */
  const overLimit = new Map()
  /** @type {Map<number, import('../lifecycle/state.js').CrashNote>} by worker: where it is stuck */
  const notes = new Map()
  /** @type {Map<number, number>} */
  const pids = new Map()
  let { timeoutMs, stack } = watchdog
  let { maxRssBytes } = recycle
  const heartbeat = createHeartbeat({ timeoutMs, queuedMs: (worker) => queuedMs(pids.get(worker)) })
  let stop = startTimer()

  return {
    /** @param {Limits} limits */
    configure (limits) {
      ({ timeoutMs, stack } = limits.watchdog)
      // A new limit too has to be exceeded for several samples.
      if (maxRssBytes !== limits.recycle.maxRssBytes) overLimit.clear()
      maxRssBytes = limits.recycle.maxRssBytes
      heartbeat.setTimeoutMs(timeoutMs)
      stop()
      stop = startTimer()
    },

    /** @param {number} worker @param {import('../../workers/protocol.js').ToMaster} message  proves that the worker's event loop runs */
    heard (worker, message) {
      if (heartbeat.heard(worker)) {
        notes.delete(worker)
        receive({ type: 'worker-answered', worker })
        closeInspector(worker)
      }
      if (message.type === 'inspected') heartbeat.excuse(worker, message.isInspected === true)
      if (message.type === 'vitals') checkMemory(worker, message.rssBytes)
      if (message.type === 'leaving') receive({ type: 'worker-due', worker, cause: 'app-request', message: `the app of worker ${worker} asked to be replaced` })
      if (message.type === 'max-requests') {
        const message = `worker ${worker} reached its maximum number of requests (option recycle.maxRequests)`
        receive({ type: 'worker-due', worker, cause: 'max-requests', message })
      }
    },

    /** It is known why this worker will not answer for a while. @param {number} worker @param {boolean} isExcused */
    excuse: heartbeat.excuse,

    /**
     * Forgets a worker that has ended.
     * @param {number} worker @returns {import('../lifecycle/state.js').CrashNote | null} `error` of its exit, where it had hung
     */
    takeNote (worker) {
      const note = notes.get(worker) ?? null
      for (const map of [notes, overLimit, pids]) map.delete(worker)
      heartbeat.forget(worker)
      return note
    },

    /** @param {number} worker it is stuck: finds out where */
    async capture (worker) {
      // It is no Node program, and not watched here.
      if (!pids.has(worker)) return receive({ type: 'stack-captured', worker })
      const found = stack === 'on' ? await capture(pids.get(worker), { withinMs: CAPTURE_WITHIN_MS }) : { stack: null, reason: 'watchdog.stack is "off"' }
      const note = notes.get(worker)
      // It has answered or ended in between.
      if (!note) return closeInspector(worker)
      if (found.stack === null) note.errorMessage += `; no JavaScript stack: ${found.reason}`
      else note.stack = `Unresponsive: ${note.errorMessage}\n${found.stack}`
      receive({ type: 'stack-captured', worker })
    },

    stop: () => stop()
  }

  function startTimer () {
    return timeoutMs > 0 ? lookInMiddleOfSecond(checkWorkers, tickFor(timeoutMs)) : () => {}
  }

  function checkWorkers () {
    const watched = listWatched()
    for (const { id, pid } of watched) if (pid !== null) pids.set(id, pid)
    for (const { worker, silentMs } of heartbeat.tick(now(), watched.map(({ id }) => id))) {
      const slot = watched.find(({ id }) => id === worker)?.slot ?? null
      const what = `the event loop has not answered for ${durationText(silentMs)} (option watchdog.timeoutMs: ${timeoutMs})`
      notes.set(worker, { errorName: 'Unresponsive', errorMessage: what, stack: null })
      receive({ type: 'worker-silent', worker, message: `${nameOf({ id: worker, slot })}: ${what}` })
    }
  }

  /** @param {number} worker @param {unknown} rssBytes what it says of itself */
  function checkMemory (worker, rssBytes) {
    if (maxRssBytes === 0 || typeof rssBytes !== 'number') return
    const samples = rssBytes > maxRssBytes ? (overLimit.get(worker) ?? 0) + 1 : 0
    overLimit.set(worker, samples)
    if (samples !== SAMPLES_OVER_LIMIT) return
    const message = `worker ${worker} uses ${rssBytes} bytes of memory (option recycle.maxRssBytes: ${maxRssBytes})`
    receive({ type: 'worker-due', worker, cause: 'memory-limit', rssBytes, message })
  }
}
