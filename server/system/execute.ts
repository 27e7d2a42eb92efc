import { loadPosix } from './posix.ts'

/**
 * Runs this command line anew in this process, with the environment as it is now. Its pid and its standard streams
 * stay, and what a service manager has passed. Returns false: it could not, and nothing has changed.
 */
export function executeAgain (): boolean {
  // Whoever is at its other end would take it for the end of this process.
  if (process.connected) return false
  const { LISTEN_PID, LISTEN_FDS = '0' } = process.env
  const passed = Number(LISTEN_PID) === process.pid ? Number(LISTEN_FDS) : 0
  const { execve } = process
  const args = [process.argv0, ...process.execArgv, ...process.argv.slice(1)]
  if (execve && passed === 0) execve.call(process, process.execPath, args, process.env)
  loadPosix()?.execute(process.execPath, args, Object.entries(process.env).map((each) => each.join('=')),
    FIRST_PASSED + passed)
  return false
}

/** Behind the standard streams. */
const FIRST_PASSED = 3
