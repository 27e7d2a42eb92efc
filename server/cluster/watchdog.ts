import { attempt } from '../errors.ts'
import { durationText } from '../lifecycle/duration.ts'
import { CAPTURE_MS } from '../lifecycle/hang.ts'
import { nameOf } from '../lifecycle/worker.ts'
import { createHeartbeat, queuedMs, tickFor } from '../system/heartbeat.ts'
import { lookInMiddleOfSecond } from '../../workers/look-together.ts'
import { captureStack } from '../system/stuck-stack.ts'
import { checkRequests } from './open-requests.ts'
import { runtimeOf, type CrashNote, type Worker } from '../lifecycle/state.ts'
import type { ToMaster } from '../../workers/protocol.ts'
import type { OpenRequest } from '../../workers/request-list.ts'
import type { Cluster } from './cluster.ts'

/** 0: it does not watch, no limit */
export type Limits = { watchdog: { timeoutMs: number, stack: 'on' | 'off' }, recycle: { maxRssBytes: number } }

/** Samples, one a second: a short peak is no reason to recycle a worker. */
const SAMPLES_OVER_LIMIT = 5
const MAX_SAID_CHARS = 100
/** It ends before the worker is killed, so that it can say why there is no stack. */
const CAPTURE_WITHIN_MS = CAPTURE_MS - 500

/** See workers/request-list.ts. */
const REQUESTS_IN_FLIGHT = 'process[Symbol.for(\'clusterdeck.requests\')]?.(req)'

/** Checks that each worker reports once a second, and how much memory it reports. */
export function createWatchdog (cluster: Pick<Cluster, 'state' | 'handles' | 'limits' | 'receive' | 'tell'>) {
  const { receive } = cluster
  /** by worker: samples over the limit in a row */
  const overLimit: Map<number, number> = new Map()
  /** by worker: where it is stuck */
  const notes: Map<number, CrashNote> = new Map()
  const pids: Map<number, number> = new Map()
  let { timeoutMs, stack } = cluster.limits.watchdog
  let { maxRssBytes } = cluster.limits.recycle
  const heartbeat = createHeartbeat({ timeoutMs, queuedMs: (worker) => queuedMs(pids.get(worker)) })
  let stop = startTimer()

  return {
    configure (limits: Limits) {
      ;({ timeoutMs, stack } = limits.watchdog)
      // A new limit too has to be exceeded for several samples.
      if (maxRssBytes !== limits.recycle.maxRssBytes) overLimit.clear()
      maxRssBytes = limits.recycle.maxRssBytes
      heartbeat.setTimeoutMs(timeoutMs)
      stop()
      stop = startTimer()
    },

    /** `message`: proves that the worker's event loop runs */
    heard (worker: number, message: ToMaster) {
      if (heartbeat.heard(worker)) {
        notes.delete(worker)
        receive({ type: 'worker-answered', worker })
        closeInspector(worker)
      }
      if (message.type === 'inspected') heartbeat.excuse(worker, message.isInspected === true)
      if (message.type === 'vitals') checkMemory(worker, message.rssBytes)
      if (message.type === 'leaving')
        receive({ type: 'worker-due', worker, cause: 'app-request',
          message: `the app of worker ${worker} asked to be replaced` })
      if (message.type === 'max-requests') {
        const message = `worker ${worker} reached its maximum number of requests (option recycle.maxRequests)`
        receive({ type: 'worker-due', worker, cause: 'max-requests', message })
      }
    },

    /** It is known why this worker will not answer for a while. */
    excuse: heartbeat.excuse,

    /** Forgets a worker that has ended. Returns `error` of its exit, where it had hung. */
    takeNote (worker: number): CrashNote | null {
      const note = notes.get(worker) ?? null
      for (const map of [notes, overLimit, pids]) map.delete(worker)
      heartbeat.forget(worker)
      return note
    },

    /** `worker`: it is stuck: finds out where */
    async capture (worker: number) {
      // It is no Node program, and not watched here.
      if (!pids.has(worker)) return receive({ type: 'stack-captured', worker })
      const found = stack === 'on'
        ? await captureStack(pids.get(worker), { withinMs: CAPTURE_WITHIN_MS, ask: REQUESTS_IN_FLIGHT })
        : { stack: null, reason: 'watchdog.stack is "off"', answer: null }
      const note = notes.get(worker)
      // It has answered or ended in between.
      if (!note) return closeInspector(worker)
      note.requests = requestsIn(found.answer)
      const hanging = note.requests.find(({ isHanging }) => isHanging)
      // In quotation marks it does not tell crashes of the same kind apart.
      if (hanging)
        note.errorMessage += ` in ${JSON.stringify(`${hanging.method} ${hanging.path.slice(0, MAX_SAID_CHARS)}`)}`
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
    const watched = Object.values(cluster.state.workers).filter(isWatched)
    for (const { id, pid } of watched) if (pid !== null) pids.set(id, pid)
    for (const { worker, silentMs } of heartbeat.tick(performance.now(), watched.map(({ id }) => id))) {
      const slot = watched.find(({ id }) => id === worker)?.slot ?? null
      const what = `event loop blocked for ${durationText(silentMs)} (option watchdog.timeoutMs: ${timeoutMs})`
      notes.set(worker, { errorName: 'Unresponsive', errorMessage: what, stack: null })
      receive({ type: 'worker-silent', worker, message: `${nameOf({ id: worker, slot })}: ${what}` })
    }
  }

  /**
   * @returns whether it has to report once a second: a program of another language does not, nor one that starts, or
   * will soon end
   */
  function isWatched ({ id, state: its, orphan, release, keptUntil }: Worker): boolean {
    const isToAnswer = its === 'ready' || its === 'standby' || (its === 'draining' && keptUntil !== undefined)
    return isToAnswer && !orphan && cluster.handles.has(id) && runtimeOf(cluster.state, release) === 'node'
  }

  function closeInspector (worker: number) {
    cluster.tell(worker, { type: 'close-inspector' })
  }

  /** `rssBytes`: what it says of itself */
  function checkMemory (worker: number, rssBytes: unknown) {
    if (maxRssBytes === 0 || typeof rssBytes !== 'number') return
    const samples = rssBytes > maxRssBytes ? (overLimit.get(worker) ?? 0) + 1 : 0
    overLimit.set(worker, samples)
    // It may have to wait, and grow meanwhile.
    if (samples === 0 || samples % SAMPLES_OVER_LIMIT !== 0) return
    const message = `worker ${worker} uses ${rssBytes} bytes of memory (option recycle.maxRssBytes: ${maxRssBytes})`
    receive({ type: 'worker-due', worker, cause: 'memory-limit', rssBytes, message })
  }
}

/** `answer`: untrusted. Returns none where it says nothing that can be read. */
function requestsIn (answer: unknown): OpenRequest[] {
  return attempt(() => {
    const requests = checkRequests(JSON.parse(String(answer ?? '[]')))
    // What its code does while nothing else is asked is done for this request.
    return requests.length === 1 ? [{ ...requests[0], isHanging: true }] : requests
  }, [])
}
