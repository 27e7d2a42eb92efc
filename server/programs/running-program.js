import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { linkAt, namesIn } from '../system/proc.js'
import { watchDescriptor } from './descriptor-watch.js'
import { loadSystemCalls } from './system-calls.js'

/** @typedef {{ stdout: number | 'inherit', stderr: number | 'inherit', close: () => void }} Output */
/** @typedef {import('./system-calls.js').Notice} Notice */

const LAUNCHER = fileURLToPath(new URL('launcher.js', import.meta.url))
const UNAVAILABLE = 'it takes Linux on x86-64 or arm64, and the optional package koffi'

/** @returns {string | null} why the system lets no program be heard here; null: it does */
export function whyUnheard () {
  const calls = loadSystemCalls()
  return calls ? calls.whyUnheard() : UNAVAILABLE
}

/**
 * Starts a program whose bind(2) and listen(2) wait for an answer, in a process group of its own.
 * @param {{ file: string, args: string[], env: Record<string, string | undefined>, cwd: string, output: Output }} program  `args`: without its name
 * @param {object} hooks
 * @param {() => void} hooks.onStarted  the program runs
 * @param {(reason: string) => void} hooks.onFailed  it cannot be executed; the process ends
 * @param {(listener: number) => void} hooks.onHeard  what waits can be received from this descriptor, which is closed in the end; before the program runs
 * @param {(reason: string) => void} hooks.onUnheard  the system does not let it be heard; the program runs all the same
 * @returns {import('node:child_process').ChildProcess}
 */
export function runProgram ({ file, args, env, cwd, output }, { onStarted, onFailed, onHeard, onUnheard }) {
  const calls = loadSystemCalls()
  const [own, theirs] = calls?.socketPair() ?? []
  if (!calls || own === undefined || theirs === undefined) return runUnheard(calls ? 'no descriptor is left' : UNAVAILABLE)
  try {
    const child = spawn(process.execPath, [LAUNCHER], { cwd, env: {}, stdio: ['inherit', output.stdout, output.stderr, theirs, 'pipe'], detached: true })
    const order = /** @type {import('node:net').Socket} */ (child.stdio[4])
    // EPIPE: it has ended, and its 'exit' says so.
    order.on('error', () => {})
    order.end(JSON.stringify({ file, args: [file, ...args], env }))
    hearLauncher(calls, own)
    return child
  } catch (error) {
    calls.close(own)
    throw error
  } finally {
    calls.close(theirs)
    output.close()
  }

  /** @param {import('./system-calls.js').SystemCalls} system @param {number} channel */
  function hearLauncher (system, channel) {
    const stop = watchDescriptor(channel, () => {
      const said = system.take(channel)
      const { reason = null, failed = null } = said === null ? {} : JSON.parse(said.text)
      if (said === null || failed !== null) {
        stop()
        system.close(channel)
        return failed === null ? onStarted() : onFailed(failed)
      }
      if (said.descriptor === null) onUnheard(reason)
      else onHeard(said.descriptor)
      system.send(channel, '\n')
    })
  }

  /** @param {string} reason */
  function runUnheard (reason) {
    try {
      const child = spawn(file, args, { cwd, env: /** @type {any} */ (env), stdio: ['inherit', output.stdout, output.stderr], detached: true })
      child.once('spawn', () => {
        onUnheard(reason)
        onStarted()
      })
      return child
    } finally {
      output.close()
    }
  }
}

/**
 * @param {number} listener  of a program @param {(notice: Notice) => void} onNotice  each has to be answered
 * @returns {() => void} hears no more; what is asked then has to be answered by somebody else
 */
export function hearProgram (listener, onNotice) {
  const calls = /** @type {import('./system-calls.js').SystemCalls} */ (loadSystemCalls())
  const stop = watchDescriptor(listener, () => {
    const notice = calls.receive(listener)
    if (notice === 'over') stopHearing()
    else if (notice !== 'none') onNotice(notice)
  })
  let isOver = false
  return stopHearing

  function stopHearing () {
    if (isOver) return
    isOver = true
    stop()
    calls.close(listener)
  }
}

/**
 * A program keeps what its calls are answered by, for whoever looks after it next: seccomp_unotify(2).
 * @param {import('./system-calls.js').SystemCalls} calls @param {number[]} pids  those of its processes
 * @returns {number | null} a descriptor of this process; null: none of them has it, or they may not be looked into
 */
export function findListener (calls, pids) {
  for (const pid of pids) {
    const fd = namesIn(`/proc/${pid}/fd`).find((name) => linkAt(`/proc/${pid}/fd/${name}`) === 'anon_inode:seccomp notify')
    const copy = fd === undefined ? -1 : calls.descriptorOf(pid, Number(fd))
    if (copy >= 0) return copy
  }
  return null
}
