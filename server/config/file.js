import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { SHARE_ENV, Worker } from 'node:worker_threads'
import { DeckError } from '../errors.js'
import { whyPathDistrusted } from '../system/trust.js'

const THREAD = new URL('./file-thread.js', import.meta.url)
const GUARD = new URL('./loading-guard.js', import.meta.url)
const PATIENCE_MS = 10_000
const DEFAULT_NAMES = ['clusterdeck.config.js', 'clusterdeck.config.mjs', 'clusterdeck.config.json']

/**
 * Reads the config file that was named, or the one that lies in the working folder, unless somebody else could have put it there.
 * @param {string | undefined} named
 * @param {string} cwd
 * @param {{ isAgain?: boolean, isGuest?: boolean, patienceMs?: number }} [how] `isAgain`: as it is now, though this process has read it before; `isGuest`: the process is another program's, and is not ended where the file never comes to its end
 * @returns {Promise<{ file: string, values: Record<string, unknown> } | null>} null if there is none
 * @throws {DeckError} invalid-config
 */
export async function readConfigFile (named, cwd, { isAgain = false, isGuest = false, patienceMs = PATIENCE_MS } = {}) {
  const file = named === undefined
    ? DEFAULT_NAMES.map((name) => path.resolve(cwd, name)).find(isFile)
    : path.resolve(cwd, named)
  if (file === undefined) return null
  if (named === undefined) checkFound(file)
  if (!isFile(file)) throw new DeckError('invalid-config', `config: expected a file, received ${file}, which does not exist`)
  const values = await loadFile(file, { isAgain, isGuest, patienceMs })
  if (typeof values !== 'object' || values === null || Array.isArray(values)) {
    throw new DeckError('invalid-config', `${file}: expected an object of options, received ${describeType(values)}`)
  }
  return { file, values }
}

/** Whoever names a file trusts its owner. @param {string} file @throws {DeckError} invalid-config */
function checkFound (file) {
  const reason = whyPathDistrusted(file)
  if (reason !== null) throw new DeckError('invalid-config', `config: expected ${file} to be a file that only root and its user can write, but ${reason}; correct that, or name it by --config or CLUSTERDECK_CONFIG if you trust it`)
}

/** @param {string} file @param {{ isAgain: boolean, isGuest: boolean, patienceMs: number }} how */
async function loadFile (file, { isAgain, isGuest, patienceMs }) {
  try {
    if (file.endsWith('.json')) return parseFile(readFileSync(file, 'utf8'))
    if (isAgain) return await loadInThread(file, patienceMs)
    const loading = import(pathToFileURL(file).href)
    return (await (isGuest ? loading : loadGuarded(loading, file, patienceMs))).default
  } catch (/** @type {any} */ error) {
    // The app's own code runs here: its message is what helps, its stack is not ours to show.
    const [reason] = String(error?.message ?? error).split('\n')
    throw new DeckError('invalid-config', `${file}: expected a config file that loads, received: ${reason}`, { cause: error })
  }
}

/** @param {string} text */
function parseFile (text) {
  try {
    return JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (/** @type {any} */ error) {
    // Some of its messages quote the text around the place, which may be a secret.
    throw new Error(`no JSON${/ at position \d+/.exec(error.message)?.[0] ?? ''}`, { cause: error })
  }
}

/**
 * What runs here may wait for ever, or run for ever: then neither a signal nor a timer comes through.
 * @template T @param {Promise<T>} loading @param {string} file @param {number} patienceMs
 * @returns {Promise<T>}
 */
async function loadGuarded (loading, file, patienceMs) {
  const { CLUSTERDECK_KEPT: keeper } = process.env
  const fd = process.channel && /** @type {any} */ (process.channel).fd
  const isKept = keeper === String(process.ppid) && fd !== undefined
  const guard = new Worker(GUARD, { workerData: { file, patienceMs, keeper: isKept ? { pid: process.ppid, fd } : null }, env: SHARE_ENV, execArgv: [] })
  try {
    return await Promise.race([loading, new Promise((_resolve, reject) => {
      guard.once('message', () => reject(new Error(`nothing within ${patienceMs} ms`)))
      // ENOMEM, EAGAIN: it goes without.
      guard.once('error', () => {})
    })])
  } finally {
    guard.removeAllListeners('message')
    await guard.terminate()
  }
}

/**
 * Modules are loaded once in a process and stay as they were, with all that they import; a thread begins with none. What
 * the file does to its own `process.env` stays in there too.
 * @param {string} file @param {number} patienceMs
 */
async function loadInThread (file, patienceMs) {
  const thread = new Worker(THREAD, { workerData: pathToFileURL(file).href })
  let timer
  try {
    return await new Promise((resolve, reject) => {
      timer = setTimeout(() => reject(new Error(`nothing within ${patienceMs} ms`)), patienceMs)
      thread.once('message', ({ values, reason }) => reason === undefined ? resolve(values) : reject(new Error(reason)))
      thread.once('error', reject)
      thread.once('exit', () => reject(new Error('it ended the process')))
    })
  } finally {
    clearTimeout(timer)
    await thread.terminate()
  }
}

/** @param {unknown} value */
function describeType (value) {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : value === undefined ? 'no default export' : `a ${typeof value}`
}

/** @param {string} file */
function isFile (file) {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false
}
