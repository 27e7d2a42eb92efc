import { randomBytes } from 'node:crypto'
import { accessSync, constants, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from './errors.js'

/**
 * The data folder: made at the first start, readable by its owner alone.
 * @param {string} folder absolute path
 * @throws {DeckError} data-dir-unusable, master-running
 */
export function openDataDir (folder) {
  const file = (/** @type {string} */ name) => path.join(folder, name)
  try {
    for (const each of [folder, file('logs'), file('crashes')]) mkdirSync(each, { recursive: true, mode: 0o700 })
    accessSync(folder, constants.W_OK)
  } catch (/** @type {any} */ error) {
    throw unusable(folder, error)
  }
  refuseSecondMaster(file('master.json'))

  return {
    historyFile: file('history.db'),
    logFile: path.join(folder, 'logs', 'master.log'),
    crashFolder: file('crashes'),

    /** @returns {string} the admin token, made when there is none */
    token () {
      try {
        return readToken(file('admin.token')) ?? makeToken(file('admin.token'))
      } catch (/** @type {any} */ error) {
        throw unusable(folder, error)
      }
    },

    /** @param {{ pid: number, adminUrl: string, startedAt: string }} master */
    announce (master) {
      // Renamed into place, so that no reader sees half of it.
      writeFileSync(file('master.json.new'), `${JSON.stringify(master)}\n`, { mode: 0o600 })
      renameSync(file('master.json.new'), file('master.json'))
    },

    withdraw () { rmSync(file('master.json'), { force: true }) }
  }
}

/** @param {string} file */
function refuseSecondMaster (file) {
  const master = readJson(file)
  if (!master || master.pid === process.pid || !isMaster(master.pid)) return
  throw new DeckError('master-running', `a master (pid ${master.pid}, ${master.adminUrl}) already runs on this data folder`)
}

/** @param {unknown} pid whether it lives and looks like a master: after a hard end the number may be another's by now */
function isMaster (pid) {
  if (!Number.isInteger(pid)) return false
  try {
    process.kill(/** @type {number} */ (pid), 0)
    return process.platform !== 'linux' || /clusterdeck|cli\.js/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
  } catch (/** @type {any} */ error) {
    // EPERM: it lives under another user. ESRCH, ENOENT: it is dead.
    return error.code === 'EPERM'
  }
}

/** @param {string} file @returns {any} null when there is none that can be read */
function readJson (file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return null
  }
}

/** @param {string} file @returns {string | null} */
function readToken (file) {
  try {
    return readFileSync(file, 'utf8').trim() || null
  } catch (/** @type {any} */ error) {
    if (error.code === 'ENOENT') return null
    throw error
  }
}

/** @param {string} file */
function makeToken (file) {
  const token = randomBytes(32).toString('base64url')
  writeFileSync(file, `${token}\n`, { mode: 0o600 })
  return token
}

/** @param {string} folder @param {NodeJS.ErrnoException} error */
function unusable (folder, error) {
  return new DeckError('data-dir-unusable', `dataDir: expected a folder that can be written, received ${folder} (${error.code ?? error.message})`, { cause: error })
}
