import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { durationText } from '../lifecycle/duration.ts'
import { whyNotExecuted } from '../programs/not-executed.ts'
import { addToHelper } from '../programs/helper-link.ts'
import { openNotifySocket, type NotifySocket, type Said } from '../programs/notify-socket.ts'
import { runProgram, whyUnheard, type Output } from '../programs/running-program.ts'
import { identifyProcess } from '../system/process-identity.ts'
import { TREE_VARIABLE } from '../system/process-tree.ts'
import { pidsOf } from '../system/tree-usage.ts'
import { createHeartbeat, queuedMs } from '../system/heartbeat.ts'
import { listeningSockets } from '../programs/listening-sockets.ts'
import { socketsOf } from '../system/open-sockets.ts'
import { createProgramEnd, type Stop } from './program-end.ts'
import { createProgramReadiness } from './program-readiness.ts'
import { createProgramSockets, type ProgramSockets } from './program-sockets.ts'
import type { Handle, WorkerFiles, WorkerHandle, createWorkerHandle } from './worker-handle.ts'
import type { ToMaster, ToWorker } from '../../workers/protocol.ts'
import type { ToldExit } from '../lifecycle/loss.ts'

const TICK_MS = 500
/** A heartbeat knows several; here it is one. */
const PROGRAM = 1

/** As long as it does not listen, its first socket is waited for. */
const FIRST_EVERY_MS = 100

const LOOK_EVERY_MS = 5000

/**
 * A worker that is another program than Node, with the methods of a worker handle. It has no channel: what it binds is
 * heard by its system calls, and it is told to end by a signal. `args`: without its name; `watchdogMs`: how
 * long it may be silent once it has said that it lives, 0: for ever.
 */
export function createProgramHandle (
  { file, args, env, cwd, output, stop, watchdogMs }: { file: string, args: string[],
    env: Record<string, string | undefined>, cwd: string, output: Output, stop: Stop, watchdogMs: number },
  { onOnline, onMessage, onInvalidMessage, onExit, queue = () => 0, connect = () => null }: Parameters<
    typeof createWorkerHandle
  >[1],
  files: WorkerFiles,
  ready: Parameters<typeof createProgramReadiness>[0]
): WorkerHandle {
  const heard = createProgramSockets({ onMessage: hear })
  let sockets: Pick<ProgramSockets, 'answer' | 'releaseClosed' | 'close'> = heard
  let isLetGo = false
  let isGone = false
  let failure: { errorName: string, errorMessage: string, stack: null } | null = null
  const mark = randomUUID()
  const notify = openNotifySocket(path.dirname(files.orderFile))
  if (notify.reason !== null && ready.signal === 'notify')
    onInvalidMessage(`what it says by sd_notify cannot be heard: ${notify.reason}`)
  const helper = addToHelper({ ...heard.hooks, onHeard: (reason) => {
    if (reason !== null) beUnheard(reason)
  }, onStarted: beOnline, onFailed: (reason) => {
    failure = { errorName: 'Error',
      errorMessage: `${file} cannot be executed: ${whyNotExecuted(path.resolve(cwd, file), reason)}`, stack: null }
  }, onSaid: hearSaid })
  if (helper) heard.answeredBy(helper)
  if (notify.fd !== null) helper?.hearNotify(notify.fd)
  const child = runProgram({ file, args, env: { ...env, [TREE_VARIABLE]: mark, ...notifyVariables(notify, watchdogMs) },
    cwd, output }, helper, { onStarted: beOnline, onUnheard: beUnheard })
  const { pid } = child
  const identity = pid === undefined
    ? null
    : { ...identifyProcess(pid), ...files, mark, notifyFile: notify.file, stopSignal: stop.signal }
  if (identity) helper?.isOf(identity)
  const end = identity && createProgramEnd(identity, { stop, queue, onMessage })
  const readiness = createProgramReadiness(ready, { onMessage, connect, look: () => sockets.releaseClosed() })
  const watchdog = createProgramWatchdog({ pid: () => Number(pid), timeoutMs: watchdogMs, onSilent (silentMs) {
    failure = { errorName: 'Unresponsive',
      errorMessage: `it has not said WATCHDOG=1 for ${
        durationText(silentMs)
      } (option watchdog.timeoutMs: ${watchdogMs})`, stack: null }
    onMessage({ type: 'silent', text: failure.errorMessage })
  }, onAnswered () {
    failure = null
    onMessage({ type: 'answered' })
  } })
  child.once('exit', async (code, signal) => {
    if (isLetGo || !end) return
    leave({ code, signal, ...await end.ended({ code, signal }) })
  })
  child.once('error',
    (error) =>
      leave({ code: null, signal: null, error: { errorName: error.name, errorMessage: error.message, stack: null } }))

  return { identity, tell (message: ToWorker, handle?: Handle) {
    if (message.type === 'socket') {
      sockets.answer(message, handle)
      readiness.isAnswered(message, handle as { fd?: number } | undefined)
    } else if (message.type === 'drain') {
      readiness.stop()
      watchdog.stop()
      failure = null
      end?.drain(message)
    } else if (message.type === 'probe') {
      readiness.says('line')
    } else if (message.type === 'count-as-ready') {
      readiness.countsAsReady()
    }
  }, pass: () => false, terminate () {
    end?.terminate()
  }, kill () {
    end?.kill()
  }, letGo () {
    isLetGo = true
    readiness.stop()
    watchdog.stop()
    notify.close()
    closeSockets()
    return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ pid: Number(pid), code, signal })))
  } }

  function leave (
    { error, ...exit }: { code: number | null, signal: string | null, isAsTold?: boolean, hint?: string,
      error?: ToldExit['error'] }
  ) {
    if (isGone || isLetGo) return
    isGone = true
    readiness.stop()
    watchdog.stop()
    notify.remove()
    closeSockets()
    onExit({ ...exit, error: error ?? failure, unfinished: null, left: [] })
  }

  function hear (message: ToMaster) {
    if (message.type === 'socket') readiness.asks(message)
    onMessage(message)
    if (message.type === 'listening') readiness.listens(message.address)
    else if (message.type === 'release-socket') readiness.closes(message.key)
    else if (message.type === 'closed') readiness.closes(message.address)
  }

  function hearSaid ({ isReady, isStopping, isAlive, status }: Said) {
    if (status !== undefined) onMessage({ type: 'status-text', text: status })
    if (isReady) readiness.says('notify')
    if (isAlive) watchdog.hears()
    if (!isStopping) return
    watchdog.stop()
    onMessage({ type: 'stopping' })
  }

  function beUnheard (reason: string) {
    if (isLetGo || isGone) return
    // What is so for all programs here is said in the status.
    if (whyUnheard() === null)
      onMessage({ type: 'socket-note', text: `its sockets cannot be shared with others: ${reason}` })
    sockets = createUnheardSockets({ onMessage: hear, pids: () => pidsOf(Number(child.pid)) })
  }

  function closeSockets () {
    heard.close()
    sockets.close()
  }

  function beOnline () {
    if (isLetGo || isGone) return
    onOnline()
    readiness.started(Number(pid))
  }
}

/** @returns by which a program knows what it may say by sd_notify(3) */
function notifyVariables ({ file }: Pick<NotifySocket, 'file'>, watchdogMs: number): Record<string, string> {
  if (file === null) return {}
  return { NOTIFY_SOCKET: file, ...(watchdogMs > 0 && { WATCHDOG_USEC: String(watchdogMs * 1000) }) }
}

/**
 * Finds out when a program that says now and then that it lives does so no more. One that has never said so is not
 * watched.
 */
export function createProgramWatchdog ({ pid, timeoutMs, onSilent, onAnswered, now = () => performance.now() }: {
  pid: () => number,
  /** 0: nobody watches */
  timeoutMs: number,
  onSilent: (silentMs: number) => void,
  /** it has been silent before */
  onAnswered: () => void,
  /** monotonic, ms */
  now?: () => number
}) {
  const heartbeat = createHeartbeat({ timeoutMs, tickMs: TICK_MS, queuedMs: () => queuedMs(pid()) })
  let isOver = timeoutMs === 0
  let timer: NodeJS.Timeout | undefined

  return {
    /** It has said so. */
    hears () {
      if (isOver) return
      timer ??= lookLater()
      if (heartbeat.heard(PROGRAM)) onAnswered()
    },

    /** It is told to end, or has ended. */
    stop () {
      isOver = true
      clearTimeout(timer)
    }
  }

  function lookLater () {
    return setTimeout(() => {
      for (const { silentMs } of heartbeat.tick(now(), [PROGRAM])) onSilent(silentMs)
      if (!isOver) timer = lookLater()
    }, TICK_MS).unref()
  }
}

/** What a program listens on that the system does not let us hear: it has sockets of its own, which are looked for. */
function createUnheardSockets ({ onMessage, pids }: {
  onMessage: (message: ToMaster) => void,
  /** of all processes that the program has by now */
  pids: () => number[]
}) {
  let known: Map<number, string> = new Map()
  let timer: NodeJS.Timeout
  lookAgain()
  return { answer () {}, releaseClosed: async () => look(), close () {
    clearTimeout(timer)
  } }

  function lookAgain () {
    timer = setTimeout(() => {
      look()
      lookAgain()
    }, known.size === 0 ? FIRST_EVERY_MS : LOOK_EVERY_MS).unref()
  }

  function look () {
    const all = pids()
    const found = listeningSockets(all[0], new Set(all.flatMap((pid) => [...socketsOf(pid)])))
    for (const [inode, address] of found)
      if (!known.has(inode)) onMessage({ type: 'listening', address, isFixed: true })
    for (const [inode, address] of known) if (!found.has(inode)) onMessage({ type: 'closed', address })
    known = found
  }
}
