import { spawn } from 'node:child_process'
import { readlinkSync } from 'node:fs'
import { constants } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { identifyProcess } from '../system/process-identity.js'
import { createBindNotices } from '../programs/bind-notices.js'
import { addressOf, isClosedOnExec, processOf, readAddress, socketQuery } from '../programs/socket-request.js'
import { loadSystemCalls } from '../programs/system-calls.js'

const LAUNCHER = fileURLToPath(new URL('../programs/launcher.js', import.meta.url))
const STOP_SIGNAL = 'SIGTERM'
/** How long a client may take to finish a handshake that has begun. */
const HANDSHAKE_MS = 250
/** A program that does not accept what waits for it is told to end after all. */
const ACCEPTS_WITHIN_MS = 2000
const LOOK_EVERY_MS = 10
const EADDRINUSE = -constants.errno.EADDRINUSE

/** @type {import('../programs/bind-notices.js').BindNotices | undefined} */
let notices

/**
 * A worker that is another program than Node, with the methods of a worker handle. It has no channel: what it binds is
 * heard by its system calls, and it is told to end by a signal.
 * @param {{ file: string, args: string[], env: Record<string, string | undefined>, cwd: string, output: { stdout: number | 'inherit', stderr: number | 'inherit', close: () => void } }} program  `args`: without its name
 * @param {Parameters<typeof import('./worker-handle.js').createWorkerHandle>[1]} hooks
 * @param {import('./worker-handle.js').WorkerFiles} files
 * @returns {import('./worker-handle.js').WorkerHandle}
 */
export function createProgramHandle ({ file, args, env, cwd, output }, { onOnline, onMessage, onInvalidMessage, onExit, queue = () => 0 }, files) {
  const calls = loadSystemCalls()
  const child = startLauncher(cwd, output)
  const { pid } = child
  const identity = pid === undefined ? null : identifyProcess(pid)
  /** Calls that wait for the master's answer. @type {Map<number, { listener: number, id: bigint, process: number, theirs: number, copy: number }>} */
  const waiting = new Map()
  let seq = 0
  let isLetGo = false
  let isGone = false
  let isToldToEnd = false
  /** @type {string | null} */
  let failure = null
  let stopListening = () => {}

  const channel = /** @type {import('node:net').Socket} */ (child.stdio[3])
  channel.on('error', () => {})
  channel.write(`${JSON.stringify({ file, args: [file, ...args], env })}\n`)
  readLines(channel, (line) => {
    const { listener, reason, failed } = JSON.parse(line)
    if (failed !== undefined) {
      failure = `${file} cannot be executed: ${failed}`
      return
    }
    if (listener !== undefined && calls && pid !== undefined) listenTo(calls, calls.descriptorOf(pid, listener))
    else onInvalidMessage(`its sockets cannot be shared with others: ${reason}`)
    channel.write('\n')
  })
  channel.once('close', () => { if (!isLetGo && failure === null && child.exitCode === null) onOnline() })
  child.once('exit', (code, signal) => leave({ code, signal }))
  child.once('error', (error) => leave({ code: null, signal: null, error: { errorName: error.name, errorMessage: error.message, stack: null } }))

  return {
    hasChannel: false,
    identity: identity && { ...identity, ...files },

    /** @param {import('../../workers/protocol.js').ToWorker} message @param {import('./worker-handle.js').Handle} [handle] */
    tell (message, handle) {
      if (message.type === 'socket') answerBind(message, handle)
      else if (message.type === 'drain') beginDrain()
    },
    pass: () => false,
    terminate,
    kill () { signal('SIGKILL') },
    accept () {},

    letGo () {
      isLetGo = true
      stopListening()
      return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ pid: Number(pid), code, signal })))
    }
  }

  /** @param {{ code: number | null, signal: string | null, error?: object }} exit */
  function leave ({ code, signal: by, error }) {
    if (isGone) return
    isGone = true
    stopListening()
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

  /** @param {import('../programs/system-calls.js').SystemCalls} system @param {number} listener */
  function listenTo (system, listener) {
    if (listener < 0) return
    notices ??= createBindNotices(system)
    stopListening = notices.watch(listener, (notice) => {
      try {
        if (notice.call === 'bind') hearBind(system, listener, notice)
        else hearListen(system, listener, notice)
      } catch {
        system.goOn(listener, notice.id)
      }
    })
  }

  /** @param {import('../programs/system-calls.js').SystemCalls} system @param {number} listener @param {import('../programs/system-calls.js').Notice} notice */
  function hearBind (system, listener, { id, pid: thread, args: [fd, address, length] }) {
    const process = processOf(thread)
    const theirs = Number(fd)
    const copy = system.descriptorOf(process, theirs)
    const query = copy < 0 ? null : socketQuery(readAddress(thread, address, length), system.socketKind(copy), () => readlinkSync(`/proc/${process}/cwd`))
    if (query === null) {
      if (copy >= 0) system.close(copy)
      return system.goOn(listener, id)
    }
    waiting.set(++seq, { listener, id, process, theirs, copy })
    onMessage({ type: 'socket', seq, query })
  }

  /** @param {Extract<import('../../workers/protocol.js').ToWorker, { type: 'socket' }>} reply @param {import('./worker-handle.js').Handle} [handle] */
  function answerBind ({ seq: number, errno, isPlaceholder }, handle) {
    const { fd } = /** @type {{ fd?: number }} */ (handle ?? {})
    const call = waiting.get(number)
    if (!call || !calls) return
    waiting.delete(number)
    const { listener, id, process, theirs, copy } = call
    if (errno || isPlaceholder) {
      calls.answer(listener, id, errno || EADDRINUSE)
    } else if (fd === undefined) {
      calls.goOn(listener, id)
    } else {
      calls.copyStatus({ from: copy, to: fd })
      calls.put(listener, id, { own: fd, theirs, isClosedOnExec: isClosedOnExec(process, theirs) })
      calls.answer(listener, id, 0)
    }
    calls.close(copy)
  }

  /** @param {import('../programs/system-calls.js').SystemCalls} system @param {number} listener @param {import('../programs/system-calls.js').Notice} notice */
  function hearListen (system, listener, { id, pid: thread, args: [fd] }) {
    const copy = system.descriptorOf(processOf(thread), Number(fd))
    const address = copy < 0 ? null : addressOf(system.nameOf(copy), system.socketKind(copy))
    if (copy >= 0) system.close(copy)
    system.goOn(listener, id)
    if (address === null) return
    onMessage({ type: 'listening', address, isFixed: true })
    setImmediate(() => onMessage({ type: 'ready' }))
  }
}

/** @param {string} cwd @param {{ stdout: number | 'inherit', stderr: number | 'inherit', close: () => void }} output */
function startLauncher (cwd, output) {
  try {
    return spawn(process.execPath, [LAUNCHER], { cwd, env: {}, stdio: ['inherit', output.stdout, output.stderr, 'pipe'], detached: true })
  } finally {
    output.close()
  }
}

/** @param {import('node:stream').Readable} stream @param {(line: string) => void} onLine */
function readLines (stream, onLine) {
  let rest = ''
  stream.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) onLine(line)
  })
}
