import { toError } from '../errors.ts'
import { reduce } from '../lifecycle/pool.ts'
import { isAsked } from '../lifecycle/readiness.ts'
import { stamp, type Cluster } from './cluster.ts'
import type { Command, Input } from '../lifecycle/state.ts'
import type { WorkerState } from '../lifecycle/worker-state.ts'
import type { createExits } from './exits.ts'
import type { createMessages } from './messages.ts'
import type { Parts } from './parts.ts'
import type { WorkerHandle } from './worker-handle.ts'

type Order = Extract<Command, { type: 'fork' }>

/**
 * Inputs by which a slot loses a worker that still runs. `onEnded` tells of one that has ended, before its input comes.
 */
const LOSSES = Object.freeze(['worker-crashing', 'worker-stopping', 'worker-silent'])
const STARTING: readonly (WorkerState | undefined)[] = Object.freeze(['starting', 'standby'])

/**
 * Forks workers. What will take the place of a lost one is forked before anything is read or written for its end, which
 * takes longer than the fork. Whoever decides then, knowing all, takes the worker; one that nobody has taken is ended:
 * it has not heard anything yet.
 */
export function createForks (cluster: Cluster,
  { messages, exits, standbys, hearFromApp, sockets }: Parts & { messages: ReturnType<typeof createMessages>,
    exits: ReturnType<typeof createExits> })
{
  const { receive } = cluster
  const { ready } = cluster.state.options
  /** by worker */
  const early: Map<number, { order: Order, handle: WorkerHandle, wish: { isWanted: boolean } }> = new Map()
  // All has been decided: what is left is not needed.
  cluster.on('turn', () => {
    for (const [worker, { wish, handle }] of early) {
      early.delete(worker)
      wish.isWanted = false
      handle.kill()
    }
  })

  return {
    fork (order: Order) {
      const { worker } = order
      try {
        const handle = takeEarly(order) ?? start(order)
        cluster.handles.set(worker, handle)
        receive({ type: 'worker-forked', worker, pid: handle.identity?.pid ?? null })
      } catch (error) {
        const { name: errorName, message: errorMessage } = toError(error)
        exits.hear(worker, { code: null, signal: null, error: { errorName, errorMessage, stack: null } })
      }
    },

    /** `input`: is about to be decided on */
    foresee (input: Input) {
      if (LOSSES.includes(input.type)) forkEarly(input)
    }
  }

  /**
   * What is found of an end, and whether files have changed, seldom changes what takes the place of the worker. Where
   * changed files would, nothing is forked before they are looked at. `input`: a slot has lost its worker.
   */
  function forkEarly (input: Input) {
    if (cluster.isLetGo || cluster.state.options.releases?.onDrift === 'hold') return
    try {
      for (const order of reduce(cluster.state, input).commands) {
        if (order.type !== 'fork') continue
        const wish = { isWanted: true }
        early.set(order.worker, { order, wish, handle: start(order, () => wish.isWanted) })
      }
    } catch {
      // Whoever decides next meets the same error, and tells of it.
    }
  }

  /** Null: it was not forked yet, or for another slot or release */
  function takeEarly ({ worker, slot, release }: Order): WorkerHandle | null {
    const found = early.get(worker)
    if (found?.order.slot !== slot || found.order.release.id !== release.id) return null
    early.delete(worker)
    return found.handle
  }

  /** `isWanted`: whether anybody is to hear of it */
  function start (order: Order, isWanted: () => boolean = () => true): WorkerHandle {
    const { worker } = order
    const ifWanted = <Told extends unknown[]>(hear: (...told: Told) => void) => (...told: Told) => {
      if (isWanted()) hear(...told)
    }
    return cluster.fork(order, { onOnline: ifWanted(() => receive({ type: 'worker-online', worker })),
      onMessage: ifWanted((message) => messages.hear(worker, message)), onAppMessage: ifWanted((message) => {
        if (message !== 'ready') hearFromApp(worker, message)
        else if (ready.signal === 'message') saidReady(worker)
      }), isStarting: () => !cluster.isLetGo && STARTING.includes(cluster.state.workers[worker]?.state),
      onReadyLine: ifWanted(() => saidReady(worker)),
      onInvalidMessage: (reason) => messages.hearInvalid(worker, reason),
      onEnded: ifWanted((exit) => forkEarly({ type: 'worker-exited', worker, ...exit, ...stamp() })),
      onExit: ifWanted((exit) => exits.hear(worker, exit)), queue: () => sockets.queueOf(worker),
      connect: sockets.connect })
  }

  function saidReady (worker: number) {
    if (standbys.has(worker)) return standbys.defer(worker, () => saidReady(worker))
    cluster.tell(worker, { type: isAsked(ready) ? 'probe' : 'count-as-ready' })
    if (!isAsked(ready)) messages.hear(worker, { type: 'ready' })
  }
}
