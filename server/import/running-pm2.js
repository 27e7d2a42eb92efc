import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { DeckError, errorCode } from '../errors.js'
import { durationText } from '../lifecycle/duration.js'
import { homeFolder } from '../system/home-folder.js'
import { withoutOwnVariables } from '../system/own-variables.js'

const PATIENCE_MS = 15_000
/** The list has the whole environment of each process. */
const MAX_LIST_BYTES = 256 * 1024 * 1024

/**
 * Asks a running PM2 for its processes. `pm2 jlist` alone would start a PM2.
 * @param {{ env: Record<string, string | undefined>, cwd: string }} where
 * @returns {Promise<unknown[]>}
 * @throws {DeckError} not-possible
 */
export async function askPm2 ({ env, cwd }) {
  const ownHome = homeFolder(env)
  const home = env.PM2_HOME || (ownHome && path.join(ownHome, '.pm2'))
  if (!home) throw new DeckError('not-possible', '--pm2: expected PM2_HOME or HOME, received neither, and this user has no home folder')
  const pidFile = path.join(home, 'pm2.pid')
  if (!isAlive(pidFile)) {
    throw new DeckError('not-possible', `--pm2: expected a PM2 that runs, received none: no process is named in ${pidFile} (PM2_HOME sets the folder)`)
  }
  const output = await listProcesses(env, cwd)
  // PM2 may print other lines first, for example when its version has changed.
  const line = output.split('\n').find((each) => each.startsWith('[{') || each.trim() === '[]')
  try {
    const list = JSON.parse(line ?? '')
    if (Array.isArray(list)) return list
    throw new TypeError('no list')
  } catch (cause) {
    throw new DeckError('not-possible', '--pm2: expected a list from pm2 jlist, received something else', { cause })
  }
}

/** @param {string} file */
function isAlive (file) {
  try {
    process.kill(Number(readFileSync(file, 'utf8').trim()) || NaN, 0)
    return true
  } catch (error) {
    // EPERM: it runs as another user. ENOENT, ESRCH, or no number: it does not run.
    return errorCode(error) === 'EPERM'
  }
}

/** @param {Record<string, string | undefined>} env @param {string} cwd @returns {Promise<string>} */
function listProcesses (env, cwd) {
  return new Promise((resolve, reject) => {
    execFile('pm2', ['jlist'], {
      env: withoutOwnVariables(env),
      cwd,
      timeout: PATIENCE_MS,
      killSignal: 'SIGKILL',
      maxBuffer: MAX_LIST_BYTES
    }, (error, stdout) => {
      if (error === null) return resolve(stdout)
      const failure = error.killed ? `nothing within ${durationText(PATIENCE_MS)}` : `exit code ${error.code}`
      const reason = error.code === 'ENOENT' ? 'no such command in PATH' : failure
      reject(new DeckError('not-possible', `--pm2: expected pm2 jlist to answer, received ${reason}`, { cause: error }))
    })
  })
}
