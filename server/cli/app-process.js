import { spawn } from 'node:child_process'
import { setTimeout as wait } from 'node:timers/promises'

/** @typedef {ReturnType<typeof startApp>} AppProcess */
/** @typedef {{ code: number | null, signal: NodeJS.Signals | null, error: string | null }} End `error`: why it could not be started */

/** How long the rest of the output is awaited after an exit: another process may hold the pipe open. */
const REST_WITHIN_MS = 500

/**
 * Runs `clusterdeck start` for one app in its own session, so that neither Ctrl-C nor the end of this process reaches it.
 * @param {string} name
 * @param {{ script: string, file: string, cwd: string, env: Record<string, string | undefined>, mirrors: boolean }} how
 *   `mirrors`: it prints the output of its workers
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
    // EAGAIN, ENOMEM: the process could not be started.
    child.once('error', (error) => { if (child.pid === undefined) resolve({ code: null, signal: null, error: error.message }) })
  })
  const closed = new Promise((resolve) => { child.once('close', resolve) })

  return {
    pid: child.pid,
    stdout,
    stderr,
    ended,

    /** Resolves once all of its output has come, or no longer can be awaited. */
    drained: ended.then(async () => { await Promise.race([closed, wait(REST_WITHIN_MS)]) }),

    /** @param {NodeJS.Signals[]} signals different ones, as the kernel merges two of a kind */
    signal (...signals) { for (const signal of signals) child.kill(signal) }
  }
}

/** @param {End} end @returns {string} */
export function endText ({ code, signal, error }) {
  return error ?? (signal === null ? `exit code ${code}` : `killed by ${signal}`)
}
