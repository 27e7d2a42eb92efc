import { randomUUID } from 'node:crypto'
import { DeckError, errorText, toError } from '../errors.ts'
import { listAddresses } from '../lifecycle/addresses.ts'
import { isAnnounced, isAsked, waitingFor } from '../lifecycle/readiness.ts'
import { requestLimit } from '../lifecycle/recycling.ts'
import { phaseOf, shownStage } from '../lifecycle/rollout/stages.ts'
import { releasesInUse, snapshotOf } from '../lifecycle/snapshot.ts'
import { reduce } from '../lifecycle/pool.ts'
import { runtimeOf } from '../lifecycle/state.ts'
import { keepSocketFiles } from '../programs/helper-link.ts'
import { nativeModuleHint } from '../crashes/native-module.ts'
import { crlfHint } from '../programs/not-executed.ts'
import { createIpcValidation } from '../system/ipc-validation.ts'
import { createAdoption, type SavedWorker } from './adoption.ts'
import { createAppMessages } from './app-messages.ts'
import { createExitEvidence } from './exit-evidence.ts'
import { bindHint } from './bind-hint.ts'
import { createBoots } from './boots.ts'
import { createDeadlines } from './deadlines.ts'
import { createEarlyForks } from './early-forks.ts'
import { createEffects, type Commands } from './effects.ts'
import { createInbox } from './inbox.ts'
import { toCheckpoint, whatRuns } from './checkpoint.ts'
import { createMessages, type AppMetrics } from './messages.ts'
import { createOpenRequests } from './open-requests.ts'
import { createOperatorMessages } from './operator-messages.ts'
import { reduceWithDrift } from './reduce-with-drift.ts'
import { processesOfProgram } from './program-orphan.ts'
import { createRequestFairness } from './request-fairness.ts'
import { createRolloutTurn, type Turns } from './rollout-turn.ts'
import { createSlotPorts } from './slot-ports.ts'
import { createSockets, type Handle, type Keeper } from './sockets.ts'
import { createAcceptFairness } from './accept-fairness.ts'
import { createStandbys } from './standbys.ts'
import { createSteering, type Living } from './steering.ts'
import { createSticky, type Serving } from './sticky.ts'
import { stageUnixPath } from './unix-staging.ts'
import { createWatchdog, type Limits } from './watchdog.ts'
import type { Command, Finished, Input, LifecycleOptions, OperatorInput, PlainInput, PoolState, Refusal, Release,
  Unfinished, Worker } from '../lifecycle/state.ts'
import type { Config } from '../config/config.ts'
import type { Forker } from './forker.ts'
import type { EventStream } from '../events/stream.ts'
import type { Exit, KeeperLink } from '../keeper/link.ts'
import type { Calls } from './socket-group.ts'
import type { Vitals } from '../vitals/vitals.ts'
import type { measurePrograms } from './program-vitals.ts'
import type { CrashRecorder } from '../crashes/recorder.ts'
import type { Hooks } from './hooks.ts'
import type { createJudge } from '../releases/judge.ts'
import type { Drift } from '../releases/drift.ts'
import type { WorkerHandle } from './worker-handle.ts'
import type { OrphanHandle } from './orphan-handle.ts'
import type { SocketQuery, ToWorker } from '../../workers/protocol.ts'
import type { Guard } from '../lifecycle/rollout/guard.ts'
import type { ToldExit } from '../lifecycle/loss.ts'
import type { WorkerState } from '../lifecycle/worker-state.ts'

export type Supervisor = ReturnType<typeof createSupervisor>
type Balance = Pick<Config, 'dispatch' | 'rebalance'>

/**
 * Holds the one mutable state: inbox → reduce → publish what is decided → do it. Events go out first, so an intent is
 * on record before it is acted on. One thing comes before them: where a slot has lost its worker, the next one is
 * forked at once. If this master dies before that is on record, the new process ends with it, as any that still starts,
 * and the next master finds the end of the old one as it finds every end that is not on record.
 */
export function createSupervisor (initialState: PoolState,
  { fork, events, keeper, sticky = null, steering = null, balance = NO_BALANCE, rolloutTurns = null, portPerSlot = 0,
    watch = NO_LIMITS, now = () => performance.now(), time = Date.now, random = Math.random, vitals = NO_VITALS,
    appMetrics = NO_APP_METRICS, measure = () => () => {}, crashes = NO_CRASHES, prepare = prepareNothing,
    hooks = NO_HOOKS, judge = NO_JUDGE, drift = NO_DRIFT }: {
      fork: Forker,
      events: Pick<EventStream, 'publish'>,
      keeper?:
        & Keeper
        & Pick<KeeperLink, 'exits' | 'reaps'>,
      /** limits; without them nobody watches */
      watch?: Omit<Parameters<typeof createWatchdog>[0], 'listWatched' | 'receive' | 'closeInspector'>,
      /** where clients stay with a slot */
      sticky?: { calls: Calls, failoverMs: number } | null,
      /**
       * where the kernel is told which workers get connections;
       * `others`: those of the master that has the cluster until this one takes over; null: there is none
       */
      steering?: { calls: Calls, others: SavedWorker[] | null } | null,
      balance?: Balance,
      /** null: there is no other app */
      rolloutTurns?: Turns | null,
      /** the port below that of slot 1; 0: they have none */
      portPerSlot?: number,
      /** monotonic, ms */
      now?: () => number,
      /** wall, ms */
      time?: () => number,
      random?: () => number,
      vitals?: Pick<Vitals, 'accept' | 'left' | 'latest' | 'answers'>,
      appMetrics?:
        & AppMetrics
        & { left: (worker: number) => void },
      /** those that do not report by themselves */
      measure?: typeof measurePrograms,
      crashes?: Pick<CrashRecorder, 'examine' | 'record'>,
      /** makes the release of a deploy */
      prepare?: (source: Record<string, unknown>, by: { note: string | null, actor: string }) => Promise<Release>,
      hooks?: Pick<Hooks, 'has' | 'beforeStart' | 'beforeDeploy' | 'endOf'>,
      judge?: Pick<ReturnType<typeof createJudge>, 'begin' | 'accept' | 'judge'>,
      drift?: Pick<Drift, 'noteLoaded' | 'renew'> & {
        look: (ids: string[]) => Record<string, import('../lifecycle/state.ts').Drift>
      }
    })
{
  let state = initialState
  const handles: Map<number, WorkerHandle | OrphanHandle> = new Map()
  let onDiagnosed: (worker: number, reply: { id: number, error: string | null }) => void = () => {}
  let onHeapKept: (worker: number,
    reply: { requests: number, rssBytes: number, ms: number, error: string | null }) => void = () => {}
  let onLoaded: (files: unknown[]) => void = () => {}
  /** The number of the last deploy whose loaded files are watched. */
  let lastDeploy: number | null = null
  const { ready } = initialState.options
  const running: PromiseWithResolvers<void> = Promise.withResolvers()
  const finished: PromiseWithResolvers<void> = Promise.withResolvers()
  const startBlocked: PromiseWithResolvers<{ message: string }> = Promise.withResolvers()
  let isLetGo = false
  let isRebalanced = mayLetGo(balance)
  /** Names of the last master's sockets, which its workers may still hold. */
  let socketsBefore: Set<string> = new Set()
  /** They serve until this master takes over. */
  let others = steering?.others ? steering.others.map(toLiving) : null

  const { receive, ask } = createInbox({ work: applyInput,
    onFault: (fault) => events.publish({ type: 'unexpected', ...fault }) })
  const rolloutTurn = createRolloutTurn({ turns: rolloutTurns, receive })
  const boots = createBoots({ pidOf: (worker) => handles.get(worker)?.identity?.pid, now })
  const deadlines = createDeadlines({
    onPassed: (deadline, id) =>
      receive({ type: 'deadline-passed', deadline, id,
        ...(deadline === 'ready' && { starvedMs: boots.starvedMs(id) }) })
  })
  const tellWorker: (worker: number, message: ToWorker, handle?: Handle) => void = (worker, message, handle) =>
    handles.get(worker)?.tell(message, handle)
  const id = randomUUID()
  const steered = steering &&
    createSteering({ ...steering, isHeldBack: isAnnounced(ready),
      living: () => [...livingWorkers(state, { isAlone: others === null, processesOf }), ...others ?? []] })
  const sockets = createSockets({ onBindError: isFirstStart, onUnused: tellUnused, keeper,
    stage: steered && stageUnixPath, onPaths: steered ? (files) => keepSocketFiles(id, files) : undefined,
    generations: { of: (worker) => others ? null : generationOf(state, worker), rollout: () => rolloutGeneration(state),
      stays: (worker) => STAYING.includes(state.workers[worker]?.state) },
    own: steered ??
      (sticky &&
        createSticky({ ...sticky, isHeldBack: isAsked(ready), size: () => state.slots.length, serving: () =>
          servingWorkers(state), tell: tellWorker })) })
  const slotPorts = createSlotPorts({ above: portPerSlot, keeper, listensOn: sockets.listensOn, tell: tellWorker,
    onProblem: (problem) => events.publish({ type: 'unexpected', ...problem }) })
  const exitEvidence = createExitEvidence(crashes, { isProgram: (release) => runtimeOf(state, release) === 'other',
    hintFor: ({ id, release }, why) =>
      crlfHintOf(state.releases[release]) ?? nativeModuleHint(why, nodeOf(state.releases[release])) ??
        bindHint(why, { refused: sockets.refused(id, state.releases[release]?.entry),
          note: state.workers[id]?.socketNotes?.[0] ?? null, hasOthers: Object.values(state.workers).some((other) =>
            other.id !== id && other.readyAt !== null
          ) }) })
  const nodeOf = (release: Release | undefined) =>
    release?.node ?? { file: process.execPath, version: process.versions.node }
  const crlfHintOf = (release: Release | undefined) =>
    release?.runtime === 'other' ? crlfHint([release.entry, ...release.args ?? []], release.cwd ?? '/') : null
  const adopt = createAdoption({ keeper, options: () => state.options, queueOf: sockets.queueOf, exitEvidence,
    onMessage: (worker, message) => receiveMessage(worker, message), onExit: onExited,
    onAdopted: (worker, handle) => handles.set(worker, handle) })
  const watchdog = createWatchdog({ ...watch, receive,
    listWatched: () => Object.values(state.workers).filter(isWatched),
    closeInspector: (worker) => handles.get(worker)?.tell({ type: 'close-inspector' }) })
  const ipcValidation = createIpcValidation({
    tell: (worker, message) => events.publish({ type: 'unexpected', worker, message }),
    now
  })
  const appMessages = createAppMessages({ state: () => state, events })
  const openRequests = createOpenRequests({ state: () => state, handles })
  const acceptFairness = createAcceptFairness({ handles })
  const requestFairness = createRequestFairness({ list: () => isRebalanced ? sharingWorkers(state) : [],
    tell: tellWorker, now })
  const earlyForks = createEarlyForks({ start: startWorker })
  const standbys = createStandbys({ state: () => state, tell: tellWorker, receive })
  const receiveMessage = createMessages({ state: () => state, handles, receive, sockets, slotPorts, standbys, boots,
    watchdog, vitals, appMetrics, judge, drift, events, now, mayMakeWay: (key) => socketsBefore.has(key) && makeWay(),
    onBindFailed, onLoaded: (files) => onLoaded(files), onDiagnosed: (worker, reply) => onDiagnosed(worker, reply),
    onHeapKept: (worker, reply) => onHeapKept(worker, reply), openRequests, acceptFairness, requestFairness,
    ipcValidation })
  const stopMeasuring = measure({ list: () => runningPrograms(state),
    onReport: (worker, report) => receiveMessage(worker, { type: 'vitals', ...report }) })

  const effects = createEffects({ handles, deadlines, boots, sockets, slotPorts, watchdog, judge, vitals, keeper,
    standbys, receive, takeTurn: rolloutTurn.take, forkWorker, prepareRelease, runHook, runStartHook,
    endHook: hooks.endOf, onFinished: finished.resolve })

  return {
    /** Resolves once every slot is served for the first time. */
    running: running.promise,
    /** Resolves once all workers have gone. */
    finished: finished.promise,
    /**
     * Resolves if the start cannot succeed: an address of the app is in use before any worker was ready, or
     * hooks.beforeStart has failed.
     */
    startBlocked: startBlocked.promise,

    snapshot () {
      const view = snapshotOf(state)
      return { ...view, rollout: rolloutTurn.shown(view.rollout), isEven: acceptFairness.isEven(),
        standby: { ...view.standby,
          workers: view.standby.workers.map((row) => ({ ...row, rssBytes: standbys.rssBytesOf(row.id) })) },
        workers: view.workers.map((row) => ({ ...row, port: slotPorts.of(row.slot),
          vitals: row.id === null ? null : vitals.latest(row.id) })
        ) }
    },

    tell (worker: number, message: ToWorker) {
      handles.get(worker)?.tell(message)
    },

    /** Sends an operator's message to the app. */
    send: createOperatorMessages({ state: () => state, handles, events }),

    /** Asks a worker for its requests in flight. */
    openRequests: openRequests.ask,

    /** `isExcused`: the watchdog ignores that it does not answer, as the reason is known */
    excuse (worker: number, isExcused: boolean) {
      watchdog.excuse(worker, isExcused)
    },

    /** `listener`: hears what a worker answers to `diagnose` */
    onDiagnosed (listener: typeof onDiagnosed) {
      onDiagnosed = listener
    },

    /** Tells whether it has drained, and writes its heap */
    writesHeap: (worker: number): boolean => state.workers[worker]?.writesHeap === true,

    /** Ends a worker that writes its heap. */
    endHeap (worker: number) {
      receive({ type: 'heap-too-large', worker })
    },

    /** `listener`: hears what a worker answers to `keep-heap` */
    onHeapKept (listener: typeof onHeapKept) {
      onHeapKept = listener
    },

    /** `listener`: hears which files live workers have loaded */
    onLoaded (listener: typeof onLoaded) {
      onLoaded = listener
    },

    /** Where a program serves whose place the app takes, and no worker has asked to. */
    unclaimed: sockets.unclaimed,

    closeUnclaimed: sockets.closeUnclaimed,

    /** URLs on which the app listens. */
    addresses: () => listAddresses(state),

    /** What a slow start waits for. */
    waitingFor: () => waitingFor(state),

    releasesInUse: () => releasesInUse(state),

    /** What the next start goes on with. */
    runs: () => whatRuns(state),

    /** What the next master needs to continue if this one dies. */
    memory: () =>
      toCheckpoint(state, { identityOf: (worker) => handles.get(worker)?.identity, sockets: sockets.names() }),

    start (
      { workers, left = [], finished = {}, sockets: before = [], guard = null, hasHook = false, awaitsTurn = null }: {
        /** how many */
        workers: number,
        /** workers of a master that has died, from its checkpoint */
        left?: SavedWorker[],
        /** slots whose program had ended by then */
        finished?: Record<number, Finished>,
        /** the names of its sockets */
        sockets?: string[],
        /** of that master */
        guard?: Guard | null,
        /** hooks.beforeStart has to pass first */
        hasHook?: boolean,
        /** why takeTurn() has to be called first */
        awaitsTurn?: string | null
      }
    ) {
      socketsBefore = new Set(before)
      receive({ type: 'start', workers, guard, finished, hasHook, awaitsTurn, orphans: left.map(adopt),
        actor: 'system' })
    },

    /**
     * Workers may start now. `release`: what is known of it by now; `hasHook`: hooks.beforeStart has to pass
     * first.
     */
    takeTurn (how: { release?: Release, hasHook?: boolean } = {}) {
      receive({ type: 'turn-came', ...how })
    },

    /** Makes this the only master, once its workers run beside those of the last one. */
    takeOver ({ left, nextWorker, guard }: { left: SavedWorker[], nextWorker: number, guard: Guard | null }) {
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
    nextForks () {
      receive({ type: 'next-forks' })
    },

    nextFailing (reason: string) {
      receive({ type: 'next-failing', reason })
    },

    /** The next master has ended. `left`: its workers that may live on. */
    nextGone (
      { reason, left, lastWorker }: { reason: string, left: Omit<SavedWorker, 'state'>[], lastWorker: number }
    ) {
      receive({ type: 'next-gone', reason, lastWorker,
        orphans: left.map((worker) => adopt({ ...worker, state: 'draining' })) })
    },

    /** Leaves the cluster to the next master. */
    handOver () {
      receive({ type: 'hand-over' })
      sockets.leave()
      slotPorts.leave()
    },

    /**
     * The workers serve on by themselves, as after the death of this master, for whoever goes on with this cluster: in
     * this process, where something here has failed, or in another one. Nothing is done here any more. `how`: another
     * process has the sockets. Returns how those end that are children of this process.
     */
    letGo ({ hasMoved = false }: { hasMoved?: boolean } = {}): Promise<Exit>[] {
      isLetGo = true
      rolloutTurn.leave()
      watchdog.stop()
      stopMeasuring()
      for (const part of [sockets, slotPorts]) hasMoved ? part.leave() : part.letGo()
      return [...handles.values()].map((handle) => handle.letGo()).filter((exit) => exit !== undefined)
    },

    /** Tells whether it is a worker */
    isWorker: (pid: number): boolean => [...handles.values()].some(({ identity }) => identity?.pid === pid),

    /** `exit`: of a process that was no child of this one */
    reaped ({ pid, code, signal }: Exit) {
      for (const handle of handles.values()) {
        if (handle.identity?.pid === pid && 'leave' in handle) handle.leave({ code, signal })
      }
    },

    /** @throws {DeckError} when it is not possible now; then nothing has changed */
    dispatch (command: OperatorInput) {
      const refusal = ask(command.type === 'rollout' ? { ...command, awaitsTurn: rolloutTurn.isNeeded } : command)
      if (refusal) throw new DeckError(refusal.code, refusal.message, { details: refusal.details })
    },

    /** What `dispatch` would refuse a command for; nothing changes. */
    refusal: (command: OperatorInput) => reduceWithDrift(state, { ...command, ...stamp() }, drift.look).refusal,

    /**
     * Applies new options. What has begun goes on with the old ones.
     * @throws {DeckError} as dispatch
     */
    configure (options: LifecycleOptions,
      limits: Limits & { crash: { graceMs: number }, recycle: { maxRequests: number } } & Balance)
    {
      this.dispatch({ type: 'configure', options })
      watchdog.configure(limits)
      isRebalanced = mayLetGo(limits)
      for (const handle of handles.values())
        handle.tell({ type: 'limits', graceMs: limits.crash.graceMs,
          maxRequests: requestLimit(limits.recycle, random()) })
    },

    /** Watches its workers no more: they have gone, or another master has them, or none was started. */
    close () {
      watchdog.stop()
      stopMeasuring()
    },

    /** Ends every worker without any grace. */
    killAll (reason: string) {
      receive({ type: 'kill-all', reason })
    }
  }

  function applyInput (input: PlainInput): Refusal | null {
    if (isLetGo) return null
    const { nextWorker } = state
    const stamped = { ...input, ...stamp() }
    if (LOSSES.includes(input.type)) forkEarly(stamped)
    const result = reduceWithDrift(state, stamped, drift.look)
    state = result.state
    noteDeploy(nextWorker)
    for (const event of result.events) {
      events.publish(
        event.type === 'worker.exited'
          ? exitEvidence.record(event, state.releases[String(event.release)]?.path ?? null)
          : event
      )
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

  /** `since`: number of the first worker that loads the deployed files, even if the release is known already */
  function noteDeploy (since: number) {
    const { rollout } = state
    if (rollout?.kind !== 'deploy' || !rollout.to || phaseOf(rollout) === 'preparing' || rollout.id === lastDeploy)
      return
    lastDeploy = rollout.id
    drift.renew(rollout.to, since)
  }

  /** A command that fails must not stop the others. */
  function doCommand (command: Command) {
    try {
      passToEffect(command.type, command)
    } catch (error) {
      const { message, stack } = toError(error)
      const worker = 'worker' in command ? command.worker : null
      events.publish({ type: 'unexpected', worker, message: `${command.type}: ${message}`, detail: { stack } })
    }
  }

  function passToEffect<Type extends Command['type']> (type: Type, command: Commands[Type]) {
    effects[type](command)
  }

  /** `worker`: of another master. Returns the processes that it consists of. */
  function processesOf (worker: number): number[] {
    return processesOfProgram(handles.get(worker)?.identity)
  }

  function forkWorker (order: Extract<Command, { type: 'fork' }>) {
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

  function startWorker (order: Extract<Command, { type: 'fork' }>, isWanted: () => boolean = () => true): WorkerHandle {
    const { worker } = order
    return fork(order, { onOnline: () => {
      if (isWanted()) receive({ type: 'worker-online', worker })
    }, onMessage: (body) => {
      if (isWanted()) receiveMessage(worker, body)
    }, onAppMessage: (message) => {
      if (isWanted()) heardFromApp(worker, message)
    }, isStarting: () => !isLetGo && STARTING.includes(state.workers[worker]?.state), onReadyLine: () => {
      if (isWanted()) saidReady(worker)
    }, onInvalidMessage: (reason) => ipcValidation.hear(worker, reason), onEnded: (exit) => {
      if (isWanted()) forkEarly({ type: 'worker-exited', worker, ...exit, ...stamp() })
    }, onExit: (exit) => {
      if (isWanted()) onExited(worker, exit)
    }, queue: () => sockets.queueOf(worker), connect: (inode) => steered?.connect(inode) ?? sockets.connect(inode) })
  }

  /**
   * What is found of an end, and whether files have changed, seldom changes what takes the place of the worker. Where
   * changed files would, nothing is forked before they are looked at. `input`: a slot has lost its worker.
   */
  function forkEarly (input: Input) {
    if (isLetGo || state.options.releases?.onDrift === 'hold') return
    try {
      earlyForks.fork(reduce(state, input).commands)
    } catch {
      // Whoever decides next meets the same error, and tells of it.
    }
  }

  function heardFromApp (worker: number, message: unknown) {
    if (message !== 'ready') return appMessages.hear(worker, message)
    if (ready.signal === 'message') saidReady(worker)
  }

  function saidReady (worker: number) {
    if (standbys.has(worker)) return standbys.defer(worker, () => saidReady(worker))
    handles.get(worker)?.tell({ type: isAsked(ready) ? 'probe' : 'count-as-ready' })
    if (!isAsked(ready)) receiveMessage(worker, { type: 'ready' })
  }

  function onExited (worker: number, exit: ToldExit) {
    const known = state.workers[worker]
    const error = exit.error ?? watchdog.takeNote(worker)
    const unfinished = exit.unfinished
      ? { ...exit.unfinished, isReported: false }
      : exit.signal === null || exit.isAsTold
      ? null
      : lastReported(worker)
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

  /** `worker`: was killed and could not report its open requests */
  function lastReported (worker: number): Unfinished | null {
    const report = vitals.latest(worker)
    return report && { requests: report.inFlight ?? 0, connections: report.openConnections ?? 0, isReported: true }
  }

  async function prepareRelease ({ rollout, source, note, actor }: Extract<Command, { type: 'prepare-release' }>) {
    try {
      const release = await prepare(source, { note, actor })
      receive({ type: 'release-prepared', rollout, release, hasHook: hooks.has('beforeDeploy') })
    } catch (error) {
      receive({ type: 'release-not-prepared', rollout, reason: errorText(error) })
    }
  }

  async function runHook ({ rollout, from, release }: Extract<Command, { type: 'run-hook' }>) {
    const { passed, reason, output } = await hooks.beforeDeploy({ rollout, from, release })
    receive({ type: 'hook-ended', rollout, passed, reason, output })
  }

  async function runStartHook ({ release }: Extract<Command, { type: 'run-start-hook' }>) {
    const { passed, reason } = await hooks.beforeStart(release)
    if (passed) receive({ type: 'start-hook-passed' })
    else startBlocked.resolve({ message: String(reason) })
  }

  /**
   * Without a keeper, orphans may still hold an address while they wait for replacements, which wait for that address.
   * Returns whether it is worth another try.
   */
  function makeWay (): boolean {
    if (!Object.values(state.workers).some(({ orphan }) => orphan)) return false
    receive({ type: 'address-blocked' })
    return true
  }

  function onBindFailed (query: SocketQuery, errno: number) {
    const endsStart = isFirstStart()
    if (endsStart) startBlocked.resolve(sockets.explain(query, errno))
    return endsStart
  }

  /**
   * @returns whether it has to report once a second: a program of another language does not, nor one that starts, or
   * will soon end
   */
  function isWatched ({ id, state: its, orphan, release, keptUntil }: Worker): boolean {
    const isToAnswer = its === 'ready' || its === 'standby' || (its === 'draining' && keptUntil !== undefined)
    return isToAnswer && !orphan && handles.has(id) && runtimeOf(state, release) === 'node'
  }

  /** While no worker has ever been ready, giving up loses nothing. */
  function isFirstStart () {
    return state.phase === 'starting' && Object.values(state.workers).every((worker) => worker.readyAt === null)
  }

  function tellUnused (unused: string[]) {
    for (const address of unused) {
      events.publish({ type: 'socket.unused', actor: 'system',
        message: `the app does not listen on ${address}, which the service manager opened for it` })
    }
  }
}

/**
 * Inputs by which a slot loses a worker that still runs. `onEnded` tells of one that has ended, before its input comes.
 */
const LOSSES = Object.freeze(['worker-crashing', 'worker-stopping', 'worker-silent'])
const STARTING: readonly (WorkerState | undefined)[] = Object.freeze(['starting', 'standby'])
const STAYING: typeof STARTING = Object.freeze([...STARTING, 'ready'])
const NO_JUDGE: Pick<ReturnType<typeof createJudge>, 'begin' | 'accept' | 'judge'> = { begin () {}, accept () {},
  judge: () => {
    throw new Error('this cluster has no judge')
  } }
const NO_HOOKS = { has: () => false, beforeStart: runNoHook, beforeDeploy: runNoHook, endOf () {} }

async function prepareNothing (): Promise<never> {
  throw new Error('this cluster prepares no releases')
}

async function runNoHook (): Promise<never> {
  throw new Error('this cluster runs no hooks')
}

const NO_DRIFT = { noteLoaded () {}, look: () => ({}), renew () {} }
const NO_APP_METRICS = { accept () {}, answer () {}, left () {} }
const NO_ANSWERS = { requests: 0, failed: 0 }
const NO_VITALS = { accept () {}, left () {}, latest: () => null,
  answers: { add () {}, recent: () => [], count: () => ({ after: NO_ANSWERS, before: NO_ANSWERS, last: NO_ANSWERS }) } }
const NO_LIMITS: Limits = Object.freeze({ watchdog: { timeoutMs: 0, stack: 'off' }, recycle: { maxRssBytes: 0 } })

function servingWorkers ({ workers }: PoolState): Serving[] {
  const ready = Object.values(workers).filter(({ state }) => state === 'ready')
  return ready.map(({ id, slot, orphan }) => ({ worker: id, slot: Number(slot), isOrphan: orphan !== null }))
}

const NO_BALANCE: Balance = Object.freeze({ dispatch: 'shared', rebalance: 'off' })

/** Tells whether a worker with too many requests lets go of connections: these may come back to another one */
function mayLetGo ({ dispatch, rebalance }: Balance): boolean {
  return rebalance === 'on' && dispatch !== 'sticky'
}

/** @returns those that share all requests, which tell of them once a second; none in a rollout */
function sharingWorkers (state: PoolState): number[] {
  const ready = Object.values(state.workers).filter(({ state }) => state === 'ready')
  return state.rollout || ready.some(({ orphan }) => orphan) ? [] : ready.map(({ id }) => id)
}

function runningPrograms (state: PoolState): { worker: number, pid: number }[] {
  const running = Object.values(state.workers).filter((worker) =>
    worker.state !== 'exited' && runtimeOf(state, worker.release) === 'other'
  )
  return running.flatMap(({ id, pid }) => pid === null ? [] : [{ worker: id, pid }])
}

/** `isAlone`: no other master has the cluster */
function livingWorkers ({ workers }: PoolState,
  { isAlone, processesOf }: { isAlone: boolean, processesOf: (worker: number) => number[] }): Living[]
{
  return Object.values(workers).filter(({ state }) => state !== 'exited').map(({ id, state, orphan, intent }) => ({
    worker: id,
    isLost: intent?.cause === 'crash',
    isServing: isAlone && state === 'ready',
    isLeaving: isLeaving(state),
    processes: orphan ? () => processesOf(id) : null
  }))
}

/** @returns with which others it takes the place of those that serve; null: it takes that of one that has gone */
function generationOf ({ rollout, slots, workers }: PoolState, worker: number): string | null {
  const own = workers[worker]?.slot
  const under = rolloutGeneration({ rollout })
  if (under && slots.some(({ number, candidate }) => number === own && candidate === worker))
    return under.isRevoked ? `${under.generation} back` : under.generation
  return Object.values(workers).some(({ orphan, slot, state }) => orphan && slot === own && state === 'ready')
    ? 'orphans'
    : null
}

function rolloutGeneration ({ rollout }: Pick<PoolState, 'rollout'>) {
  return rollout && !shownStage(rollout).done
    ? { generation: `rollout ${rollout.id}`, isRevoked: phaseOf(rollout) === 'rolling-back',
      isAtOnce: rollout.kind === 'restart' }
    : null
}

/** `worker`: of another master */
function toLiving ({ id, state, identity }: SavedWorker): Living {
  return { worker: id, isServing: state === 'ready', isLeaving: isLeaving(state),
    processes: () => processesOfProgram(identity) }
}

function isLeaving (state: WorkerState) {
  return state === 'draining' || state === 'stopping'
}

/** Where nobody records crashes. */
const NO_CRASHES: Pick<CrashRecorder, 'examine' | 'record'> = {
  examine: () => ({ memoryKind: null, stderr: [], said: null, note: null }),
  record: (event) => event
}
