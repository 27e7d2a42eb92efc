import { spawn, type ChildProcess } from 'node:child_process'
import { SHELL_VARIABLE } from '../system/own-variables.ts'
import { limitAsShell, startAsShell } from '../system/shell-limits.ts'
import { loadSystemCalls } from './system-calls.ts'
import { scriptPath } from '../system/built.ts'
import type { Socket } from 'node:net'
import type { HelperProgram } from './helper-link.ts'

export type Output = { stdout: number | 'inherit', stderr: number | 'inherit', close: () => void }

const LAUNCHER = scriptPath('launcher.js')
const UNAVAILABLE = 'it takes Linux on x86-64 or arm64, and the optional package koffi'

/** @returns why the system lets no program be heard here; null: it does */
export function whyUnheard (): string | null {
  const calls = loadSystemCalls()
  return calls ? calls.whyUnheard() : UNAVAILABLE
}

/**
 * Starts a program in a process group of its own. Its launcher has the call helper answer its bind(2) and listen(2).
 * `args`: without its name; `hooks`: where nobody can hear it.
 */
export function runProgram (
  { file, args, env: { [SHELL_VARIABLE]: shell, ...env }, cwd, output }: { file: string, args: string[],
    env: Record<string, string | undefined>, cwd: string, output: Output },
  helper: HelperProgram | null,
  { onStarted, onUnheard }: {
    /** the program runs */
    onStarted: () => void,
    /** the program runs all the same */
    onUnheard: (reason: string) => void
  }
): ChildProcess {
  const calls = loadSystemCalls()
  const [own, theirs] = (helper && calls?.socketPair()) ?? []
  if (!helper || !calls || own === undefined || theirs === undefined)
    return runUnheard(calls ? 'no descriptor is left' : UNAVAILABLE)
  try {
    const child = startAsShell(shell, () =>
      spawn(process.execPath, [LAUNCHER], { cwd, env: {},
        stdio: ['inherit', output.stdout, output.stderr, theirs, 'pipe'], detached: true }))
    const order = child.stdio[4] as Socket
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

  function runUnheard (reason: string) {
    try {
      const child = startAsShell(shell, () =>
        spawn(file, args, { cwd, env, stdio: ['inherit', output.stdout, output.stderr], detached: true }))
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
