import { spawn } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'

/** @typedef {ReturnType<typeof startApp>} AppProcess */
/** @typedef {{ code: number | null, signal: NodeJS.Signals | null, error: string | null }} End `error`: why it was never started */

/** What a process that has ended may have left behind in a pipe, that another one holds too. */
const REST_WITHIN_MS = 500

/**
 * Runs `clusterdeck start` for one app, in a session of its own: what ends this process, or is typed at its terminal,
 * does not reach it.
 * @param {string} name @param {{ script: string, file: string, cwd: string, env: Record<string, string | undefined>, mirrors: boolean }} how `mirrors`: it repeats what its workers write
 */
export function startApp (name, { script, file, cwd, env: { CLUSTERDECK_APP, CLUSTERDECK_NAME, CLUSTERDECK_KEPT, ...env }, mirrors }) {
  const child = spawn(process.execPath, [...process.execArgv, script, 'start', '--config', file, '--app', name], {
    cwd,
    env: { ...env, PWD: cwd, ...(mirrors && { CLUSTERDECK_LOGS_MIRROR: 'on' }) },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe']
  })
  const { stdout, stderr } = child
  /** @type {Promise<End>} */
  const ended = new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal, error: null }))
    // EAGAIN, ENOMEM.
    child.once('error', (error) => { if (child.pid === undefined) resolve({ code: null, signal: null, error: error.message }) })
  })
  const closed = new Promise((resolve) => { child.once('close', resolve) })

  return {
    pid: child.pid,
    stdout,
    stderr,
    ended,

    /** All of its output has come, or nobody waits for the rest. */
    drained: ended.then(async () => { await Promise.race([closed, wait(REST_WITHIN_MS)]) }),

    /** @param {NodeJS.Signals[]} signals different ones, as the kernel makes one of two that are the same */
    signal (...signals) { for (const signal of signals) child.kill(signal) },

    /** It goes on without this process, and nobody reads what it writes. */
    release () {
      stdout.destroy()
      stderr.destroy()
      child.unref()
    }
  }
}

/** @param {End} end @returns {string} */
export function endText ({ code, signal, error }) {
  return error ?? (signal === null ? `exit code ${code}` : `killed by ${signal}`)
}
