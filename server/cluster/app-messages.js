import { oneLine } from '../system/one-line.js'
import { excerpt } from './excerpt.js'
import { createUnanswered, isRecord } from './unanswered.js'

const MAX_TOLD = 10
const WINDOW_MS = 1000
/** An endless flood is reported from time to time. */
const MAX_WINDOWS = 60
const MAX_TYPE_CHARS = 100

/**
 * The messages of one worker since it was last quiet.
 * @typedef {{ told: number, leftOut: number, leftOutBefore: number, windows: number, timer: NodeJS.Timeout | undefined }} Flow
 *   `told`: in this window; `leftOutBefore`: until this window began
 */

/**
 * Messages of the app by `process.send({ type, data })` become events, up to a limit a second and worker. The others are
 * only counted, and reported in one event when the flood is over. A message of another shape is meant for a primary of
 * the app's own.
 * @param {object} parts
 * @param {() => Pick<import('../lifecycle/state.js').PoolState, 'workers'>} parts.state
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 */
export function createAppMessages ({ state, events }) {
  /** @type {Map<number, Flow>} by worker */
  const flows = new Map()
  const isForPrimary = createUnanswered({ tell: (worker, message, detail) => publishForWorker('worker.unanswered', worker, message, detail) })

  return {
    /** @param {number} worker @param {unknown} message */
    hear (worker, message) {
      if (!isRecord(message) || isForPrimary(worker, message) || typeof message.type !== 'string') return
      const flow = flows.get(worker) ?? beginFlow(worker)
      if (flow.told === MAX_TOLD) {
        flow.leftOut++
        return
      }
      flow.told++
      const type = message.type.slice(0, MAX_TYPE_CHARS)
      publishForWorker('worker.message', worker, oneLine(type), { type, data: excerpt(message.data ?? null) })
    },

    /** @param {number} worker has ended */
    left (worker) {
      const flow = flows.get(worker)
      if (flow) endFlow(worker, flow)
    }
  }

  /** @param {number} worker */
  function beginFlow (worker) {
    /** @type {Flow} */
    const flow = { told: 0, leftOut: 0, leftOutBefore: 0, windows: 0, timer: undefined }
    flows.set(worker, flow)
    openWindow(worker, flow)
    return flow
  }

  /** @param {number} worker @param {Flow} flow */
  function openWindow (worker, flow) {
    flow.told = 0
    flow.windows++
    flow.leftOutBefore = flow.leftOut
    flow.timer = setTimeout(closeWindow, WINDOW_MS, worker, flow)
    flow.timer.unref()
  }

  /** @param {number} worker @param {Flow} flow */
  function closeWindow (worker, flow) {
    if (flow.leftOut > flow.leftOutBefore && flow.windows < MAX_WINDOWS) openWindow(worker, flow)
    else endFlow(worker, flow)
  }

  /** @param {number} worker @param {Flow} flow */
  function endFlow (worker, { leftOut, timer }) {
    clearTimeout(timer)
    flows.delete(worker)
    if (leftOut === 0) return
    const what = leftOut === 1 ? 'message was' : 'messages were'
    publishForWorker('worker.message', worker, `${leftOut.toLocaleString('en-US')} more ${what} left out`, { leftOut })
  }

  /** @param {'worker.message' | 'worker.unanswered'} type @param {number} worker @param {string} message @param {Record<string, unknown>} detail */
  function publishForWorker (type, worker, message, detail) {
    const { slot = null, pid = null, release = null } = state().workers[worker] ?? {}
    events.publish({ type, worker, slot, pid, release, message, detail })
  }
}
