import { DeckError } from '../errors.ts'
import { runtimeOf } from '../lifecycle/state.ts'
import type { Cluster } from './cluster.ts'

/** An operator's message, which the app receives like any message of its primary. */
export type OperatorMessage = { type: string, from: 'admin', data: unknown }

/** Why a worker gets no message, by its state. */
const DEAF: Readonly<Record<string, string>> = Object.freeze({ starting: 'is still starting', standby: 'is on standby',
  stopping: 'is stopping', unresponsive: 'is unresponsive' })

export function createOperatorMessages (cluster: Cluster) {
  /**
   * `worker`: only that one; without it all that are ready. Returns the workers to which it was sent.
   * @throws {DeckError} stopping, not-found, not-possible; then nobody gets it
   */
  return function send (
    { type, data, worker, actor }: { type: string, data?: unknown, worker?: number, actor: string }
  ): { workers: number[] } {
    if (['stopping', 'stopped'].includes(cluster.state.phase)) throw new DeckError('stopping', 'the master is stopping')
    const message = { type, from: 'admin' as const, data }
    const workers = worker === undefined ? sendToAll(message) : sendToOne(worker, message)
    publishSent({ type, workers, actor })
    return { workers }
  }

  function sendToAll (message: OperatorMessage) {
    const ready = Object.values(cluster.state.workers).filter((worker) => worker.state === 'ready')
    if (ready.length > 0 && ready.every(isOther))
      throw new DeckError('not-possible', 'the app is no Node.js program, so it receives no messages')
    return ready.map(({ id }) => id).filter((id) => passToWorker(id, message))
  }

  function sendToOne (id: number, message: OperatorMessage) {
    const worker = cluster.state.workers[id]
    if (!worker) throw new DeckError('not-found', `No worker ${id} is alive`)
    if (isOther(worker))
      throw new DeckError('not-possible', `worker ${id} is no Node.js process, so it receives no messages`)
    if (worker.orphan) throw new DeckError('not-possible', `worker ${id} belongs to another master`)
    if (DEAF[worker.state]) throw new DeckError('not-possible', `worker ${id} ${DEAF[worker.state]}`)
    if (!passToWorker(id, message)) throw new DeckError('not-possible', `worker ${id} does not read its messages`)
    return [id]
  }

  function isOther ({ release }: { release: string }) {
    return runtimeOf(cluster.state, release) === 'other'
  }

  function passToWorker (id: number, message: OperatorMessage) {
    const handle = cluster.handles.get(id)
    return handle !== undefined && 'pass' in handle && handle.pass(message)
  }

  /** Publishes the event without the data, which may be secret. */
  function publishSent ({ type, workers, actor }: { type: string, workers: number[], actor: string }) {
    const one = workers.length === 1 ? cluster.state.workers[workers[0]] : null
    const to = one ? `worker ${one.id} (slot ${one.slot})` : `${workers.length} workers`
    cluster.events.publish({ type: 'message.sent',
      ...(one && { worker: one.id, slot: one.slot, pid: one.pid, release: one.release }), actor,
      message: `message ${JSON.stringify(type)} sent to ${to}`, detail: { type, workers } })
  }
}
