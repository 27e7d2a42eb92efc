import cluster from 'node:cluster'
import path from 'node:path'
import { removePassingSocket } from '../../workers/passing.ts'
import { BOOT_VARIABLE, SLOT_VARIABLE, slotVariables, START_DESCRIPTOR } from '../../workers/protocol.ts'
import { makeSessionOwners } from '../../workers/session-owners.ts'
import { errorText } from '../errors.ts'
import { isAsked } from '../lifecycle/readiness.ts'
import { requestLimit } from '../lifecycle/recycling.ts'
import { STANDBY_LOG } from '../lifecycle/snapshot.ts'
import { mayChange } from '../releases/resolve.ts'
import { controlGroups, type ControlGroups } from '../system/control-groups.ts'
import { isOldNode, isProgram, pathWithNode } from '../system/app-node.ts'
import { SHELL_VARIABLE, withoutOwnVariables } from '../system/own-variables.ts'
import { limitAsShell, startAsShell } from '../system/shell-limits.ts'
import { scriptPath, WORKER_CODE } from '../system/built.ts'
import { isFolder } from '../system/working-folder.ts'
import { boundCompileCache } from './compile-cache.ts'
import { createInspectPorts } from './inspect-ports.ts'
import { OLD_NODE_VARIABLE } from './program-end.ts'
import { createProgramHandle } from './program-handle.ts'
import { awaitReadyLine } from './ready-output.ts'
import { withPreload } from './preload.ts'
import { tooLarge } from './too-large.ts'
import { createWorkerHandle, type WorkerHandle } from './worker-handle.ts'
import type { Config } from '../config/config.ts'
import type { BootSettings, ProbeSettings, SessionSettings } from '../../workers/protocol.ts'
import type { Logs } from '../logs/logs.ts'
import type { Release } from '../lifecycle/state.ts'
import type { Output } from '../programs/running-program.ts'

export type Forker = ReturnType<typeof createForker>

/**
 * The ports are the machine's, and several apps may be in this process: what tells a worker from all others is its
 * crash file.
 */
const inspectPorts = createInspectPorts()
const OLD_NODE = scriptPath('old-node.cjs')
const ASKS_FOR_INSPECTOR = /--(inspect|debug-port)/

/** Python keeps lines back where nobody is a terminal, and loses them at SIGKILL. */
const FOR_PROGRAMS = Object.freeze({ PYTHONUNBUFFERED: '1' })

/** Starts workers through node:cluster. */
export function createForker (
  settings: {
    readonly current: Pick<Config,
      'args' | 'execArgv' | 'cwd' | 'compileCache' | 'dispatch' | 'instanceVariable' | 'ready' | 'drain' | 'stop'
        | 'crash' | 'orphanMs' | 'limits' | 'recycle' | 'telemetry' | 'watch' | 'watchdog'>
  },
  { crashFolder, orderFolder, compileCacheFolder, sessions = null, outlives, keeperPid = () => null, logs,
    environment = () => ({}), hasSecrets = () => false, inherited: inheritedBy = () => process.env,
    onProblem = () => {}, groups = controlGroups, random = Math.random }: {
      crashFolder: string,
      orderFolder: string,
      compileCacheFolder?: string,
      /** null: they do not matter */
      sessions?: SessionSettings | null,
      /** whether workers outlive this master */
      outlives: () => boolean,
      /** of the process that would start the next master */
      keeperPid?: () => number | null,
      logs: Pick<Logs, 'open' | 'ended'>,
      /** the variables of its workers, over those that they inherit */
      environment?: (release: string) => Record<string, string | undefined>,
      /** whether some of these are on no disk */
      hasSecrets?: (release: string) => boolean,
      /** of the shell that the app is from */
      inherited?: (release: string) => Record<string, string | undefined>,
      /** a working folder is gone, or limits cannot be kept */
      onProblem?: (message: string) => void,
      groups?: Pick<ControlGroups, 'open'>,
      random?: () => number
    }
) {
  /** what has been told of */
  const told: Set<string> = new Set()
  /** The output of each worker; one that was not needed has left its id to another. */
  const writers: Map<number, object> = new Map()
  if (sessions) makeSessionOwners(sessions.folder)
  if (compileCacheFolder !== undefined && settings.current.compileCache === 'on') boundCompileCache(compileCacheFolder)

  /**
   * `onReadyLine`: it has written the line of option ready.log.
   * @throws where the system has no process to give
   */
  return function fork ({ worker: id, slot, release }: { worker: number, slot: number | null, release: Release },
    hooks: Parameters<typeof createWorkerHandle>[1] & { isStarting: () => boolean,
      onReadyLine: () => void }): WorkerHandle
  {
    const { args: ownArgs, execArgv: ownExecArgv, cwd: ownCwd, compileCache, dispatch: configured, instanceVariable,
      ready, drain, stop, crash, orphanMs, limits, recycle, telemetry, watch, watchdog } = settings.current
    // These settings are global to node:cluster, so they are set before every fork: each slot has its own release.
    const ownOutput = openOutput({ worker: id, slot: slot ?? STANDBY_LOG })
    const awaited = ready.log === undefined
      ? null
      : awaitReadyLine(ownOutput, ready.log, { isAwaited: hooks.isStarting, onFound: hooks.onReadyLine })
    const output = awaited?.output ?? ownOutput
    // The line takes the place of the app's message.
    const signal = ready.log === undefined ? ready.signal : 'message'
    const { args = ownArgs, execArgv = ownExecArgv, cwd = ownCwd } = release
    // Whoever gets a connection passes it to the worker that has its session.
    const dispatch = sessions ? 'shared' : configured
    const name = `${process.pid}-${id}.json`
    const crashFile = path.join(crashFolder, name)
    const folder = folderFor({ cwd, entry: release.entry, release: release.id })
    const [own, inherited] = [environment(release.id), inheritedBy(release.id)]
    const variables = withoutOwnVariables({ ...inherited, ...own })
    const { NODE_OPTIONS: nodeOptions } = variables
    const slotVariableNames = slotVariableNamesOf(instanceVariable, own, inherited)
    const orderFile = path.join(orderFolder, name)
    const shell = inherited[SHELL_VARIABLE]
    const limited = attempt(() => groups.open(limits))
    const env = { ...variables, ...(release.node && { PATH: pathWithNode(release.node, variables.PATH) }),
      ...slotVariables(slot, slotVariableNames),
      CLUSTERDECK_RELEASE: isLeftOut(own, 'CLUSTERDECK_RELEASE') ? undefined : release.id }
    try {
      const handle = release.runtime === 'other' ? forkProgram() : forkNode()
      writers.set(id, ownOutput)
      return handle
    } catch (error) {
      limited?.end()
      throw error
    }

    function forkProgram () {
      const isOnOldNode = release.node?.file === release.entry && isOldNode(release.node.version)
      const [ownArgs, ownVariables] = isOnOldNode
        ? [['--require', OLD_NODE, ...args], { [OLD_NODE_VARIABLE]: String(drain.idleGraceMs) }]
        : [args, {}]
      const handle = createProgramHandle({ file: release.entry, args: ownArgs,
        env: { ...FOR_PROGRAMS, ...env, ...ownVariables, [SHELL_VARIABLE]: shell }, cwd: folder, output, stop,
        watchdogMs: watchdog.timeoutMs }, { ...hooks, onExit: tellExit }, { crashFile, orderFile }, { signal,
        probe: probeOf(ready) })
      enter(handle.identity?.pid)
      return handle
    }

    function forkNode () {
      const { file: node, version } = release.node ?? { file: process.execPath, version: process.versions.node }
      if (!isProgram(node))
        throw new Error(
          `release ${release.id} cannot run: its Node ${node} is gone; install Node ${version} again, or deploy`
        )
      const preloaded = withPreload({ execArgv, nodeOptions })
      const inspectPort = inspectPorts.take(crashFile, [...execArgv, nodeOptions ?? ''])
      // node:cluster looks into the NODE_OPTIONS of this process alone.
      const isUnseen = nodeOptions !== process.env.NODE_OPTIONS && ASKS_FOR_INSPECTOR.test(nodeOptions ?? '')
      const allExecArgv = isUnseen ? [...preloaded.execArgv, `--inspect-port=${inspectPort}`] : preloaded.execArgv
      const stdio = ['inherit', output.stdout, output.stderr, 'ipc', 'pipe']
      cluster.setupPrimary({ exec: release.entry, args, execArgv: allExecArgv, inspectPort, cwd: folder, stdio })
      const boot: BootSettings = { code: WORKER_CODE,
        compileCache: compileCache === 'on' ? compileCacheFolder ?? null : null, nodeOptions: nodeOptions ?? null,
        hasImports: preloaded.hasImports, worker: id, standsBy: slot === null, dispatch, readySignal: signal, crashFile,
        maxRequests: requestLimit(recycle, random()), crash,
        files: watch ? 'often' : mayChange(release) ? 'rarely' : 'off', probe: probeOf(ready), sessions,
        countsRoutes: telemetry.routes === 'on', tellsMetrics: telemetry.appMetrics === 'on', slotVariableNames,
        hasSecrets: hasSecrets(release.id), calledAs: release.calledAs ?? null,
        orphan: { outlives: outlives(), orderFile, keeper: keeperPid(), afterMs: orphanMs, ...drain, ...stop } }
      const worker = startAsShell(shell, () =>
        forkInto(output, { crashFile, args, node }, {
          // node:cluster merges it into the environment of this process, which may be that of another shell.
          ...Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined])),
          ...env,
          NODE_OPTIONS: preloaded.nodeOptions,
          [BOOT_VARIABLE]: JSON.stringify(boot)
        }))
      limitAsShell(shell, worker.process.pid)
      enter(worker.process.pid)
      worker.process.stdio[START_DESCRIPTOR]?.destroy()
      return createWorkerHandle(worker, { ...hooks, onEnded, onExit }, { crashFile, orderFile }, stop)

      /** Its successor gets its inspector port and goes on in its log. */
      function onEnded (exit: Parameters<NonNullable<typeof hooks.onEnded>>[0]) {
        inspectPorts.left(crashFile, exit)
        endLog()
        hooks.onEnded?.(exit)
      }

      function onExit (exit: Parameters<typeof hooks.onExit>[0]) {
        inspectPorts.left(crashFile, exit)
        if (sessions) removePassingSocket(sessions.folder, id)
        tellExit(exit)
      }
    }

    function tellExit (exit: Parameters<typeof hooks.onExit>[0]) {
      endLog()
      hooks.onExit({ ...exit, isOutOfMemory: limited?.end() })
    }

    function endLog () {
      if (writers.get(id) !== ownOutput) return
      writers.delete(id)
      logs.ended(id)
    }

    function enter (pid: number | undefined) {
      if (pid === undefined) return
      awaited?.startedAs(pid)
      attempt(() => limited?.enter(pid))
    }
  }

  /** @returns that is there */
  function folderFor ({ cwd, entry, release }: { cwd: string, entry: string, release: string }): string {
    if (isFolder(cwd)) return cwd
    const folder = path.dirname(entry)
    if (!isFolder(folder))
      throw new Error(`release ${release} cannot run: its folder ${folder} is gone; deploy another release`)
    tellOnce(
      `the working folder ${cwd} is gone; the workers of release ${release} start in ${folder}, where its entry is`
    )
    return folder
  }

  /** An app without its limits is better than none. `work`: of its control group. */
  function attempt<T> (work: () => T): T | null {
    try {
      return work()
    } catch (error) {
      tellOnce(`workers start without limits.memoryBytes and limits.cpus: ${errorText(error)}`)
      return null
    }
  }

  function tellOnce (message: string) {
    if (!told.has(message)) onProblem(message)
    told.add(message)
  }

  function openOutput (order: { worker: number, slot: number }): Output {
    try {
      return logs.open(order)
    } catch {
      // ENOSPC, EMFILE, EROFS: an app without a log is better than none.
      return { stdout: 'inherit', stderr: 'inherit', close () {} }
    }
  }
}

function forkInto (output: Output, { crashFile, args, node }: { crashFile: string, args: string[], node: string },
  env: Record<string, unknown>)
{
  const { execPath } = process
  try {
    // node:cluster has no option for it.
    process.execPath = node
    return cluster.fork(env)
  } catch (error) {
    inspectPorts.left(crashFile, {})
    throw tooLarge(error, args, env) ?? error
  } finally {
    process.execPath = execPath
    output.close()
  }
}

function probeOf (ready: Config['ready']): ProbeSettings | null {
  const { path = null, status, intervalMs, probeTimeoutMs, warmup, warmupRounds } = ready
  return isAsked(ready) ? { path, status, intervalMs, timeoutMs: probeTimeoutMs, warmup, warmupRounds } : null
}

/**
 * Names the variables that tell an app its slot. By null the user leaves ours out; the other one the user may also set.
 * `instance`: the variable that counts from 0; `own`: as the configuration has them.
 */
export function slotVariableNamesOf (instance: string, own: Record<string, string | undefined>,
  inherited: Record<string, string | undefined>): string[]
{
  return [...isLeftOut(own, SLOT_VARIABLE) ? [] : [SLOT_VARIABLE],
    ...isInstanceSet(instance, own, inherited) ? [] : [instance]]
}

/** Tells whether the configuration sets it to null */
function isLeftOut (own: Record<string, string | undefined>, name: string): boolean {
  return Object.hasOwn(own, name) && own[name] === undefined
}

/**
 * A configured value counts, null too: node-config chooses its file by NODE_APP_INSTANCE. One that is inherited along
 * with the number of another cluster's worker belongs to that cluster. `own`: as the configuration has them.
 */
function isInstanceSet (name: string, own: Record<string, string | undefined>,
  inherited: Record<string, string | undefined>)
{
  if (Object.hasOwn(own, name)) return true
  return inherited[name] !== undefined && inherited[SLOT_VARIABLE] === undefined && inherited.pm_id === undefined
}
