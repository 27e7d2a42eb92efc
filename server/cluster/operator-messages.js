import { DeckError } from '../errors.js'
import { runtimeOf } from '../lifecycle/state.js'

/**
 * An operator's message, which the app receives like any message of its primary.
 * @typedef {{ type: string, from: 'admin', data: unknown }} OperatorMessage
 */

/** Why a worker gets no message, by its state. @type {Readonly<Record<string, string>>} */
const DEAF = Object.freeze({ starting: 'is still starting', standby: 'is on standby', stopping: 'is stopping', unresponsive: 'is unresponsive' })

/**
 * Sends operators' messages to the app.
 * @param {object} parts
 * @param {() => Pick<import('../lifecycle/state.js').PoolState, 'phase' | 'workers' | 'releases'>} parts.state
 * @param {Map<number, import('./worker-handle.js').WorkerHandle | import('./orphan-handle.js').OrphanHandle>} parts.handles
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events
 */
export function createOperatorMessages ({ state, handles, events }) {
  /**
   * @param {{ type: string, data?: unknown, worker?: number, actor: string }} order `worker`: only that one; without it all that are ready
   * @returns {{ workers: number[] }} the workers to which it was sent
   * @throws {DeckError} stopping, not-found, not-possible; then nobody gets it
   */
  return function send ({ type, data, worker, actor }) {
    if (['stopping', 'stopped'].includes(state().phase)) throw new DeckError('stopping', 'the master is stopping')
    const message = { type, from: /** @type {const} */ ('admin'), data }
    const workers = worker === undefined ? sendToAll(message) : sendToOne(worker, message)
    publishSent({ type, workers, actor })
    return { workers }
  }

  /** @param {OperatorMessage} message */
  function sendToAll (message) {
    const ready = Object.values(state().workers).filter((worker) => worker.state === 'ready')
    if (ready.length > 0 && ready.every(isOther)) throw new DeckError('not-possible', 'the app is no Node.js program, so it receives no messages')
    return ready.map(({ id }) => id).filter((id) => passToWorker(id, message))
  }

  /** @param {number} id @param {OperatorMessage} message */
  function sendToOne (id, message) {
    const worker = state().workers[id]
    if (!worker) throw new DeckError('not-found', `No worker ${id} is alive`)
    if (isOther(worker)) throw new DeckError('not-possible', `worker ${id} is no Node.js process, so it receives no messages`)
    if (worker.orphan) throw new DeckError('not-possible', `worker ${id} belongs to another master`)
    if (DEAF[worker.state]) throw new DeckError('not-possible', `worker ${id} ${DEAF[worker.state]}`)
    if (!passToWorker(id, message)) throw new DeckError('not-possible', `worker ${id} does not read its messages`)
    return [id]
  }

  /** @param {{ release: string }} worker */
  function isOther ({ release }) {
    return runtimeOf(state(), release) === 'other'
  }

  /** @param {number} id @param {OperatorMessage} message */
  function passToWorker (id, message) {
    const handle = handles.get(id)
    return handle !== undefined && 'pass' in handle && handle.pass(message)
  }

  /** Publishes the event without the data, which may be secret. @param {{ type: string, workers: number[], actor: string }} sent */
  function publishSent ({ type, workers, actor }) {
    const one = workers.length === 1 ? state().workers[workers[0]] : null
    const to = one ? `worker ${one.id} (slot ${one.slot})` : `${workers.length} workers`
    events.publish({
      type: 'message.sent',
      ...(one && { worker: one.id, slot: one.slot, pid: one.pid, release: one.release }),
      actor,
      message: `message ${JSON.stringify(type)} sent to ${to}`,
      detail: { type, workers }
    })
  }
}
