import { rmSync } from 'node:fs'
import { constants } from 'node:os'
import { takeCrashNote } from '../crashes/note.js'
import { DeckError } from '../errors.js'
import { listAddresses } from '../lifecycle/addresses.js'
import { reduce } from '../lifecycle/pool.js'
import { isAsked, waitingFor } from '../lifecycle/readiness.js'
import { snapshot } from '../lifecycle/snapshot.js'
import { isAlive } from '../system/process-identity.js'
import { mayChange } from '../releases/resolve.js'
import { createDeadlines } from './deadlines.js'
import { createOrphanHandle } from './orphan-handle.js'
import { createSockets } from './sockets.js'
import { createWatchdog } from './watchdog.js'

/** @typedef {ReturnType<typeof createSupervisor>} Supervisor */

const EADDRINUSE = -constants.errno.EADDRINUSE
/** Orphans look for orders ten times as seldom; until it is bound, connections are refused. */
const BLOCKED_RETRY_MS = 20
/** How long an address that another starting worker has is waited for. */
const CONTENTION_MS = 2000
/** One of each kind is enough to know what a worker does. */
const MAX_RESOURCES = 50

/**
 * Holds the one mutable state: inbox → reduce → publish what is decided → do it. Events go out first, so an intent is
 * on record before it is acted on.
 * @param {import('../lifecycle/state.js').PoolState} initialState
 * @param {object} shell
 * @param {import('./forker.js').Forker} shell.fork
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} shell.events
 * @param {import('./sockets.js').Keeper & Pick<import('../keeper/link.js').KeeperLink, 'exits' | 'reaps'>} [shell.keeper]
 * @param {Omit<Parameters<typeof createWatchdog>[0], 'listReady' | 'receive' | 'closeInspector'>} [shell.watch]  limits; without them nobody watches
 * @param {() => number} [shell.now]  monotonic, ms
 * @param {() => number} [shell.time]  wall, ms
 * @param {() => number} [shell.random]
 * @param {Pick<import('../vitals/vitals.js').Vitals, 'accept' | 'left' | 'latest'>} [shell.vitals]
 * @param {Pick<import('../crashes/recorder.js').CrashRecorder, 'examine' | 'record'>} [shell.crashes]
 * @param {(source: Record<string, unknown>, by: { note: string | null, actor: string }) => Promise<any>} [shell.prepare]  makes the release of a deploy
 * @param {Pick<ReturnType<typeof import('../releases/judge.js').createJudge>, 'begin' | 'accept' | 'judge'>} [shell.judge]
 * @param {Pick<import('../releases/drift.js').Drift, 'noteLoaded' | 'look' | 'renew'>} [shell.drift]
 * @param {(files: string[]) => void} [shell.onLoaded]  hears what live workers have loaded; the app could have sent anything
 * @param {(error: import('./sockets.js').BindError) => void} [shell.onStartBlocked]  an address of the app cannot be had, and no worker has ever been ready
 */
export function createSupervisor (initialState, {
  fork, events, keeper, watch = NO_LIMITS, now = () => performance.now(), time = Date.now, random = Math.random, onStartBlocked = () => {}, vitals = NO_VITALS, crashes = NO_CRASHES,
  prepare = async () => { throw new Error('nobody prepares releases here') }, judge = NO_JUDGE, drift = NO_DRIFT, onLoaded = () => {}
}) {
  let state = initialState
  /** @type {Map<number, import('./worker-handle.js').WorkerHandle | import('./orphan-handle.js').OrphanHandle>} */
  const handles = new Map()
  /** What is known of the end of a worker until its exit is on record. @type {Map<number, any>} */
  const evidence = new Map()
  /** @type {(worker: number, reply: { id: number, error: string | null }) => void} */
  let diagnosed = () => {}
  /** @type {any[]} */
  const inbox = []
  let isWorking = false
  /** The rollout of it. @type {number | null} */
  let lastDeploy = null
  const { ready } = initialState.options
  /** @type {() => void} */
  let resolveFinished
  /** @type {Promise<void>} */
  const finished = new Promise((resolve) => { resolveFinished = resolve })

  const deadlines = createDeadlines({ onPassed: (deadline, id) => receive({ type: 'deadline-passed', deadline, id }) })
  const sockets = createSockets({ onBindError: isFirstStart, onUnused: tellUnused, keeper })
  /** Names of the sockets of the master before, which its workers may still have. */
  let heldBefore = /** @type {Set<string>} */ (new Set())
  const watchdog = createWatchdog({
    ...watch,
    receive,
    listReady: () => Object.values(state.workers).filter(({ id, state: its, orphan }) => its === 'ready' && !orphan && handles.has(id)),
    closeInspector: (worker) => handles.get(worker)?.tell({ type: 'close-inspector' })
  })

  /** @type {{ [T in Command['type']]: (command: Extract<Command, { type: T }>) => void }} */
  const effects = {
    fork: start,
    drain: ({ worker, idleGraceMs }) => handles.get(worker)?.tell({ type: 'drain', idleGraceMs }),
    terminate: ({ worker }) => handles.get(worker)?.terminate(),
    kill: ({ worker }) => handles.get(worker)?.kill(),
    'capture-stack': ({ worker }) => { watchdog.capture(worker) },
    'set-deadline': ({ deadline, id, ms }) => deadlines.set(deadline, id, ms),
    'clear-deadline': ({ deadline, id }) => deadlines.clear(deadline, id),
    'close-sockets': () => sockets.close(),
    'expire-unused-sockets': () => sockets.expireUnused(),
    'close-unused-sockets': () => sockets.closeUnused(),
    'prepare-release': (order) => { prepareRelease(order) },
    'begin-judging': () => judge.begin(),
    judge: (order) => receive({ type: 'judged', rollout: order.rollout, verdict: judge.judge(order) }),
    'start-next': ({ execPath }) => keeper?.send({ type: 'upgrade', execPath }),
    'cancel-next': () => keeper?.send({ type: 'cancel' }),
    finish: () => {
      deadlines.clearAll()
      watchdog.stop()
      resolveFinished()
    }
  }

  /** What a worker's own side says, by message type. */
  const messages = {
    socket (/** @type {number} */ worker, /** @type {any} */ request) {
      const { seq, query, data } = request
      if (!handles.has(worker)) return
      if (sockets.isContended(worker, query) && now() - (request.since ??= now()) < CONTENTION_MS) return setTimeout(hear, BLOCKED_RETRY_MS, worker, request)
      const { handle, ...reply } = sockets.request(worker, { query, data })
      if (reply.errno === EADDRINUSE && heldBefore.has(reply.key) && makeWay()) return setTimeout(hear, BLOCKED_RETRY_MS, worker, request)
      handles.get(worker)?.tell({ type: 'socket', seq, ...reply }, handle)
    },
    'release-socket': (/** @type {number} */ worker, /** @type {any} */ { key }) => sockets.release(worker, key),
    'bind-failed' (/** @type {number} */ worker, /** @type {any} */ { seq, query, errno }) {
      if (isFirstStart()) onStartBlocked(sockets.explain(query, errno))
      else handles.get(worker)?.tell({ type: 'socket', seq, key: '', errno })
    },
    listening: (/** @type {number} */ worker, /** @type {any} */ { address, isFixed }) => receive({ type: 'worker-listening', worker, url: clip(address), isFixed: isFixed === true }),
    closed: (/** @type {number} */ worker, /** @type {any} */ { address }) => receive({ type: 'worker-closed', worker, url: clip(address) }),
    active: (/** @type {number} */ worker, /** @type {any} */ { resources }) => receive({ type: 'worker-active', worker, resources: resources.slice(0, MAX_RESOURCES).map(clip) }),
    probed: (/** @type {number} */ worker, /** @type {any} */ { text }) => receive({ type: 'worker-probed', worker, text: clip(text) }),
    ready (/** @type {number} */ worker, /** @type {any} */ { probe, warmupFailed }) {
      const handle = handles.get(worker)
      if (handle && 'accept' in handle) handle.accept()
      sockets.establish(worker)
      receive({ type: 'worker-ready', worker, ...(probe ? { probe: clip(probe) } : {}), ...(warmupFailed ? { warmupFailed: clip(warmupFailed) } : {}) })
    },
    diagnosed: (/** @type {number} */ worker, /** @type {any} */ reply) => diagnosed(worker, reply),
    crashing: (/** @type {number} */ worker, /** @type {any} */ { errorName, errorMessage }) => receive({ type: 'worker-crashing', worker, errorName: clip(errorName), errorMessage: clip(errorMessage) }),
    files (/** @type {number} */ worker, /** @type {any} */ { files }) {
      const known = state.workers[worker]
      if (!known || !Array.isArray(files)) return
      if (mayChange(state.releases[known.release])) drift.noteLoaded(known.release, files, { forkedAt: Date.parse(known.startedAt) })
      onLoaded(files)
    },
    drained: (/** @type {number} */ worker) => receive({ type: 'worker-drained', worker }),
    vitals (/** @type {number} */ worker, /** @type {any} */ body) {
      if (!state.workers[worker]) return
      vitals.accept(worker, state.workers[worker].slot, body)
      if (state.rollout) judge.accept(worker, body)
    }
  }

  /**
   * Where no keeper has kept it, an address may be held by the workers of a dead master alone, which wait for their
   * replacements, which wait for the address. @returns {boolean} whether it is worth another try
   */
  function makeWay () {
    if (!Object.values(state.workers).some(({ orphan }) => orphan)) return false
    receive({ type: 'address-blocked' })
    return true
  }

  /** No worker has ever been ready: nothing is lost yet by giving up. */
  function isFirstStart () {
    return state.phase === 'starting' && Object.values(state.workers).every((worker) => worker.readyAt === null)
  }

  /** @param {string[]} unused */
  function tellUnused (unused) {
    for (const address of unused) {
      events.publish({ type: 'socket.unused', actor: 'system', message: `the app does not listen on ${address}, which the service manager has opened for it` })
    }
  }

  return {
    finished,
    snapshot () {
      const view = snapshot(state)
      return {
        ...view,
        workers: view.workers.map((row) => ({ ...row, vitals: row.id === null ? null : vitals.latest(row.id) }))
      }
    },

    /** @param {number} worker @param {import('../../workers/protocol.js').ToWorker} message */
    tell (worker, message) { handles.get(worker)?.tell(message) },

    /** @param {number} worker @param {boolean} isExcused it is known why it does not answer: the watchdog lets it be */
    excuse (worker, isExcused) { watchdog.excuse(worker, isExcused) },

    /** @param {typeof diagnosed} listener hears what a worker answers to `diagnose` */
    onDiagnosed (listener) { diagnosed = listener },

    /** URLs on which the app has been heard to listen. */
    addresses: () => listAddresses(state),

    /** What a start that takes its time is waiting for. */
    waitingFor: () => waitingFor(state),

    /** @returns {string[]} the releases that something still runs, or would come back on */
    releasesInUse () {
      const { release, slots, workers, rollout } = state
      const ofRollout = rollout ? [rollout.from, rollout.to, ...rollout.steps.map(({ from }) => from)] : []
      return [...new Set([release.id, ...[...slots, ...Object.values(workers)].map((each) => each.release), ...ofRollout])].filter((id) => id !== null)
    },

    /** What another master needs to know to go on with this cluster after a hard end of this one. */
    memory () {
      const workers = Object.values(state.workers)
        .map(({ forkedAt, ...worker }) => ({ ...worker, identity: handles.get(worker.id)?.identity }))
        // One whose fork is not on record is none to anybody else, and ends with this master.
        .filter(({ pid, identity }) => pid !== null && identity)
      const { release, guard, addresses, nextWorker, nextRollout, nextRelease, upgrade } = state
      return { desiredWorkers: state.slots.length, release, guard, addresses, nextWorker, nextRollout, nextRelease, firstOfNext: upgrade?.firstWorker ?? null, sockets: sockets.names(), workers }
    },

    /**
     * @param {object} how
     * @param {number} how.workers how many
     * @param {SavedWorker[]} [how.left] the workers of a master that has died, as its memory had them
     * @param {string[]} [how.sockets] the names of its sockets
     * @param {boolean} [how.isNewRelease] false where that master has made it
     * @param {import('../lifecycle/rollout/guard.js').Guard | null} [how.guard] of that master
     */
    start ({ workers, left = [], sockets: before = [], isNewRelease = true, guard = null }) {
      heldBefore = new Set(before)
      receive({ type: 'start', workers, isNewRelease, guard, orphans: left.map(adopt), actor: 'system' })
    },

    /**
     * Makes this the cluster's one master, after it has started its workers beside those of another.
     * @param {{ left: SavedWorker[], nextWorker: number, guard: import('../lifecycle/rollout/guard.js').Guard | null }} inheritance
     */
    takeOver ({ left, nextWorker, guard }) {
      for (const handle of handles.values()) handle.tell({ type: 'outlive' })
      receive({ type: 'take-over', orphans: left.map(adopt), nextWorker, guard })
    },

    /** This master will not become the cluster's: its workers drain, the sockets are the other one's. */
    abandon () {
      sockets.leave()
      receive({ type: 'stop', actor: 'system', cause: 'rollback' })
    },

    /** @param {string} reason */
    nextFailing (reason) { receive({ type: 'next-failing', reason }) },

    /** @param {{ reason: string, left: SavedWorker[], lastWorker: number }} gone the next master, and those of its workers that may still live */
    nextGone ({ reason, left, lastWorker }) {
      receive({ type: 'next-gone', reason, lastWorker, orphans: left.map((worker) => adopt({ ...worker, state: 'draining' })) })
    },

    /** The next master has the cluster from now on. */
    handOver () {
      receive({ type: 'hand-over' })
      sockets.leave()
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
     * @param {any} command  an operator's input of lifecycle/state.js
     * @throws {DeckError} when it is not possible now; then nothing has changed
     */
    dispatch (command) {
      const refusal = turn(command)
      takeInbox()
      if (refusal) throw new DeckError(refusal.code, refusal.message, { details: refusal.details })
    },

    /** Ends every worker without any grace. @param {string} reason */
    killAll (reason) { receive({ type: 'kill-all', reason }) }
  }

  /** @param {any} input what has happened outside; it waits while another one is being worked on */
  function receive (input) {
    inbox.push(input)
    if (!isWorking) takeInbox()
  }

  function takeInbox () {
    while (inbox.length > 0) {
      const input = inbox.shift()
      try {
        turn(input)
      } catch (/** @type {any} */ error) {
        // Supervision goes on, and the fault is on record.
        events.publish({ type: 'unexpected', worker: input.worker ?? null, message: `${input.type}: ${error.message}`, detail: { stack: error.stack } })
      }
    }
  }

  /** @param {any} input @returns {import('../lifecycle/state.js').Refusal | null} */
  function turn (input) {
    isWorking = true
    try {
      const stamp = { at: now(), time: time(), random: random() }
      const result = decide({ ...input, ...stamp })
      state = result.state
      noteDeploy(stamp.time)
      for (const event of result.events) events.publish(event.type === 'worker.exited' ? recordCrash(event) : event)
      for (const command of result.commands) attempt(command)
      return result.refusal
    } finally {
      isWorking = false
    }
  }

  /** @param {number} since wall ms: what is loaded from now on is what this deploy means, also of a release that is known */
  function noteDeploy (since) {
    const { rollout } = state
    if (rollout?.kind !== 'deploy' || !rollout.to || rollout.id === lastDeploy) return
    lastDeploy = rollout.id
    drift.renew(rollout.to, since)
  }

  /**
   * Whether the files of a release have changed is asked only where a worker is about to be forked on it; then it is
   * decided once more, knowing the answer. What is deployed is meant as it is.
   * @param {any} input
   */
  function decide (input) {
    const isDeploy = input.type === 'rollout' ? input.kind === 'deploy' : input.type === 'release-prepared' && state.rollout?.kind === 'deploy'
    /** @type {ReturnType<typeof drift.look>} */
    const changed = {}
    /** @type {Set<string>} */
    const asked = new Set()
    for (;;) {
      const result = reduce(state, { ...input, drift: changed })
      const news = isDeploy ? [] : releasesToFork(result).filter((id) => !asked.has(id))
      if (news.length === 0) return result
      news.forEach((id) => asked.add(id))
      Object.assign(changed, drift.look(news))
    }
  }

  /** @param {Command} command one that fails must not take the others with it */
  function attempt (command) {
    try {
      effects[command.type](/** @type {never} */ (command))
    } catch (/** @type {any} */ error) {
      events.publish({ type: 'unexpected', worker: 'worker' in command ? command.worker : null, message: `${command.type}: ${error.message}`, detail: { stack: error.stack } })
    }
  }

  /** @param {number} worker @param {any} body  the app's own code could have sent anything under our name */
  function hear (worker, body) {
    try {
      watchdog.heard(worker, body)
      if (Object.hasOwn(messages, body.type)) messages[/** @type {keyof typeof messages} */ (body.type)](worker, body)
    } catch (/** @type {any} */ error) {
      events.publish({ type: 'unexpected', worker, message: `a message that cannot be read: ${error.message}` })
    }
  }

  /** @param {SavedWorker} saved @returns {import('../lifecycle/state.js').Orphan} */
  function adopt ({ identity, ...worker }) {
    const told = keeper?.exits.findLast(({ pid }) => pid === worker.pid)
    const isTold = keeper?.reaps
    const isGone = !identity || (!isAlive(identity) && (told || !isTold))
    if (isGone) {
      const { code = null, signal = null } = told ?? {}
      if (identity) rmSync(identity.orderFile, { force: true })
      return { ...worker, exit: investigate(worker, { code, signal, error: identity ? takeCrashNote(identity.crashFile, code) : null }) }
    }
    const { deadlineMs } = initialState.options.drain
    handles.set(worker.id, createOrphanHandle(identity, { deadlineMs, isTold, onExit: (exit) => exited(worker.id, exit) }))
    return { ...worker, exit: null }
  }

  /** @param {{ id: number, slot: number, pid: number | null }} worker @param {{ code: number | null, signal: string | null, error: any }} exit */
  function investigate ({ id, slot, pid }, exit) {
    const found = crashes.examine({ slot, worker: id, pid, code: exit.code, signal: exit.signal })
    evidence.set(id, { note: exit.error, ...found })
    return { ...exit, isOutOfMemory: found.memoryKind !== null }
  }

  /** @param {any} event `worker.exited` */
  function recordCrash (event) {
    const found = evidence.get(event.worker)
    evidence.delete(event.worker)
    return found ? crashes.record(event, { ...found, root: state.releases[event.release]?.path ?? null }) : event
  }

  /** @param {number} worker @param {any} exit */
  function exited (worker, exit) {
    const known = state.workers[worker]
    const error = exit.error ?? watchdog.takeNote(worker)
    const end = known ? investigate(known, { ...exit, error }) : exit
    handles.delete(worker)
    vitals.left(worker)
    sockets.forget(worker)
    receive({ type: 'worker-exited', worker, ...end })
  }

  /** @param {Extract<Command, { type: 'prepare-release' }>} order */
  async function prepareRelease ({ rollout, source, note, actor }) {
    try {
      receive({ type: 'release-prepared', rollout, release: await prepare(source, { note, actor }) })
    } catch (/** @type {any} */ error) {
      receive({ type: 'release-not-prepared', rollout, reason: error.message })
    }
  }

  /** @param {Extract<Command, { type: 'fork' }>} order */
  function start (order) {
    const { worker } = order
    try {
      const handle = fork(order, {
        onOnline: () => receive({ type: 'worker-online', worker }),
        onMessage: (body) => hear(worker, body),
        onAppMessage: (message) => {
          if (message !== 'ready' || ready.signal !== 'message') return
          if (isAsked(ready)) handles.get(worker)?.tell({ type: 'probe' })
          else receive({ type: 'worker-ready', worker })
        },
        onExit: (exit) => exited(worker, exit)
      })
      handles.set(worker, handle)
      receive({ type: 'worker-forked', worker, pid: handle.identity?.pid ?? null })
    } catch (/** @type {any} */ error) {
      exited(worker, { code: null, signal: null, error: { errorName: error.name, errorMessage: error.message, stack: null } })
    }
  }
}

/** @type {Pick<ReturnType<typeof import('../releases/judge.js').createJudge>, 'begin' | 'accept' | 'judge'>} */
const NO_JUDGE = { begin () {}, accept () {}, judge: () => { throw new Error('nobody judges here') } }
const NO_DRIFT = { noteLoaded () {}, look: () => ({}), renew () {} }
const NO_VITALS = { accept () {}, left () {}, latest: () => null }
const NO_LIMITS = Object.freeze({ watchdog: { timeoutMs: 0, stack: /** @type {const} */ ('off') }, recycle: { maxRssBytes: 0 } })
/** Where nobody records crashes. @type {Pick<import('../crashes/recorder.js').CrashRecorder, 'examine' | 'record'>} */
const NO_CRASHES = { examine: () => ({ memoryKind: null, stderr: [] }), record: (event) => event }

/** @param {ReturnType<typeof reduce>} result @returns {string[]} the releases of its new workers, and of those of a next master */
function releasesToFork ({ commands, state }) {
  const isUpgrade = commands.some(({ type }) => type === 'start-next')
  const ids = [...commands.map((command) => command.type === 'fork' ? command.release.id : null), ...isUpgrade ? state.slots.map(({ release }) => release) : []]
  return [...new Set(ids)].filter((id) => id !== null)
}

/** @param {unknown} text of the app's own */
function clip (text) {
  return String(text).slice(0, 1000)
}

/** @typedef {import('../lifecycle/state.js').Command} Command */
/** @typedef {Omit<import('../lifecycle/state.js').Orphan, 'exit'> & { identity: import('./orphan-handle.js').OrphanIdentity | null | undefined }} SavedWorker */
