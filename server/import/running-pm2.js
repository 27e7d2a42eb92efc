import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from '../errors.js'
import { homeFolder } from '../system/home-folder.js'
import { withoutOwnVariables } from '../system/own-variables.js'

const PATIENCE_MS = 15_000
/** Of each process it holds the whole environment. */
const MAX_LIST_BYTES = 256 * 1024 * 1024

/**
 * What a running PM2 says of its processes. None is started for it, as `pm2 jlist` alone would do.
 * @param {{ env: Record<string, string | undefined>, cwd: string }} where
 * @returns {Promise<any[]>}
 * @throws {DeckError} not-possible
 */
export async function askPm2 ({ env, cwd }) {
  const ownHome = homeFolder(env)
  const home = env.PM2_HOME || (ownHome && path.join(ownHome, '.pm2'))
  if (!home) throw new DeckError('not-possible', '--pm2: expected PM2_HOME or HOME to say where PM2 is, received neither, and this user has no home folder')
  if (!isAlive(path.join(home, 'pm2.pid'))) throw new DeckError('not-possible', `--pm2: expected a PM2 that runs, received none: no process is named in ${path.join(home, 'pm2.pid')} (PM2_HOME says where)`)
  const output = await listProcesses(env, cwd)
  // Other lines may come first, as of a version that has changed.
  const line = output.split('\n').find((each) => each.startsWith('[{') || each.trim() === '[]')
  try {
    return JSON.parse(line ?? '')
  } catch (cause) {
    throw new DeckError('not-possible', '--pm2: expected a list from pm2 jlist, received something else', { cause })
  }
}

/** @param {string} file */
function isAlive (file) {
  try {
    process.kill(Number(readFileSync(file, 'utf8').trim()) || NaN, 0)
    return true
  } catch (/** @type {any} */ error) {
    // EPERM: it lives, under another user. ENOENT, ESRCH, or no number: it does not.
    return error.code === 'EPERM'
  }
}

/** @param {Record<string, string | undefined>} env @param {string} cwd @returns {Promise<string>} */
function listProcesses (env, cwd) {
  return new Promise((resolve, reject) => {
    execFile('pm2', ['jlist'], { env: withoutOwnVariables(env), cwd, timeout: PATIENCE_MS, killSignal: 'SIGKILL', maxBuffer: MAX_LIST_BYTES }, (error, stdout) => {
      if (error === null) return resolve(stdout)
      const reason = error.code === 'ENOENT' ? 'no such command in PATH' : error.killed ? `nothing within ${PATIENCE_MS} ms` : `exit code ${error.code}`
      reject(new DeckError('not-possible', `--pm2: expected pm2 jlist to answer, received ${reason}`, { cause: error }))
    })
  })
}
