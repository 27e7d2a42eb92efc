import { DeckError, toError } from '../errors.ts'
import { listAddresses } from '../lifecycle/addresses.ts'
import { waitingFor } from '../lifecycle/readiness.ts'
import { requestLimit } from '../lifecycle/recycling.ts'
import { releasesInUse, snapshotOf } from '../lifecycle/snapshot.ts'
import { createAdoption } from './adoption.ts'
import { createCluster, stamp, type Listener, type Services } from './cluster.ts'
import { createExits } from './exits.ts'
import { createForks } from './forks.ts'
import { createInbox } from './inbox.ts'
import { createMessages } from './messages.ts'
import { createOperatorMessages } from './operator-messages.ts'
import { createParts } from './parts.ts'
import { createPreparations } from './preparations.ts'
import { measurePrograms } from './program-vitals.ts'
import { reduceWithDrift } from './reduce-with-drift.ts'
import { createSuccession, whatRuns } from './succession.ts'
import { createTreeUsage } from '../system/tree-usage.ts'
import type { Balance } from './request-fairness.ts'
import type { Limits } from './watchdog.ts'
import type { Command, DeadlineKind, LifecycleOptions, OperatorInput, PlainInput, PoolState,
  Refusal } from '../lifecycle/state.ts'

export type Supervisor = ReturnType<typeof createSupervisor>

/** by type */
type Commands = { [Each in Command as Each['type']]: Each }

// setTimeout fires at once for a longer time.
const MAX_TIMEOUT_MS = 2 ** 31 - 1

/**
 * Holds the one mutable state: input → reduce → record what is decided → do it. All else subscribes to the cluster:
 * `left`, `ready`, `turn`.
 */
export function createSupervisor (initialState: PoolState, services: Services) {
  const { receive, ask } = createInbox({ work: applyInput,
    onFault: (fault) => services.events.publish({ type: 'unexpected', ...fault }) })
  const cluster = createCluster(initialState, services, receive)
  const { events, keeper, judge, drift, handles, tell } = cluster

  /**
   * Events go out before anything is done, so an intent is on record before it is acted on. One thing comes before
   * them: where a slot has lost its worker, the next one is forked at once. If this master dies before that is on
   * record, the new process ends with it, as any that still starts, and the next master finds the end of the old one as
   * it finds every end that is not on record.
   */
  function applyInput (plain: PlainInput): Refusal | null {
    if (cluster.isLetGo) return null
    const input = { ...plain, ...stamp() }
    forks.foresee(input)
    const decided = reduceWithDrift(cluster.state, input, drift.look)
    cluster.state = decided.state
    for (const event of decided.events) events.publish(exits.record(event))
    for (const command of decided.commands) doCommand(command.type, command)
    cluster.emit('turn')
    return decided.refusal
  }

  const running: PromiseWithResolvers<void> = Promise.withResolvers()
  const finished: PromiseWithResolvers<void> = Promise.withResolvers()

  const parts = createParts(cluster)
  const { rolloutTurn, boots, standbys, sockets, watchdog, acceptFairness, requestFairness } = parts
  const messages = createMessages(cluster, parts)
  const exits = createExits(cluster, parts)
  const forks = createForks(cluster, { ...parts, messages, exits })
  const adopt = createAdoption(cluster, { messages, exits, sockets })
  const deadlines = createDeadlines({
    onPassed: (deadline, id) =>
      receive({ type: 'deadline-passed', deadline, id,
        ...(deadline === 'ready' && { starvedMs: boots.starvedMs(id) }) })
  })
  const stopMeasuring = measurePrograms(cluster, messages)
  const usage = createTreeUsage()
  cluster.on('turn', () => {
    if (cluster.state.phase === 'running') running.resolve()
  })

  const commands: { [Type in keyof Commands]: (command: Commands[Type]) => unknown } = {
    // One worker's.
    fork: forks.fork,
    promote: ({ worker, slot }) => standbys.promote(worker, slot),
    drain: ({ worker, limits }) => tell(worker, { type: 'drain', ...limits }),
    'end-connections': (order) => tell(order.worker, order),
    'count-as-ready': ({ worker }) => tell(worker, { type: 'count-as-ready' }),
    'write-heap': (order) => tell(order.worker, order),
    'capture-stack': ({ worker }) => watchdog.capture(worker),
    terminate: ({ worker }) => handles.get(worker)?.terminate(),
    kill: ({ worker }) => handles.get(worker)?.kill(),
    'set-deadline' ({ deadline, id, ms }) {
      if (deadline === 'ready') boots.begin(id)
      deadlines.set(deadline, id, ms)
    },
    'clear-deadline': ({ deadline, id }) => deadlines.clear(deadline, id),

    // A rollout's.
    ...createPreparations(cluster),
    'take-turn': rolloutTurn.take,
    'begin-judging': () => judge.begin(),
    judge: (order) => receive({ type: 'judged', rollout: order.rollout, verdict: judge.judge(order) }),
    'count-answers': ({ release, from }) =>
      receive({ type: 'answers-counted', release, ...cluster.vitals.answers.count(release, from) }),

    // The whole cluster's.
    'expire-unused-sockets': sockets.expireUnused,
    'close-unused-sockets': sockets.closeUnused,
    'close-sockets': sockets.close,
    // For all apps of the host at once: see handover/joint-upgrade.ts.
    'start-next' () {},
    'cancel-next': ({ reason }) => keeper?.send({ type: 'cancel', reason }),
    finish () {
      deadlines.clearAll()
      close()
      sockets.finish()
      finished.resolve()
    }
  }

  return {
    ...createSuccession(cluster, { adopt, sockets, close }),

    /** Resolves once every slot is served for the first time. */
    running: running.promise,
    /** Resolves once all workers have gone. */
    finished: finished.promise,
    /**
     * Resolves if the start cannot succeed: an address of the app is in use before any worker was ready, or
     * hooks.beforeStart has failed.
     */
    startBlocked: new Promise<{ message: string }>((resolve) => cluster.once('blocked', resolve)),

    snapshot () {
      const view = snapshotOf(cluster.state)
      return { ...view, rollout: rolloutTurn.shown(view.rollout), isEven: acceptFairness.isEven(),
        standby: { ...view.standby,
          workers: view.standby.workers.map((row) => ({ ...row, rssBytes: standbys.rssBytesOf(row.id) })) },
        workers: view.workers.map((row) => ({ ...row, port: sockets.portOf(row.slot),
          vitals: row.id === null ? null : cluster.vitals.latest(row.id) })
        ) }
    },

    tell,

    send: createOperatorMessages(cluster),
    openRequests: parts.openRequests.ask,

    /** What the process of a worker takes; null: it has ended, or the system does not tell. */
    usageOf (worker: number) {
      const pid = cluster.state.workers[worker]?.pid ?? null
      return pid === null ? null : usage.measure([pid])
    },

    /** `isExcused`: the watchdog ignores that it does not answer, as the reason is known */
    excuse: watchdog.excuse,

    /** `listener`: hears what a worker answers to `diagnose` */
    onDiagnosed: (listener: Listener<'diagnosed'>) => void cluster.on('diagnosed', listener),

    /** Tells whether it has drained, and writes its heap */
    writesHeap: (worker: number): boolean => cluster.state.workers[worker]?.writesHeap === true,

    endHeap (worker: number) {
      receive({ type: 'heap-too-large', worker })
    },

    /** `listener`: hears what a worker answers to `keep-heap` */
    onHeapKept: (listener: Listener<'heap-kept'>) => void cluster.on('heap-kept', listener),

    /** `listener`: hears which files live workers have loaded */
    onLoaded: (listener: Listener<'loaded'>) => void cluster.on('loaded', listener),

    unclaimed: sockets.unclaimed,

    closeUnclaimed: sockets.closeUnclaimed,

    addresses: () => listAddresses(cluster.state),

    waitingFor: () => waitingFor(cluster.state),

    releasesInUse: () => releasesInUse(cluster.state),

    runs: () => whatRuns(cluster.state),

    isWorker: (pid: number): boolean => [...handles.values()].some(({ identity }) => identity?.pid === pid),

    /** @throws {DeckError} when it is not possible now; then nothing has changed */
    dispatch,

    /** What `dispatch` would refuse a command for; nothing changes. */
    refusal: (command: OperatorInput) => reduceWithDrift(cluster.state, { ...command, ...stamp() }, drift.look).refusal,

    /**
     * Applies new options. What has begun goes on with the old ones.
     * @throws {DeckError} as dispatch
     */
    configure (options: LifecycleOptions,
      limits: Limits & { crash: { graceMs: number }, recycle: { maxRequests: number } } & Balance)
    {
      dispatch({ type: 'configure', options })
      watchdog.configure(limits)
      requestFairness.configure(limits)
      for (const handle of handles.values())
        handle.tell({ type: 'limits', graceMs: limits.crash.graceMs,
          maxRequests: requestLimit(limits.recycle, Math.random()) })
    },

    /** Watches its workers no more: they have gone, or another master has them, or none was started. */
    close,

    killAll (reason: string) {
      receive({ type: 'kill-all', reason })
    }
  }

  /** A command that fails must not stop the others. */
  function doCommand<Type extends Command['type']> (type: Type, command: Commands[Type]) {
    try {
      commands[type](command)
    } catch (error) {
      const { message, stack } = toError(error)
      const worker = 'worker' in command ? command.worker : null
      events.publish({ type: 'unexpected', worker, message: `${type}: ${message}`, detail: { stack } })
    }
  }

  function dispatch (command: OperatorInput) {
    const refusal = ask(command.type === 'rollout' ? { ...command, awaitsTurn: rolloutTurn.isNeeded } : command)
    if (refusal) throw new DeckError(refusal.code, refusal.message, { details: refusal.details })
  }

  function close () {
    rolloutTurn.leave()
    watchdog.stop()
    stopMeasuring()
  }
}

/** Named timers: setting one again starts it anew, a cleared one never fires. */
function createDeadlines ({ onPassed }: { onPassed: (deadline: DeadlineKind, id: number) => void }) {
  const timers: Map<string, NodeJS.Timeout> = new Map()

  return { set (deadline: DeadlineKind, id: number, ms: number) {
    const key = `${deadline}:${id}`
    clearTimeout(timers.get(key))
    timers.set(key, setTimeout(() => {
      timers.delete(key)
      onPassed(deadline, id)
    }, Math.min(ms, MAX_TIMEOUT_MS)))
  }, clear (deadline: DeadlineKind, id: number) {
    const key = `${deadline}:${id}`
    clearTimeout(timers.get(key))
    timers.delete(key)
  }, clearAll () {
    for (const timer of timers.values()) clearTimeout(timer)
    timers.clear()
  } }
}
