import { randomBytes } from 'node:crypto'
import { accessSync, constants, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { takeLock } from '../../db/lock.js'
import { DeckError } from '../errors.js'
import { readJson, writeJson } from './json-file.js'
import { isAlive } from './process-identity.js'
import { whyFolderDistrusted } from './trust.js'

/** @typedef {ReturnType<typeof openDataDir>} DataDir */

const SECRETS = Object.freeze(['admin.token', 'release.key'])

/**
 * The data folder: made at the first start, readable by its owner alone.
 * @param {string} folder absolute path
 * @throws {DeckError} data-dir-unusable
 */
export function openDataDir (folder) {
  const file = (/** @type {string} */ name) => path.join(folder, name)
  make(folder, SECRETS)
  for (const name of ['logs', 'crashes', 'orders']) make(file(name), [])
  /** @type {ReturnType<typeof takeLock>} */
  let lock = null

  return {
    historyFile: file('history.db'),
    logFolder: file('logs'),
    logFile: path.join(folder, 'logs', 'master.log'),
    crashFolder: file('crashes'),
    diagnosticsFolder: file('diagnostics'),
    orderFolder: file('orders'),
    releaseFolder: file('releases'),
    folder,

    /**
     * From here on no other master runs on this folder, until this one lets go of it or ends.
     * @throws {DeckError} master-running, data-dir-unusable
     */
    lock () {
      try {
        lock = takeLock(file('master.lock'))
      } catch (/** @type {any} */ error) {
        throw error instanceof DeckError ? error : unusable(folder, error)
      }
      if (!lock) throw masterRunning(readJson(file('master.json')))
    },

    /** @param {{ handsOver: boolean }} how  the next master has announced itself, or is about to */
    release ({ handsOver }) {
      if (!handsOver) rmSync(file('master.json'), { force: true })
      lock?.release()
      lock = null
    },

    /** @returns {string} the admin token, made when there is none */
    token () {
      try {
        return readToken(file('admin.token')) ?? makeToken(file('admin.token'))
      } catch (/** @type {any} */ error) {
        throw unusable(folder, error)
      }
    },

    /** @returns {string} what digests of the workers' variables are made with: without it a short value could be guessed from one */
    releaseKey () {
      try {
        return readToken(file('release.key')) ?? makeToken(file('release.key'))
      } catch (/** @type {any} */ error) {
        throw unusable(folder, error)
      }
    },

    /** @param {{ pid: number, adminUrl: string, startedAt: string }} master */
    announce (master) {
      writeJson(file('master.json'), master)
    },

    memory: {
      /** @returns {any} what the last master has left, null if it has ended as it should */
      read: () => readJson(file('memory.json')),
      /** @param {unknown} content what the next master has to know if this one cannot end as it should */
      write (content) { writeJson(file('memory.json'), content) },
      clear () { rmSync(file('memory.json'), { force: true }) }
    }
  }
}

/**
 * What is in it says whose orders are obeyed, and which programs are run.
 * @param {string} folder @param {readonly string[]} secrets names of files in it that nobody else may read
 */
function make (folder, secrets) {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    accessSync(folder, constants.W_OK)
  } catch (/** @type {any} */ error) {
    throw unusable(folder, error)
  }
  const reason = whyFolderDistrusted(folder, secrets)
  if (reason) throw new DeckError('data-dir-unusable', `dataDir: expected a folder that only its user can write, but ${reason}; correct that, or choose another folder (--data-dir)`)
}

/** @param {any} master what it has said of itself, if it has come that far */
function masterRunning (master) {
  // Where it is taking over from one that has died, it has not said yet.
  const who = master && isAlive({ pid: master.pid, startTime: null }) ? `a master (pid ${master.pid}, ${master.adminUrl})` : 'another master'
  return new DeckError('master-running', `${who} already runs on this data folder`)
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
