import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { SHELL_VARIABLE } from '../system/own-variables.js'
import { limitAsShell, startAsShell } from '../system/shell-limits.js'
import { loadSystemCalls } from './system-calls.js'

/** @typedef {{ stdout: number | 'inherit', stderr: number | 'inherit', close: () => void }} Output */

const LAUNCHER = fileURLToPath(new URL('launcher.js', import.meta.url))
const UNAVAILABLE = 'it takes Linux on x86-64 or arm64, and the optional package koffi'

/** @returns {string | null} why the system lets no program be heard here; null: it does */
export function whyUnheard () {
  const calls = loadSystemCalls()
  return calls ? calls.whyUnheard() : UNAVAILABLE
}

/**
 * Starts a program in a process group of its own. Its launcher has the call helper answer its bind(2) and listen(2).
 * @param {{ file: string, args: string[], env: Record<string, string | undefined>, cwd: string, output: Output }} program  `args`: without its name
 * @param {import('./helper-link.js').HelperProgram | null} helper
 * @param {object} hooks  where nobody can hear it
 * @param {() => void} hooks.onStarted  the program runs
 * @param {(reason: string) => void} hooks.onUnheard  the program runs all the same
 * @returns {import('node:child_process').ChildProcess}
 */
export function runProgram ({ file, args, env: { [SHELL_VARIABLE]: shell, ...env }, cwd, output }, helper, { onStarted, onUnheard }) {
  const calls = loadSystemCalls()
  const [own, theirs] = (helper && calls?.socketPair()) ?? []
  if (!helper || !calls || own === undefined || theirs === undefined) return runUnheard(calls ? 'no descriptor is left' : UNAVAILABLE)
  try {
    const child = startAsShell(shell, () => spawn(process.execPath, [LAUNCHER], { cwd, env: {}, stdio: ['inherit', output.stdout, output.stderr, theirs, 'pipe'], detached: true }))
    const order = /** @type {import('node:net').Socket} */ (child.stdio[4])
    // EPIPE: it has ended, and its 'exit' says so.
    order.on('error', () => {})
    order.end(JSON.stringify({ file, args: [file, ...args], env, shell }))
    helper.launch(own)
    return child
  } catch (error) {
    calls.close(own)
    throw error
  } finally {
    calls.close(theirs)
    output.close()
  }

  /** @param {string} reason */
  function runUnheard (reason) {
    try {
      const child = startAsShell(shell, () => spawn(file, args, { cwd, env: /** @type {any} */ (env), stdio: ['inherit', output.stdout, output.stderr], detached: true }))
      limitAsShell(shell, child.pid)
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
