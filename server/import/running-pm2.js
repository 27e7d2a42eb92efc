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

/** @typedef {Awaited<ReturnType<typeof findPm2>>} RunningPm2 */

/**
 * Finds the PM2 that runs. Its commands alone would start one.
 * @param {{ env: Record<string, string | undefined>, cwd: string }} where
 * @throws {DeckError} not-possible
 */
export async function findPm2 ({ env, cwd }) {
  const ownHome = homeFolder(env)
  const home = env.PM2_HOME || (ownHome && path.join(ownHome, '.pm2'))
  if (!home) throw new DeckError('not-possible', '--pm2: expected PM2_HOME or HOME, received neither, and this user has no home folder')
  const pidFile = path.join(home, 'pm2.pid')
  if (!isAlive(pidFile)) {
    throw new DeckError('not-possible', `--pm2: expected a PM2 that runs, received none: no process is named in ${pidFile} (PM2_HOME sets the folder)`)
  }
  return {
    home,

    /** The number of its daemon's process. */
    pid: pidIn(pidFile),

    /** @returns {Promise<unknown[]>} its processes @throws {DeckError} not-possible */
    async list () {
      const output = await runPm2(['jlist'], { env, cwd })
      // PM2 may print other lines first, for example when its version has changed.
      const line = output.split('\n').find((each) => each.startsWith('[{') || each.trim() === '[]')
      try {
        const list = JSON.parse(line ?? '')
        if (Array.isArray(list)) return list
        throw new TypeError('no list')
      } catch (cause) {
        throw new DeckError('not-possible', '--pm2: expected a list from pm2 jlist, received something else', { cause })
      }
    },

    /**
     * Stops processes, which its list keeps as stopped unless they are deleted.
     * @param {readonly number[]} ids @param {'stop' | 'delete'} how  what has a cron_restart is started again where it is on the list @throws {DeckError} not-possible
     */
    async stop (ids, how) { await runPm2([how, ...ids.map(String)], { env, cwd, patienceMs: 0 }) }
  }
}

/** @param {string} file */
function isAlive (file) {
  try {
    process.kill(pidIn(file) || NaN, 0)
    return true
  } catch (error) {
    // EPERM: it runs as another user. ENOENT, ESRCH, or no number: it does not run.
    return errorCode(error) === 'EPERM'
  }
}

/** @param {string} file */
function pidIn (file) {
  return Number(readFileSync(file, 'utf8').trim())
}

/**
 * @param {readonly string[]} words @param {{ env: Record<string, string | undefined>, cwd: string, patienceMs?: number }} how  `patienceMs`: 0: as long as it takes
 * @returns {Promise<string>}
 */
function runPm2 (words, { env, cwd, patienceMs = PATIENCE_MS }) {
  return new Promise((resolve, reject) => {
    execFile('pm2', words, {
      env: withoutOwnVariables(env),
      cwd,
      timeout: patienceMs,
      killSignal: 'SIGKILL',
      maxBuffer: MAX_LIST_BYTES
    }, (error, stdout) => {
      if (error === null) return resolve(stdout)
      const failure = error.killed ? `nothing within ${durationText(PATIENCE_MS)}` : `exit code ${error.code}`
      const reason = error.code === 'ENOENT' ? 'no such command in PATH' : failure
      reject(new DeckError('not-possible', `--pm2: expected pm2 ${words[0]} to answer, received ${reason}`, { cause: error }))
    })
  })
}
