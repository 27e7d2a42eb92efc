import cluster from 'node:cluster'
import path from 'node:path'
import { removePassingSocket } from '../../workers/passing.js'
import { BOOT_VARIABLE, SLOT_VARIABLE, slotVariables } from '../../workers/protocol.js'
import { makeSessionOwners } from '../../workers/session-owners.js'
import { errorText } from '../errors.js'
import { isAsked } from '../lifecycle/readiness.js'
import { requestLimit } from '../lifecycle/recycling.js'
import { STANDBY_LOG } from '../lifecycle/snapshot.js'
import { mayChange } from '../releases/resolve.js'
import { controlGroups } from '../system/control-groups.js'
import { SHELL_VARIABLE, withoutOwnVariables } from '../system/own-variables.js'
import { limitAsShell, startAsShell } from '../system/shell-limits.js'
import { isFolder } from '../system/working-folder.js'
import { boundCompileCache } from './compile-cache.js'
import { createInspectPorts } from './inspect-ports.js'
import { createProgramHandle } from './program-handle.js'
import { awaitReadyLine } from './ready-output.js'
import { withPreload } from './preload.js'
import { tooLarge } from './too-large.js'
import { WORKER_CODE } from './worker-code.js'
import { createWorkerHandle } from './worker-handle.js'

/** @typedef {ReturnType<typeof createForker>} Forker */

/** The ports are the machine's, and several apps may be in this process: what tells a worker from all others is its crash file. */
const inspectPorts = createInspectPorts()
const ASKS_FOR_INSPECTOR = /--(inspect|debug-port)/

/** Python keeps lines back where nobody is a terminal, and loses them at SIGKILL. */
const FOR_PROGRAMS = Object.freeze({ PYTHONUNBUFFERED: '1' })

/**
 * Starts workers through node:cluster.
 * @param {{ readonly current: Pick<import('../config/config.js').Config, 'args' | 'execArgv' | 'cwd' | 'compileCache' | 'dispatch' | 'instanceVariable' | 'ready' | 'drain' | 'stop' | 'crash' | 'orphanMs' | 'limits' | 'recycle' | 'telemetry' | 'watch' | 'watchdog'> }} settings
 * @param {object} options
 * @param {string} options.crashFolder
 * @param {string} options.orderFolder
 * @param {string} [options.compileCacheFolder]
 * @param {import('../../workers/protocol.js').SessionSettings | null} [options.sessions]  null: they do not matter
 * @param {() => boolean} options.outlives  whether workers outlive this master
 * @param {() => number | null} [options.keeperPid]  of the process that would start the next master
 * @param {Pick<import('../logs/logs.js').Logs, 'open' | 'ended'>} options.logs
 * @param {(release: string) => Record<string, string | undefined>} [options.environment]  the variables of its workers, over those that they inherit
 * @param {(release: string) => boolean} [options.hasSecrets]  whether some of these are on no disk
 * @param {Record<string, string | undefined>} [options.inherited]  of the shell that the app is from
 * @param {(message: string) => void} [options.onProblem]  a working folder is gone, or limits cannot be kept
 * @param {Pick<import('../system/control-groups.js').ControlGroups, 'open'>} [options.groups]
 * @param {() => number} [options.random]
 */
export function createForker (settings, {
  crashFolder, orderFolder, compileCacheFolder, sessions = null, outlives, keeperPid = () => null, logs, environment = () => ({}), hasSecrets = () => false, inherited = process.env, onProblem = () => {}, groups = controlGroups, random = Math.random
}) {
  /** @type {Set<string>} what has been told of */
  const told = new Set()
  /** The output of each worker; one that was not needed has left its id to another. @type {Map<number, object>} */
  const writers = new Map()
  if (sessions) makeSessionOwners(sessions.folder)
  if (compileCacheFolder !== undefined && settings.current.compileCache === 'on') boundCompileCache(compileCacheFolder)
  /** @type {import('./worker-handle.js').WorkerGroup} */
  const group = { name: crashFolder, workers: new Set() }

  /**
   * @param {{ worker: number, slot: number | null, release: import('../lifecycle/state.js').Release }} order
   * @param {Parameters<typeof createWorkerHandle>[1] & { isStarting: () => boolean, onReadyLine: () => void }} hooks  `onReadyLine`: it has written the line of option ready.log
   * @returns {import('./worker-handle.js').WorkerHandle}
   * @throws where the system has no process to give
   */
  return function fork ({ worker: id, slot, release }, hooks) {
    const { args: ownArgs, execArgv: ownExecArgv, cwd: ownCwd, compileCache, dispatch: configured, instanceVariable, ready, drain, stop, crash, orphanMs, limits, recycle, telemetry, watch, watchdog } = settings.current
    // These settings are global to node:cluster, so they are set before every fork: each slot has its own release.
    const ownOutput = openOutput({ worker: id, slot: slot ?? STANDBY_LOG })
    const awaited = ready.log === undefined ? null : awaitReadyLine(ownOutput, ready.log, { isAwaited: hooks.isStarting, onFound: hooks.onReadyLine })
    const output = awaited?.output ?? ownOutput
    // The line takes the place of the app's message.
    const signal = ready.log === undefined ? ready.signal : 'message'
    const { args = ownArgs, execArgv = ownExecArgv, cwd = ownCwd } = release
    // Whoever gets a connection passes it to the worker that has its session.
    const dispatch = sessions ? 'shared' : configured
    const name = `${process.pid}-${id}.json`
    const crashFile = path.join(crashFolder, name)
    const folder = folderFor({ cwd, entry: release.entry, release: release.id })
    const own = environment(release.id)
    const variables = withoutOwnVariables({ ...inherited, ...own })
    const { NODE_OPTIONS: nodeOptions } = variables
    const slotVariableNames = slotVariableNamesOf(instanceVariable, own, inherited)
    const orderFile = path.join(orderFolder, name)
    const shell = inherited[SHELL_VARIABLE]
    const limited = attempt(() => groups.open(limits))
    const env = {
      ...variables,
      ...slotVariables(slot, slotVariableNames),
      CLUSTERDECK_RELEASE: isLeftOut(own, 'CLUSTERDECK_RELEASE') ? undefined : release.id
    }
    try {
      const handle = release.runtime === 'other' ? forkProgram() : forkNode()
      writers.set(id, ownOutput)
      return handle
    } catch (error) {
      limited?.end()
      throw error
    }

    function forkProgram () {
      const handle = createProgramHandle({ file: release.entry, args, env: { ...FOR_PROGRAMS, ...env, [SHELL_VARIABLE]: shell }, cwd: folder, output, stop, watchdogMs: watchdog.timeoutMs }, { ...hooks, onExit: tellExit }, { crashFile, orderFile }, { signal, probe: probeOf(ready) })
      enter(handle.identity?.pid)
      return handle
    }

    function forkNode () {
      const preloaded = withPreload({ execArgv, nodeOptions })
      const inspectPort = inspectPorts.take(crashFile, [...execArgv, nodeOptions ?? ''])
      // node:cluster looks into the NODE_OPTIONS of this process alone.
      const isUnseen = nodeOptions !== process.env.NODE_OPTIONS && ASKS_FOR_INSPECTOR.test(nodeOptions ?? '')
      const allExecArgv = isUnseen ? [...preloaded.execArgv, `--inspect-port=${inspectPort}`] : preloaded.execArgv
      const stdio = ['inherit', output.stdout, output.stderr, 'ipc']
      cluster.setupPrimary({ exec: release.entry, args, execArgv: allExecArgv, inspectPort, cwd: folder, stdio })
      /** @type {import('../../workers/protocol.js').BootSettings} */
      const boot = {
        code: WORKER_CODE,
        compileCache: compileCache === 'on' ? compileCacheFolder ?? null : null,
        nodeOptions: nodeOptions ?? null,
        hasImports: preloaded.hasImports,
        worker: id,
        standsBy: slot === null,
        dispatch,
        readySignal: signal,
        crashFile,
        maxRequests: requestLimit(recycle, random()),
        crash,
        files: watch ? 'often' : mayChange(release) ? 'rarely' : 'off',
        probe: probeOf(ready),
        sessions,
        countsRoutes: telemetry.routes === 'on',
        tellsMetrics: telemetry.appMetrics === 'on',
        slotVariableNames,
        hasSecrets: hasSecrets(release.id),
        calledAs: release.calledAs ?? null,
        orphan: { outlives: outlives(), orderFile, keeper: keeperPid(), afterMs: orphanMs, ...drain, ...stop }
      }
      const worker = startAsShell(shell, () => forkInto(output, { crashFile, args }, {
        // node:cluster merges it into the environment of this process, which may be that of another shell.
        ...withoutValues(process.env),
        ...env,
        NODE_OPTIONS: preloaded.nodeOptions,
        [BOOT_VARIABLE]: JSON.stringify(boot)
      }))
      limitAsShell(shell, worker.process.pid)
      enter(worker.process.pid)
      group.workers.add(worker)
      return createWorkerHandle(worker, { ...hooks, onEnded, onExit }, { crashFile, orderFile }, { dispatch, isAsked: isAsked(ready), message: stop.message, group })

      /** Its successor gets its inspector port and goes on in its log. */
      function onEnded (/** @type {Parameters<NonNullable<typeof hooks.onEnded>>[0]} */ exit) {
        group.workers.delete(worker)
        inspectPorts.left(crashFile, exit)
        endLog()
        hooks.onEnded?.(exit)
      }

      function onExit (/** @type {Parameters<typeof hooks.onExit>[0]} */ exit) {
        group.workers.delete(worker)
        inspectPorts.left(crashFile, exit)
        if (sessions) removePassingSocket(sessions.folder, id)
        tellExit(exit)
      }
    }

    function tellExit (/** @type {Parameters<typeof hooks.onExit>[0]} */ exit) {
      endLog()
      hooks.onExit({ ...exit, isOutOfMemory: limited?.end() })
    }

    function endLog () {
      if (writers.get(id) !== ownOutput) return
      writers.delete(id)
      logs.ended(id)
    }

    function enter (/** @type {number | undefined} */ pid) {
      if (pid === undefined) return
      awaited?.startedAs(pid)
      attempt(() => limited?.enter(pid))
    }
  }

  /** @param {{ cwd: string, entry: string, release: string }} where @returns {string} that is there */
  function folderFor ({ cwd, entry, release }) {
    if (isFolder(cwd)) return cwd
    const folder = path.dirname(entry)
    if (!isFolder(folder)) throw new Error(`release ${release} cannot run: its folder ${folder} is gone; deploy another release`)
    tellOnce(`the working folder ${cwd} is gone; the workers of release ${release} start in ${folder}, where its entry is`)
    return folder
  }

  /** An app without its limits is better than none. @template T @param {() => T} work of its control group @returns {T | null} */
  function attempt (work) {
    try {
      return work()
    } catch (error) {
      tellOnce(`workers start without limits.memoryBytes and limits.cpus: ${errorText(error)}`)
      return null
    }
  }

  /** @param {string} message */
  function tellOnce (message) {
    if (!told.has(message)) onProblem(message)
    told.add(message)
  }

  /** @param {{ worker: number, slot: number }} order @returns {import('../programs/running-program.js').Output} */
  function openOutput (order) {
    try {
      return logs.open(order)
    } catch {
      // ENOSPC, EMFILE, EROFS: an app without a log is better than none.
      return { stdout: 'inherit', stderr: 'inherit', close () {} }
    }
  }

  /** @param {import('../programs/running-program.js').Output} output @param {{ crashFile: string, args: string[] }} worker @param {Record<string, unknown>} env */
  function forkInto (output, { crashFile, args }, env) {
    try {
      return cluster.fork(env)
    } catch (error) {
      inspectPorts.left(crashFile, {})
      throw tooLarge(error, args, env) ?? error
    } finally {
      output.close()
    }
  }
}

/** @param {Record<string, unknown>} env @returns {Record<string, undefined>} */
function withoutValues (env) {
  return Object.fromEntries(Object.keys(env).map((name) => [name, undefined]))
}

/** @param {import('../config/config.js').Config['ready']} ready @returns {import('../../workers/protocol.js').ProbeSettings | null} */
function probeOf (ready) {
  const { path = null, status, intervalMs, probeTimeoutMs, warmup, warmupRounds } = ready
  return isAsked(ready) ? { path, status, intervalMs, timeoutMs: probeTimeoutMs, warmup, warmupRounds } : null
}

/**
 * Names the variables that tell an app its slot. By null the user leaves ours out; the other one the user may also set.
 * @param {string} instance  the variable that counts from 0
 * @param {Record<string, string | undefined>} own  as the configuration has them @param {Record<string, string | undefined>} inherited
 * @returns {string[]}
 */
export function slotVariableNamesOf (instance, own, inherited) {
  return [...isLeftOut(own, SLOT_VARIABLE) ? [] : [SLOT_VARIABLE], ...isInstanceSet(instance, own, inherited) ? [] : [instance]]
}

/** @param {Record<string, string | undefined>} own @param {string} name @returns {boolean} whether the configuration sets it to null */
function isLeftOut (own, name) {
  return Object.hasOwn(own, name) && own[name] === undefined
}

/**
 * A configured value counts, null too: node-config chooses its file by NODE_APP_INSTANCE. One that is inherited along with
 * the number of another cluster's worker belongs to that cluster.
 * @param {string} name @param {Record<string, string | undefined>} own  as the configuration has them @param {Record<string, string | undefined>} inherited
 */
function isInstanceSet (name, own, inherited) {
  if (Object.hasOwn(own, name)) return true
  return inherited[name] !== undefined && inherited[SLOT_VARIABLE] === undefined && inherited.pm_id === undefined
}
