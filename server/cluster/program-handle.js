import { constants } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { runProgram } from '../programs/running-program.js'
import { identifyProcess } from '../system/process-identity.js'
import { createProgramSockets } from './program-sockets.js'

const STOP_SIGNAL = 'SIGTERM'
/** How long a client may take to finish a handshake that has begun. */
const HANDSHAKE_MS = 250
/** A program that does not accept what waits for it is told to end after all. */
const ACCEPTS_WITHIN_MS = 2000
const LOOK_EVERY_MS = 10

/**
 * A worker that is another program than Node, with the methods of a worker handle. It has no channel: what it binds is
 * heard by its system calls, and it is told to end by a signal.
 * @param {{ file: string, args: string[], env: Record<string, string | undefined>, cwd: string, output: { stdout: number | 'inherit', stderr: number | 'inherit', close: () => void } }} program  `args`: without its name
 * @param {Parameters<typeof import('./worker-handle.js').createWorkerHandle>[1]} hooks
 * @param {import('./worker-handle.js').WorkerFiles} files
 * @returns {import('./worker-handle.js').WorkerHandle}
 */
export function createProgramHandle ({ file, args, env, cwd, output }, { onOnline, onMessage, onInvalidMessage, onExit, queue = () => 0 }, files) {
  /** @type {ReturnType<typeof createProgramSockets> | null} */
  let sockets = null
  let isLetGo = false
  let isGone = false
  let isToldToEnd = false
  /** @type {string | null} */
  let failure = null
  const child = runProgram({ file, args, env, cwd, output }, {
    onStarted: () => { if (!isLetGo && !isGone) onOnline() },
    onFailed: (reason) => { failure = `${file} cannot be executed: ${reason}` },
    onHeard: (listener) => { sockets = createProgramSockets(listener, hear) },
    onUnheard: (reason) => onInvalidMessage(`its sockets cannot be shared with others: ${reason}`)
  })
  const { pid } = child
  const identity = pid === undefined ? null : identifyProcess(pid)
  child.once('exit', (code, signal) => leave({ code, signal }))
  child.once('error', (error) => leave({ code: null, signal: null, error: { errorName: error.name, errorMessage: error.message, stack: null } }))

  return {
    hasChannel: false,
    identity: identity && { ...identity, ...files },

    /** @param {import('../../workers/protocol.js').ToWorker} message @param {import('./worker-handle.js').Handle} [handle] */
    tell (message, handle) {
      if (message.type === 'socket') sockets?.answer(message, handle)
      else if (message.type === 'drain') beginDrain()
    },
    pass: () => false,
    terminate,
    kill () { signal('SIGKILL') },
    accept () {},

    letGo () {
      isLetGo = true
      sockets?.close()
      return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ pid: Number(pid), code, signal })))
    }
  }

  /** @param {{ code: number | null, signal: string | null, error?: object }} exit */
  function leave ({ code, signal: by, error }) {
    if (isGone) return
    isGone = true
    sockets?.close()
    if (isLetGo) return
    const isAsTold = isToldToEnd && (by === STOP_SIGNAL || code === 128 + constants.signals[STOP_SIGNAL])
    onExit(/** @type {any} */ ({ code, signal: by, isAsTold, error: error ?? (failure && { errorName: 'Error', errorMessage: failure, stack: null }), unfinished: null, left: [] }))
  }

  /** By now the kernel sends it no new connection. It is told to end once it has accepted those that it was sent before. */
  async function beginDrain () {
    onMessage({ type: 'draining' })
    await setTimeout(HANDSHAKE_MS)
    for (let left = ACCEPTS_WITHIN_MS; left > 0 && queue() > 0; left -= LOOK_EVERY_MS) await setTimeout(LOOK_EVERY_MS)
    terminate()
  }

  function terminate () {
    isToldToEnd = true
    signal(STOP_SIGNAL)
  }

  /** @param {NodeJS.Signals} name */
  function signal (name) {
    if (pid === undefined || isGone) return
    try {
      process.kill(name === 'SIGKILL' ? -pid : pid, name)
    } catch {
      // ESRCH: it has ended, and its 'exit' says so.
    }
  }

  /** @param {import('../../workers/protocol.js').ToMaster} message */
  function hear (message) {
    onMessage(message)
    if (message.type === 'listening') setImmediate(() => onMessage({ type: 'ready' }))
  }
}
