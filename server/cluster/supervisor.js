import { randomUUID } from 'node:crypto'
import { DeckError, errorText, toError } from '../errors.js'
import { listAddresses } from '../lifecycle/addresses.js'
import { isAnnounced, isAsked, waitingFor } from '../lifecycle/readiness.js'
import { requestLimit } from '../lifecycle/recycling.js'
import { phaseOf, shownStage } from '../lifecycle/rollout/stages.js'
import { releasesInUse, snapshotOf } from '../lifecycle/snapshot.js'
import { reduce } from '../lifecycle/pool.js'
import { runtimeOf } from '../lifecycle/state.js'
import { keepSocketFiles } from '../programs/helper-link.js'
import { crlfHint } from '../programs/not-executed.js'
import { createIpcValidation } from '../system/ipc-validation.js'
import { createAdoption } from './adoption.js'
import { createAppMessages } from './app-messages.js'
import { createExitEvidence } from './exit-evidence.js'
import { bindHint } from './bind-hint.js'
import { createBoots } from './boots.js'
import { createDeadlines } from './deadlines.js'
import { createEarlyForks } from './early-forks.js'
import { createEffects } from './effects.js'
import { createInbox } from './inbox.js'
import { toCheckpoint } from './checkpoint.js'
import { createMessages } from './messages.js'
import { createOpenRequests } from './open-requests.js'
import { createOperatorMessages } from './operator-messages.js'
import { reduceWithDrift } from './reduce-with-drift.js'
import { processesOfProgram } from './program-orphan.js'
import { createRequestFairness } from './request-fairness.js'
import { createRolloutTurn } from './rollout-turn.js'
import { createSlotPorts } from './slot-ports.js'
import { createSockets } from './sockets.js'
import { createAcceptFairness } from './accept-fairness.js'
import { createStandbys } from './standbys.js'
import { createSteering } from './steering.js'
import { createSticky } from './sticky.js'
import { stageUnixPath } from './unix-staging.js'
import { createWatchdog } from './watchdog.js'

/** @typedef {ReturnType<typeof createSupervisor>} Supervisor */
/** @typedef {import('./adoption.js').SavedWorker} SavedWorker */
/** @typedef {import('../lifecycle/state.js').Command} Command */
/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {Pick<import('../config/config.js').Config, 'dispatch' | 'rebalance'>} Balance */

/**
 * Holds the one mutable state: inbox → reduce → publish what is decided → do it. Events go out first, so an intent is
 * on record before it is acted on. One thing comes before them: where a slot has lost its worker, the next one is forked at once. If
 * this master dies before that is on record, the new process ends with it, as any that still starts, and the next master
 * finds the end of the old one as it finds every end that is not on record.
 * @param {import('../lifecycle/state.js').PoolState} initialState
 * @param {object} shell
 * @param {import('./forker.js').Forker} shell.fork
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} shell.events
 * @param {import('./sockets.js').Keeper & Pick<import('../keeper/link.js').KeeperLink, 'exits' | 'reaps'>} [shell.keeper]
 * @param {Omit<Parameters<typeof createWatchdog>[0], 'listWatched' | 'receive' | 'closeInspector'>} [shell.watch]  limits; without them nobody watches
 * @param {{ calls: import('./socket-group.js').Calls, failoverMs: number } | null} [shell.sticky]  where clients stay with a slot
 * @param {{ calls: import('./socket-group.js').Calls, others: SavedWorker[] | null } | null} [shell.steering]  where the kernel is told which workers get connections;
 *   `others`: those of the master that has the cluster until this one takes over; null: there is none
 * @param {Balance} [shell.balance]
 * @param {import('./rollout-turn.js').Turns | null} [shell.rolloutTurns]  null: there is no other app
 * @param {number} [shell.portPerSlot]  the port below that of slot 1; 0: they have none
 * @param {() => number} [shell.now]  monotonic, ms
 * @param {() => number} [shell.time]  wall, ms
 * @param {() => number} [shell.random]
 * @param {Pick<import('../vitals/vitals.js').Vitals, 'accept' | 'left' | 'latest'>} [shell.vitals]
 * @param {import('./messages.js').AppMetrics & { left: (worker: number) => void }} [shell.appMetrics]
 * @param {typeof import('./program-vitals.js').measurePrograms} [shell.measure]  those that do not report by themselves
 * @param {Pick<import('../crashes/recorder.js').CrashRecorder, 'examine' | 'record'>} [shell.crashes]
 * @param {(source: Record<string, unknown>, by: { note: string | null, actor: string }) => Promise<Release>} [shell.prepare]  makes the release of a deploy
 * @param {Pick<import('./hooks.js').Hooks, 'has' | 'beforeStart' | 'beforeDeploy' | 'endOf'>} [shell.hooks]
 * @param {Pick<ReturnType<typeof import('../releases/judge.js').createJudge>, 'begin' | 'accept' | 'judge'>} [shell.judge]
 * @param {Pick<import('../releases/drift.js').Drift, 'noteLoaded' | 'renew'> & { look: (ids: string[]) => Record<string, import('../lifecycle/state.js').Drift> }} [shell.drift]
 */
export function createSupervisor (initialState, {
  fork, events, keeper, sticky = null, steering = null, balance = NO_BALANCE, rolloutTurns = null, portPerSlot = 0, watch = NO_LIMITS, now = () => performance.now(), time = Date.now, random = Math.random,
  vitals = NO_VITALS, appMetrics = NO_APP_METRICS, measure = () => () => {}, crashes = NO_CRASHES, prepare = prepareNothing, hooks = NO_HOOKS, judge = NO_JUDGE, drift = NO_DRIFT
}) {
  let state = initialState
  /** @type {Map<number, import('./worker-handle.js').WorkerHandle | import('./orphan-handle.js').OrphanHandle>} */
  const handles = new Map()
  /** @type {(worker: number, reply: { id: number, error: string | null }) => void} */
  let onDiagnosed = () => {}
  /** @type {(worker: number, reply: { requests: number, rssBytes: number, ms: number, error: string | null }) => void} */
  let onHeapKept = () => {}
  /** @type {(files: unknown[]) => void} */
  let onLoaded = () => {}
  /** The number of the last deploy whose loaded files are watched. @type {number | null} */
  let lastDeploy = null
  const { ready } = initialState.options
  /** @type {PromiseWithResolvers<void>} */
  const running = Promise.withResolvers()
  /** @type {PromiseWithResolvers<void>} */
  const finished = Promise.withResolvers()
  /** @type {PromiseWithResolvers<{ message: string }>} */
  const startBlocked = Promise.withResolvers()
  let isLetGo = false
  let isRebalanced = mayLetGo(balance)
  /** Names of the last master's sockets, which its workers may still hold. @type {Set<string>} */
  let socketsBefore = new Set()
  /** They serve until this master takes over. */
  let others = steering?.others ? steering.others.map(toLiving) : null

  const { receive, ask } = createInbox({ work: applyInput, onFault: (fault) => events.publish({ type: 'unexpected', ...fault }) })
  const rolloutTurn = createRolloutTurn({ turns: rolloutTurns, receive })
  const boots = createBoots({ pidOf: (worker) => handles.get(worker)?.identity?.pid, now })
  const deadlines = createDeadlines({
    onPassed: (deadline, id) => receive({ type: 'deadline-passed', deadline, id, ...(deadline === 'ready' && { starvedMs: boots.starvedMs(id) }) })
  })
  /** @type {(worker: number, message: import('../../workers/protocol.js').ToWorker, handle?: import('./sockets.js').Handle) => void} */
  const tellWorker = (worker, message, handle) => handles.get(worker)?.tell(message, handle)
  const id = randomUUID()
  const steered = steering && createSteering({ ...steering, isHeldBack: isAnnounced(ready), living: () => [...livingWorkers(state, { isAlone: others === null, processesOf }), ...others ?? []] })
  const sockets = createSockets({
    onBindError: isFirstStart,
    onUnused: tellUnused,
    keeper,
    stage: steered && stageUnixPath,
    onPaths: steered ? (files) => keepSocketFiles(id, files) : undefined,
    generations: { of: (worker) => others ? null : generationOf(state, worker), rollout: () => rolloutGeneration(state), stays: (worker) => STAYING.includes(state.workers[worker]?.state) },
    own: steered ?? (sticky && createSticky({
      ...sticky,
      isHeldBack: isAsked(ready),
      size: () => state.slots.length,
      serving: () => servingWorkers(state),
      tell: tellWorker
    }))
  })
  const slotPorts = createSlotPorts({
    above: portPerSlot,
    keeper,
    listensOn: sockets.listensOn,
    tell: tellWorker,
    onProblem: (problem) => events.publish({ type: 'unexpected', ...problem })
  })
  const exitEvidence = createExitEvidence(crashes, {
    isProgram: (release) => runtimeOf(state, release) === 'other',
    hintFor: ({ id, release }, why) => crlfHintOf(state.releases[release]) ?? bindHint(why, {
      refused: sockets.refused(id, state.releases[release]?.entry),
      note: state.workers[id]?.socketNotes?.[0] ?? null,
      hasOthers: Object.values(state.workers).some((other) => other.id !== id && other.readyAt !== null)
    })
  })
  const crlfHintOf = (/** @type {Release | undefined} */ release) => release?.runtime === 'other' ? crlfHint([release.entry, ...release.args ?? []], release.cwd ?? '/') : null
  const adopt = createAdoption({
    keeper,
    options: () => state.options,
    queueOf: sockets.queueOf,
    exitEvidence,
    onMessage: (worker, message) => receiveMessage(worker, message),
    onExit: onExited,
    onAdopted: (worker, handle) => handles.set(worker, handle)
  })
  const watchdog = createWatchdog({
    ...watch,
    receive,
    listWatched: () => Object.values(state.workers).filter(isWatched),
    closeInspector: (worker) => handles.get(worker)?.tell({ type: 'close-inspector' })
  })
  const ipcValidation = createIpcValidation({ tell: (worker, message) => events.publish({ type: 'unexpected', worker, message }), now })
  const appMessages = createAppMessages({ state: () => state, events })
  const openRequests = createOpenRequests({ state: () => state, handles })
  const acceptFairness = createAcceptFairness({ handles })
  const requestFairness = createRequestFairness({ list: () => isRebalanced ? sharingWorkers(state) : [], tell: tellWorker, now })
  const earlyForks = createEarlyForks({ start: startWorker })
  const standbys = createStandbys({ state: () => state, tell: tellWorker, receive })
  const receiveMessage = createMessages({
    state: () => state,
    handles,
    receive,
    sockets,
    slotPorts,
    standbys,
    boots,
    watchdog,
    vitals,
    appMetrics,
    judge,
    drift,
    events,
    now,
    mayMakeWay: (key) => socketsBefore.has(key) && makeWay(),
    onBindFailed,
    onLoaded: (files) => onLoaded(files),
    onDiagnosed: (worker, reply) => onDiagnosed(worker, reply),
    onHeapKept: (worker, reply) => onHeapKept(worker, reply),
    openRequests,
    acceptFairness,
    requestFairness,
    ipcValidation
  })
  const stopMeasuring = measure({
    list: () => runningPrograms(state),
    onReport: (worker, report) => receiveMessage(worker, { type: 'vitals', ...report })
  })

  const effects = createEffects({
    handles,
    deadlines,
    boots,
    sockets,
    slotPorts,
    watchdog,
    judge,
    keeper,
    standbys,
    receive,
    takeTurn: rolloutTurn.take,
    forkWorker,
    prepareRelease,
    runHook,
    runStartHook,
    endHook: hooks.endOf,
    onFinished: finished.resolve
  })

  return {
    /** Resolves once every slot is served for the first time. */
    running: running.promise,
    /** Resolves once all workers have gone. */
    finished: finished.promise,
    /** Resolves if the start cannot succeed: an address of the app is in use before any worker was ready, or hooks.beforeStart has failed. */
    startBlocked: startBlocked.promise,

    snapshot () {
      const view = snapshotOf(state)
      return {
        ...view,
        rollout: rolloutTurn.shown(view.rollout),
        isEven: acceptFairness.isEven(),
        standby: { ...view.standby, workers: view.standby.workers.map((row) => ({ ...row, rssBytes: standbys.rssBytesOf(row.id) })) },
        workers: view.workers.map((row) => ({ ...row, port: slotPorts.of(row.slot), vitals: row.id === null ? null : vitals.latest(row.id) }))
      }
    },

    /** @param {number} worker @param {import('../../workers/protocol.js').ToWorker} message */
    tell (worker, message) { handles.get(worker)?.tell(message) },

    /** Sends an operator's message to the app. */
    send: createOperatorMessages({ state: () => state, handles, events }),

    /** Asks a worker for its requests in flight. */
    openRequests: openRequests.ask,

    /** @param {number} worker @param {boolean} isExcused the watchdog ignores that it does not answer, as the reason is known */
    excuse (worker, isExcused) { watchdog.excuse(worker, isExcused) },

    /** @param {typeof onDiagnosed} listener hears what a worker answers to `diagnose` */
    onDiagnosed (listener) { onDiagnosed = listener },

    /** @param {number} worker @returns {boolean} whether it has drained, and writes its heap */
    writesHeap: (worker) => state.workers[worker]?.writesHeap === true,

    /** Ends a worker that writes its heap. @param {number} worker */
    endHeap (worker) { receive({ type: 'heap-too-large', worker }) },

    /** @param {typeof onHeapKept} listener hears what a worker answers to `keep-heap` */
    onHeapKept (listener) { onHeapKept = listener },

    /** @param {typeof onLoaded} listener hears which files live workers have loaded */
    onLoaded (listener) { onLoaded = listener },

    /** Where a program serves whose place the app takes, and no worker has asked to. */
    unclaimed: sockets.unclaimed,

    closeUnclaimed: sockets.closeUnclaimed,

    /** URLs on which the app listens. */
    addresses: () => listAddresses(state),

    /** What a slow start waits for. */
    waitingFor: () => waitingFor(state),

    releasesInUse: () => releasesInUse(state),

    /** What the next master needs to continue if this one dies. */
    memory: () => toCheckpoint(state, { identityOf: (worker) => handles.get(worker)?.identity, sockets: sockets.names() }),

    /**
     * @param {object} how
     * @param {number} how.workers how many
     * @param {SavedWorker[]} [how.left] workers of a master that has died, from its checkpoint
     * @param {Record<number, import('../lifecycle/state.js').Finished>} [how.finished] slots whose program had ended by then
     * @param {string[]} [how.sockets] the names of its sockets
     * @param {import('../lifecycle/rollout/guard.js').Guard | null} [how.guard] of that master
     * @param {boolean} [how.hasHook] hooks.beforeStart has to pass first
     * @param {string | null} [how.awaitsTurn] why takeTurn() has to be called first
     */
    start ({ workers, left = [], finished = {}, sockets: before = [], guard = null, hasHook = false, awaitsTurn = null }) {
      socketsBefore = new Set(before)
      receive({ type: 'start', workers, guard, finished, hasHook, awaitsTurn, orphans: left.map(adopt), actor: 'system' })
    },

    /**
     * Workers may start now.
     * @param {{ release?: Release, hasHook?: boolean }} [how]  `release`: what is known of it by now; `hasHook`: hooks.beforeStart has to pass first
     */
    takeTurn (how = {}) { receive({ type: 'turn-came', ...how }) },

    /**
     * Makes this the only master, once its workers run beside those of the last one.
     * @param {{ left: SavedWorker[], nextWorker: number, guard: import('../lifecycle/rollout/guard.js').Guard | null }} inheritance
     */
    takeOver ({ left, nextWorker, guard }) {
      others = null
      for (const handle of handles.values()) handle.tell({ type: 'outlive' })
      receive({ type: 'take-over', orphans: left.map(adopt), nextWorker, guard })
    },

    /** This master does not take over: its workers drain, and the sockets stay with the other master. */
    abandon () {
      sockets.leave()
      slotPorts.leave()
      receive({ type: 'stop', actor: 'system', cause: 'rollback' })
    },

    /** The next master has started one of its workers. */
    nextForks () { receive({ type: 'next-forks' }) },

    /** @param {string} reason */
    nextFailing (reason) { receive({ type: 'next-failing', reason }) },

    /** The next master has ended. @param {{ reason: string, left: Omit<SavedWorker, 'state'>[], lastWorker: number }} gone  `left`: its workers that may live on */
    nextGone ({ reason, left, lastWorker }) {
      receive({ type: 'next-gone', reason, lastWorker, orphans: left.map((worker) => adopt({ ...worker, state: 'draining' })) })
    },

    /** Leaves the cluster to the next master. */
    handOver () {
      receive({ type: 'hand-over' })
      sockets.leave()
      slotPorts.leave()
    },

    /**
     * The workers serve on by themselves, as after the death of this master, for whoever goes on with this cluster: in this process, where
     * something here has failed, or in another one. Nothing is done here any more.
     * @param {{ hasMoved?: boolean }} [how]  another process has the sockets
     * @returns {Promise<import('../keeper/link.js').Exit>[]} how those end that are children of this process
     */
    letGo ({ hasMoved = false } = {}) {
      isLetGo = true
      rolloutTurn.leave()
      watchdog.stop()
      stopMeasuring()
      for (const part of [sockets, slotPorts]) hasMoved ? part.leave() : part.letGo()
      return [...handles.values()].map((handle) => handle.letGo()).filter((exit) => exit !== undefined)
    },

    /** @param {number} pid @returns {boolean} whether it is a worker */
    isWorker: (pid) => [...handles.values()].some(({ identity }) => identity?.pid === pid),

    /** @param {import('../keeper/link.js').Exit} exit of a process that was no child of this one */
    reaped ({ pid, code, signal }) {
      for (const handle of handles.values()) {
        if (handle.identity?.pid === pid && 'leave' in handle) handle.leave({ code, signal })
      }
    },

    /**
     * @param {import('../lifecycle/state.js').OperatorInput} command
     * @throws {DeckError} when it is not possible now; then nothing has changed
     */
    dispatch (command) {
      const refusal = ask(command.type === 'rollout' ? { ...command, awaitsTurn: rolloutTurn.isNeeded } : command)
      if (refusal) throw new DeckError(refusal.code, refusal.message, { details: refusal.details })
    },

    /** What `dispatch` would refuse a command for; nothing changes. @param {import('../lifecycle/state.js').OperatorInput} command */
    refusal: (command) => reduceWithDrift(state, { ...command, ...stamp() }, drift.look).refusal,

    /**
     * Applies new options. What has begun goes on with the old ones.
     * @param {import('../lifecycle/state.js').LifecycleOptions} options
     * @param {import('./watchdog.js').Limits & { crash: { graceMs: number }, recycle: { maxRequests: number } } & Balance} limits
     * @throws {DeckError} as dispatch
     */
    configure (options, limits) {
      this.dispatch({ type: 'configure', options })
      watchdog.configure(limits)
      isRebalanced = mayLetGo(limits)
      for (const handle of handles.values()) handle.tell({ type: 'limits', graceMs: limits.crash.graceMs, maxRequests: requestLimit(limits.recycle, random()) })
    },

    /** Watches its workers no more: they have gone, or another master has them, or none was started. */
    close () {
      watchdog.stop()
      stopMeasuring()
    },

    /** Ends every worker without any grace. @param {string} reason */
    killAll (reason) { receive({ type: 'kill-all', reason }) }
  }

  /** @param {import('../lifecycle/state.js').PlainInput} input @returns {import('../lifecycle/state.js').Refusal | null} */
  function applyInput (input) {
    if (isLetGo) return null
    const { nextWorker } = state
    const stamped = { ...input, ...stamp() }
    if (LOSSES.includes(input.type)) forkEarly(stamped)
    const result = reduceWithDrift(state, stamped, drift.look)
    state = result.state
    noteDeploy(nextWorker)
    for (const event of result.events) {
      events.publish(event.type === 'worker.exited' ? exitEvidence.record(event, state.releases[event.release]?.path ?? null) : event)
    }
    for (const command of result.commands) doCommand(command)
    earlyForks.drop()
    rolloutTurn.look(state.rollout)
    sockets.look()
    slotPorts.shrink(state.slots.length)
    if (state.phase === 'running') running.resolve()
    return result.refusal
  }

  function stamp () {
    return { at: now(), time: time(), random: random() }
  }

  /** @param {number} since number of the first worker that loads the deployed files, even if the release is known already */
  function noteDeploy (since) {
    const { rollout } = state
    if (rollout?.kind !== 'deploy' || !rollout.to || phaseOf(rollout) === 'preparing' || rollout.id === lastDeploy) return
    lastDeploy = rollout.id
    drift.renew(rollout.to, since)
  }

  /** A command that fails must not stop the others. @param {Command} command */
  function doCommand (command) {
    try {
      passToEffect(command.type, command)
    } catch (error) {
      const { message, stack } = toError(error)
      const worker = 'worker' in command ? command.worker : null
      events.publish({ type: 'unexpected', worker, message: `${command.type}: ${message}`, detail: { stack } })
    }
  }

  /** @template {Command['type']} Type @param {Type} type @param {import('./effects.js').Commands[Type]} command */
  function passToEffect (type, command) {
    effects[type](command)
  }

  /** @param {number} worker of another master @returns {number[]} the processes that it consists of */
  function processesOf (worker) {
    return processesOfProgram(handles.get(worker)?.identity)
  }

  /** @param {Extract<Command, { type: 'fork' }>} order */
  function forkWorker (order) {
    const { worker } = order
    try {
      const handle = earlyForks.take(order) ?? startWorker(order)
      handles.set(worker, handle)
      receive({ type: 'worker-forked', worker, pid: handle.identity?.pid ?? null })
    } catch (error) {
      const { name: errorName, message: errorMessage } = toError(error)
      onExited(worker, { code: null, signal: null, error: { errorName, errorMessage, stack: null } })
    }
  }

  /** @param {Extract<Command, { type: 'fork' }>} order @param {() => boolean} [isWanted] @returns {import('./worker-handle.js').WorkerHandle} */
  function startWorker (order, isWanted = () => true) {
    const { worker } = order
    return fork(order, {
      onOnline: () => { if (isWanted()) receive({ type: 'worker-online', worker }) },
      onMessage: (body) => { if (isWanted()) receiveMessage(worker, body) },
      onAppMessage: (message) => { if (isWanted()) heardFromApp(worker, message) },
      isStarting: () => !isLetGo && STARTING.includes(state.workers[worker]?.state),
      onReadyLine: () => { if (isWanted()) saidReady(worker) },
      onInvalidMessage: (reason) => ipcValidation.hear(worker, reason),
      onEnded: (exit) => { if (isWanted()) forkEarly({ type: 'worker-exited', worker, ...exit, ...stamp() }) },
      onExit: (exit) => { if (isWanted()) onExited(worker, exit) },
      queue: () => sockets.queueOf(worker),
      connect: (inode) => steered?.connect(inode) ?? sockets.connect(inode)
    })
  }

  /**
   * What is found of an end, and whether files have changed, seldom changes what takes the place of the worker. Where changed files
   * would, nothing is forked before they are looked at.
   * @param {import('../lifecycle/state.js').Input} input  a slot has lost its worker
   */
  function forkEarly (input) {
    if (isLetGo || state.options.releases?.onDrift === 'hold') return
    try {
      earlyForks.fork(reduce(state, input).commands)
    } catch {
      // Whoever decides next meets the same error, and tells of it.
    }
  }

  /** @param {number} worker @param {unknown} message */
  function heardFromApp (worker, message) {
    if (message !== 'ready') return appMessages.hear(worker, message)
    if (ready.signal === 'message') saidReady(worker)
  }

  /** @param {number} worker */
  function saidReady (worker) {
    if (standbys.has(worker)) return standbys.defer(worker, () => saidReady(worker))
    handles.get(worker)?.tell({ type: isAsked(ready) ? 'probe' : 'count-as-ready' })
    if (!isAsked(ready)) receiveMessage(worker, { type: 'ready' })
  }

  /** @param {number} worker @param {import('../lifecycle/loss.js').ToldExit} exit */
  function onExited (worker, exit) {
    const known = state.workers[worker]
    const error = exit.error ?? watchdog.takeNote(worker)
    const unfinished = exit.unfinished ? { ...exit.unfinished, isReported: false } : exit.signal === null || exit.isAsTold ? null : lastReported(worker)
    const told = { ...exit, error, unfinished }
    const end = known ? exitEvidence.examine(known, told) : told
    handles.delete(worker)
    vitals.left(worker)
    appMetrics.left(worker)
    sockets.forget(worker)
    ipcValidation.left(worker)
    appMessages.left(worker)
    openRequests.left(worker)
    acceptFairness.left(worker)
    requestFairness.left(worker)
    standbys.left(worker)
    boots.left(worker)
    receive({ type: 'worker-exited', worker, ...end })
  }

  /** @param {number} worker was killed and could not report its open requests @returns {import('../lifecycle/state.js').Unfinished | null} */
  function lastReported (worker) {
    const report = vitals.latest(worker)
    return report && { requests: report.inFlight ?? 0, connections: report.openConnections ?? 0, isReported: true }
  }

  /** @param {Extract<Command, { type: 'prepare-release' }>} order */
  async function prepareRelease ({ rollout, source, note, actor }) {
    try {
      const release = await prepare(source, { note, actor })
      receive({ type: 'release-prepared', rollout, release, hasHook: hooks.has('beforeDeploy') })
    } catch (error) {
      receive({ type: 'release-not-prepared', rollout, reason: errorText(error) })
    }
  }

  /** @param {Extract<Command, { type: 'run-hook' }>} order */
  async function runHook ({ rollout, from, release }) {
    const { passed, reason, output } = await hooks.beforeDeploy({ rollout, from, release })
    receive({ type: 'hook-ended', rollout, passed, reason, output })
  }

  /** @param {Extract<Command, { type: 'run-start-hook' }>} order */
  async function runStartHook ({ release }) {
    const { passed, reason } = await hooks.beforeStart(release)
    if (passed) receive({ type: 'start-hook-passed' })
    else startBlocked.resolve({ message: String(reason) })
  }

  /**
   * Without a keeper, orphans may still hold an address while they wait for replacements, which wait for that address.
   * @returns {boolean} whether it is worth another try
   */
  function makeWay () {
    if (!Object.values(state.workers).some(({ orphan }) => orphan)) return false
    receive({ type: 'address-blocked' })
    return true
  }

  /** @param {import('../../workers/protocol.js').SocketQuery} query @param {number} errno */
  function onBindFailed (query, errno) {
    const endsStart = isFirstStart()
    if (endsStart) startBlocked.resolve(sockets.explain(query, errno))
    return endsStart
  }

  /** @param {import('../lifecycle/state.js').Worker} worker @returns {boolean} whether it has to report once a second: a program of another language does not, nor one that starts, or will soon end */
  function isWatched ({ id, state: its, orphan, release, keptUntil }) {
    const isToAnswer = its === 'ready' || its === 'standby' || (its === 'draining' && keptUntil !== undefined)
    return isToAnswer && !orphan && handles.has(id) && runtimeOf(state, release) === 'node'
  }

  /** While no worker has ever been ready, giving up loses nothing. */
  function isFirstStart () {
    return state.phase === 'starting' && Object.values(state.workers).every((worker) => worker.readyAt === null)
  }

  /** @param {string[]} unused */
  function tellUnused (unused) {
    for (const address of unused) {
      events.publish({ type: 'socket.unused', actor: 'system', message: `the app does not listen on ${address}, which the service manager opened for it` })
    }
  }
}

/** Inputs by which a slot loses a worker that still runs. `onEnded` tells of one that has ended, before its input comes. */
const LOSSES = Object.freeze(['worker-crashing', 'worker-stopping', 'worker-silent'])
/** @type {readonly (import('../lifecycle/worker-state.js').WorkerState | undefined)[]} */
const STARTING = Object.freeze(['starting', 'standby'])
/** @type {typeof STARTING} */
const STAYING = Object.freeze([...STARTING, 'ready'])
/** @type {Pick<ReturnType<typeof import('../releases/judge.js').createJudge>, 'begin' | 'accept' | 'judge'>} */
const NO_JUDGE = { begin () {}, accept () {}, judge: () => { throw new Error('this cluster has no judge') } }
const NO_HOOKS = { has: () => false, beforeStart: runNoHook, beforeDeploy: runNoHook, endOf () {} }

/** @returns {Promise<never>} */
async function prepareNothing () {
  throw new Error('this cluster prepares no releases')
}

/** @returns {Promise<never>} */
async function runNoHook () {
  throw new Error('this cluster runs no hooks')
}

const NO_DRIFT = { noteLoaded () {}, look: () => ({}), renew () {} }
const NO_APP_METRICS = { accept () {}, answer () {}, left () {} }
const NO_VITALS = { accept () {}, left () {}, latest: () => null }
/** @type {import('./watchdog.js').Limits} */
const NO_LIMITS = Object.freeze({ watchdog: { timeoutMs: 0, stack: 'off' }, recycle: { maxRssBytes: 0 } })

/** @param {import('../lifecycle/state.js').PoolState} state @returns {import('./sticky.js').Serving[]} */
function servingWorkers ({ workers }) {
  const ready = Object.values(workers).filter(({ state }) => state === 'ready')
  return ready.map(({ id, slot, orphan }) => ({ worker: id, slot: Number(slot), isOrphan: orphan !== null }))
}

/** @type {Balance} */
const NO_BALANCE = Object.freeze({ dispatch: 'shared', rebalance: 'off' })

/** @param {Balance} balance @returns {boolean} whether a worker with too many requests lets go of connections: these may come back to another one */
function mayLetGo ({ dispatch, rebalance }) {
  return rebalance === 'on' && dispatch !== 'sticky'
}

/** @param {import('../lifecycle/state.js').PoolState} state @returns {number[]} those that share all requests, which tell of them once a second; none in a rollout */
function sharingWorkers (state) {
  const ready = Object.values(state.workers).filter(({ state }) => state === 'ready')
  return state.rollout || ready.some(({ orphan }) => orphan) ? [] : ready.map(({ id }) => id)
}

/** @param {import('../lifecycle/state.js').PoolState} state @returns {{ worker: number, pid: number }[]} */
function runningPrograms (state) {
  const running = Object.values(state.workers).filter((worker) => worker.state !== 'exited' && runtimeOf(state, worker.release) === 'other')
  return running.flatMap(({ id, pid }) => pid === null ? [] : [{ worker: id, pid }])
}

/**
 * @param {import('../lifecycle/state.js').PoolState} state
 * @param {{ isAlone: boolean, processesOf: (worker: number) => number[] }} how  `isAlone`: no other master has the cluster
 * @returns {import('./steering.js').Living[]}
 */
function livingWorkers ({ workers }, { isAlone, processesOf }) {
  return Object.values(workers).filter(({ state }) => state !== 'exited').map(({ id, state, orphan, intent }) => ({
    worker: id,
    isLost: intent?.cause === 'crash',
    isServing: isAlone && state === 'ready',
    isLeaving: isLeaving(state),
    processes: orphan ? () => processesOf(id) : null
  }))
}

/** @param {import('../lifecycle/state.js').PoolState} state @param {number} worker @returns {string | null} with which others it takes the place of those that serve; null: it takes that of one that has gone */
function generationOf ({ rollout, slots, workers }, worker) {
  const own = workers[worker]?.slot
  const under = rolloutGeneration({ rollout })
  if (under && slots.some(({ number, candidate }) => number === own && candidate === worker)) return under.isRevoked ? `${under.generation} back` : under.generation
  return Object.values(workers).some(({ orphan, slot, state }) => orphan && slot === own && state === 'ready') ? 'orphans' : null
}

/** @param {Pick<import('../lifecycle/state.js').PoolState, 'rollout'>} state */
function rolloutGeneration ({ rollout }) {
  return rollout && !shownStage(rollout).done ? { generation: `rollout ${rollout.id}`, isRevoked: phaseOf(rollout) === 'rolling-back', isAtOnce: rollout.kind === 'restart' } : null
}

/** @param {SavedWorker} worker of another master @returns {import('./steering.js').Living} */
function toLiving ({ id, state, identity }) {
  return { worker: id, isServing: state === 'ready', isLeaving: isLeaving(state), processes: () => processesOfProgram(identity) }
}

/** @param {import('../lifecycle/worker-state.js').WorkerState} state */
function isLeaving (state) {
  return state === 'draining' || state === 'stopping'
}

/** Where nobody records crashes. @type {Pick<import('../crashes/recorder.js').CrashRecorder, 'examine' | 'record'>} */
const NO_CRASHES = { examine: () => ({ memoryKind: null, stderr: [], said: null, note: null }), record: (event) => event }
