import { randomUUID } from 'node:crypto'
import path from 'node:path'
import { durationText } from '../lifecycle/duration.js'
import { whyNotExecuted } from '../programs/not-executed.js'
import { addToHelper } from '../programs/helper-link.js'
import { openNotifySocket } from '../programs/notify-socket.js'
import { runProgram, whyUnheard } from '../programs/running-program.js'
import { identifyProcess } from '../system/process-identity.js'
import { TREE_VARIABLE } from '../system/process-tree.js'
import { pidsOf } from '../system/tree-usage.js'
import { createProgramEnd } from './program-end.js'
import { createProgramReadiness } from './program-readiness.js'
import { createProgramSockets } from './program-sockets.js'
import { createProgramWatchdog } from './program-watchdog.js'
import { createUnheardSockets } from './unheard-sockets.js'

/**
 * A worker that is another program than Node, with the methods of a worker handle. It has no channel: what it binds is
 * heard by its system calls, and it is told to end by a signal.
 * @param {{ file: string, args: string[], env: Record<string, string | undefined>, cwd: string, output: import('../programs/running-program.js').Output, stop: import('./program-end.js').Stop, watchdogMs: number }} program  `args`: without its name; `watchdogMs`: how long it may be silent once it has said that it lives, 0: for ever
 * @param {Parameters<typeof import('./worker-handle.js').createWorkerHandle>[1]} hooks
 * @param {import('./worker-handle.js').WorkerFiles} files
 * @param {Parameters<typeof createProgramReadiness>[0]} ready
 * @returns {import('./worker-handle.js').WorkerHandle}
 */
export function createProgramHandle ({ file, args, env, cwd, output, stop, watchdogMs }, { onOnline, onMessage, onInvalidMessage, onExit, queue = () => 0, connect = () => null }, files, ready) {
  const heard = createProgramSockets({ onMessage: hear })
  /** @type {Pick<import('./program-sockets.js').ProgramSockets, 'answer' | 'releaseClosed' | 'close'>} */
  let sockets = heard
  let isLetGo = false
  let isGone = false
  /** @type {{ errorName: string, errorMessage: string, stack: null } | null} */
  let failure = null
  const mark = randomUUID()
  const notify = openNotifySocket(path.dirname(files.orderFile))
  if (notify.reason !== null && ready.signal === 'notify') onInvalidMessage(`what it says by sd_notify cannot be heard: ${notify.reason}`)
  const helper = addToHelper({
    ...heard.hooks,
    onHeard: (reason) => { if (reason !== null) beUnheard(reason) },
    onStarted: beOnline,
    onFailed: (reason) => { failure = { errorName: 'Error', errorMessage: `${file} cannot be executed: ${whyNotExecuted(path.resolve(cwd, file), reason)}`, stack: null } },
    onSaid: hearSaid
  })
  if (helper) heard.answeredBy(helper)
  if (notify.fd !== null) helper?.hearNotify(notify.fd)
  const child = runProgram({ file, args, env: { ...env, [TREE_VARIABLE]: mark, ...notifyVariables(notify, watchdogMs) }, cwd, output }, helper, { onStarted: beOnline, onUnheard: beUnheard })
  const { pid } = child
  const identity = pid === undefined ? null : { ...identifyProcess(pid), ...files, mark, notifyFile: notify.file, stopSignal: stop.signal }
  if (identity) helper?.isOf(identity)
  const end = identity && createProgramEnd(identity, { stop, queue, onMessage })
  const readiness = createProgramReadiness(ready, { onMessage, connect, look: () => sockets.releaseClosed() })
  const watchdog = createProgramWatchdog({
    pid: () => Number(pid),
    timeoutMs: watchdogMs,
    onSilent (silentMs) {
      failure = { errorName: 'Unresponsive', errorMessage: `it has not said WATCHDOG=1 for ${durationText(silentMs)} (option watchdog.timeoutMs: ${watchdogMs})`, stack: null }
      onMessage({ type: 'silent', text: failure.errorMessage })
    },
    onAnswered () {
      failure = null
      onMessage({ type: 'answered' })
    }
  })
  child.once('exit', async (code, signal) => {
    if (isLetGo || !end) return
    leave({ code, signal, ...await end.ended({ code, signal }) })
  })
  child.once('error', (error) => leave({ code: null, signal: null, error: { errorName: error.name, errorMessage: error.message, stack: null } }))

  return {
    identity,

    /** @param {import('../../workers/protocol.js').ToWorker} message @param {import('./worker-handle.js').Handle} [handle] */
    tell (message, handle) {
      if (message.type === 'socket') {
        sockets.answer(message, handle)
        readiness.isAnswered(message, /** @type {{ fd?: number } | undefined} */ (handle))
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
    },
    pass: () => false,
    terminate () { end?.terminate() },
    kill () { end?.kill() },
    accept () {},

    letGo () {
      isLetGo = true
      readiness.stop()
      watchdog.stop()
      notify.close()
      closeSockets()
      return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ pid: Number(pid), code, signal })))
    }
  }

  /** @param {{ code: number | null, signal: string | null, isAsTold?: boolean, hint?: string, error?: object }} exit */
  function leave ({ error, ...exit }) {
    if (isGone || isLetGo) return
    isGone = true
    readiness.stop()
    watchdog.stop()
    notify.remove()
    closeSockets()
    onExit(/** @type {any} */ ({ ...exit, error: error ?? failure, unfinished: null, left: [] }))
  }

  /** @param {import('../../workers/protocol.js').ToMaster} message */
  function hear (message) {
    if (message.type === 'socket') readiness.asks(message)
    onMessage(message)
    if (message.type === 'listening') readiness.listens(message.address)
    else if (message.type === 'release-socket') readiness.closes(message.key)
    else if (message.type === 'closed') readiness.closes(message.address)
  }

  /** @param {import('../programs/notify-socket.js').Said} said */
  function hearSaid ({ isReady, isStopping, isAlive, status }) {
    if (status !== undefined) onMessage({ type: 'status-text', text: status })
    if (isReady) readiness.says('notify')
    if (isAlive) watchdog.hears()
    if (!isStopping) return
    watchdog.stop()
    onMessage({ type: 'stopping' })
  }

  /** @param {string} reason */
  function beUnheard (reason) {
    if (isLetGo || isGone) return
    // What is so for all programs here is said in the status.
    if (whyUnheard() === null) onMessage({ type: 'socket-note', text: `its sockets cannot be shared with others: ${reason}` })
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

/** @param {Pick<import('../programs/notify-socket.js').NotifySocket, 'file'>} socket @param {number} watchdogMs @returns {Record<string, string>} by which a program knows what it may say by sd_notify(3) */
function notifyVariables ({ file }, watchdogMs) {
  if (file === null) return {}
  return { NOTIFY_SOCKET: file, ...(watchdogMs > 0 && { WATCHDOG_USEC: String(watchdogMs * 1000) }) }
}
