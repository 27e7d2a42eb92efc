import { randomUUID } from 'node:crypto'
import { runProgram } from '../programs/running-program.js'
import { identifyProcess } from '../system/process-identity.js'
import { TREE_VARIABLE } from '../system/process-tree.js'
import { createProgramEnd } from './program-end.js'
import { createProgramSockets } from './program-sockets.js'

/**
 * A worker that is another program than Node, with the methods of a worker handle. It has no channel: what it binds is
 * heard by its system calls, and it is told to end by a signal.
 * @param {{ file: string, args: string[], env: Record<string, string | undefined>, cwd: string, output: { stdout: number | 'inherit', stderr: number | 'inherit', close: () => void }, stop: import('./program-end.js').Stop }} program  `args`: without its name
 * @param {Parameters<typeof import('./worker-handle.js').createWorkerHandle>[1]} hooks
 * @param {import('./worker-handle.js').WorkerFiles} files
 * @returns {import('./worker-handle.js').WorkerHandle}
 */
export function createProgramHandle ({ file, args, env, cwd, output, stop }, { onOnline, onMessage, onInvalidMessage, onExit, queue = () => 0 }, files) {
  /** @type {ReturnType<typeof createProgramSockets> | null} */
  let sockets = null
  let isLetGo = false
  let isGone = false
  /** @type {string | null} */
  let failure = null
  const mark = randomUUID()
  const child = runProgram({ file, args, env: { ...env, [TREE_VARIABLE]: mark }, cwd, output }, {
    onStarted: () => { if (!isLetGo && !isGone) onOnline() },
    onFailed: (reason) => { failure = `${file} cannot be executed: ${reason}` },
    onHeard: (listener) => { sockets = createProgramSockets(listener, { onMessage: hear, pids: () => [Number(child.pid)] }) },
    onUnheard: (reason) => onInvalidMessage(`its sockets cannot be shared with others: ${reason}`)
  })
  const { pid } = child
  const identity = pid === undefined ? null : { ...identifyProcess(pid), ...files, mark, stopSignal: stop.signal }
  const end = identity && createProgramEnd(identity, {
    stop,
    queue,
    onDraining: () => onMessage({ type: 'draining' }),
    onCrashing: (error) => onMessage({ type: 'crashing', ...error })
  })
  child.once('exit', async (code, signal) => {
    if (isLetGo || !end) return
    const { isAsTold } = await end.ended({ code, signal })
    leave({ code, signal, isAsTold })
  })
  child.once('error', (error) => leave({ code: null, signal: null, error: { errorName: error.name, errorMessage: error.message, stack: null } }))

  return {
    hasChannel: false,
    identity,

    /** @param {import('../../workers/protocol.js').ToWorker} message @param {import('./worker-handle.js').Handle} [handle] */
    tell (message, handle) {
      if (message.type === 'socket') sockets?.answer(message, handle)
      else if (message.type === 'drain') end?.drain()
    },
    pass: () => false,
    terminate () { end?.terminate() },
    kill () { end?.kill() },
    accept () {},

    letGo () {
      isLetGo = true
      sockets?.close()
      return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ pid: Number(pid), code, signal })))
    }
  }

  /** @param {{ code: number | null, signal: string | null, isAsTold?: boolean, error?: object }} exit */
  function leave ({ error, ...exit }) {
    if (isGone || isLetGo) return
    isGone = true
    sockets?.close()
    onExit(/** @type {any} */ ({ ...exit, error: error ?? (failure && { errorName: 'Error', errorMessage: failure, stack: null }), unfinished: null, left: [] }))
  }

  /** @param {import('../../workers/protocol.js').ToMaster} message */
  function hear (message) {
    onMessage(message)
    if (message.type === 'listening') setImmediate(() => onMessage({ type: 'ready' }))
  }
}
