import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DeckError, errorCode, errorReason, toError } from '../errors.js'
import { readJson, writeJson } from './json-file.js'
import { makeFolders } from './make-folders.js'
import { isAlive } from './process-identity.js'
import { whyPathDistrusted } from './trust.js'

/**
 * A deck of this user on this machine, as its master has said it.
 * @typedef {object} RunningDeck
 * @property {string} name  several decks may have the same
 * @property {string} entry
 * @property {string} cwd
 * @property {string} dataDir  absolute, as configured: its token is there, and no other deck has it
 * @property {string | null} configFile
 * @property {string} adminUrl
 * @property {string | null} [publicUrl]  of its admin page, for people, where that is another one
 * @property {string | null} fingerprint  of its certificate
 * @property {string} version  of clusterdeck
 * @property {string} startedAt  ISO 8601, of this master
 * @property {import('./process-identity.js').ProcessIdentity} master
 * @property {import('./process-identity.js').ProcessIdentity | null} keeper
 */

const MAX_BYTES = 64 * 1024
const OF_OTHERS = 0o077

/** What a file has to say of a deck. @type {Readonly<Record<keyof RunningDeck, (value: unknown) => boolean>>} */
const FIELDS = Object.freeze({
  name: isText,
  entry: isText,
  cwd: isText,
  dataDir: (value) => isText(value) && path.isAbsolute(value),
  configFile: (value) => value === null || isText(value),
  adminUrl: isAddress,
  publicUrl: (value) => (value ?? null) === null || isAddress(value),
  fingerprint: (value) => value === null || isText(value),
  version: isText,
  startedAt: (value) => isText(value) && !Number.isNaN(Date.parse(value)),
  master: isIdentity,
  keeper: (value) => value === null || isIdentity(value)
})

/**
 * Where all decks of this user are told of: a file each.
 * @param {Record<string, string | undefined>} [env]
 * @returns {string} absolute
 */
export function runtimeFolder (env = process.env) {
  if (env.CLUSTERDECK_RUNTIME_DIR) return path.resolve(env.CLUSTERDECK_RUNTIME_DIR)
  const own = process.geteuid?.() ?? 'user'
  // sudo and su pass on that of another user.
  const isOwn = env.XDG_RUNTIME_DIR && path.isAbsolute(env.XDG_RUNTIME_DIR) && (statOf(env.XDG_RUNTIME_DIR)?.uid === own || own === 'user')
  return isOwn ? path.join(String(env.XDG_RUNTIME_DIR), 'clusterdeck') : path.join(tmpdir(), `clusterdeck-${own}`)
}

/**
 * Says that this deck runs, in place of what was said of its data folder before.
 * @param {RunningDeck} deck @param {Record<string, string | undefined>} [env]
 * @throws {DeckError} runtime-dir-unusable
 */
export function registerDeck (deck, env = process.env) {
  const folder = runtimeFolder(env)
  try {
    makeFolder(folder)
    checkFolder(folder)
    writeJson(fileOf(folder, deck), deck)
  } catch (error) {
    throw error instanceof DeckError ? error : unusableFolder(`${folder}, which cannot be written (${errorReason(error)})`, error)
  }
}

/**
 * Says no more that it runs, unless another master has taken its place.
 * @param {Pick<RunningDeck, 'dataDir' | 'master'>} deck @param {Record<string, string | undefined>} [env]
 */
export function withdrawDeck (deck, env = process.env) {
  const file = fileOf(runtimeFolder(env), deck)
  const told = readDeck(file)
  if (told && isSame(told.master, deck.master)) removeFile(file)
}

/**
 * The decks of this user on this machine; those that have ended without a word are forgotten.
 * @param {Record<string, string | undefined>} [env]
 * @returns {RunningDeck[]} by name
 * @throws {DeckError} runtime-dir-unusable: others could have said it
 */
export function runningDecks (env = process.env) {
  const folder = runtimeFolder(env)
  return filesOf(folder).flatMap((file) => {
    const deck = readDeck(file)
    if (!deck || isRunning(deck)) return deck ?? []
    // A next master may have come meanwhile.
    const now = readDeck(file)
    if (now && isSame(now.master, deck.master)) removeFile(file)
    return []
  }).sort((one, other) => compareText(one.name, other.name) || compareText(one.dataDir, other.dataDir))
}

/**
 * @param {string} dataDir absolute @param {Record<string, string | undefined>} [env]
 * @returns {RunningDeck | null} the deck that lives there; null: none does, or nobody can be trusted to say so
 */
export function runningDeckAt (dataDir, env = process.env) {
  try {
    const folder = runtimeFolder(env)
    checkFolder(folder)
    const deck = readDeck(fileOf(folder, { dataDir }))
    return deck && isRunning(deck) ? deck : null
  } catch {
    // ENOENT: no deck has run yet.
    return null
  }
}

/** @param {string} folder */
function makeFolder (folder) {
  try {
    makeFolders(folder, 0o700)
  } catch (error) {
    // EEXIST: it is a file, which the check says.
    if (errorCode(error) !== 'EEXIST') throw error
  }
}

/** @param {string} folder @returns {string[]} @throws {DeckError} runtime-dir-unusable */
function filesOf (folder) {
  try {
    checkFolder(folder)
    return readdirSync(folder).filter((name) => name.endsWith('.json')).map((name) => path.join(folder, name))
  } catch (error) {
    // No deck has run yet.
    if (toError(error).code === 'ENOENT') return []
    throw error instanceof DeckError ? error : unusableFolder(`${folder}, which cannot be read (${errorReason(error)})`, error)
  }
}

/**
 * Whoever can write there says to which programs this user's commands talk.
 * @param {string} folder
 * @throws {DeckError} runtime-dir-unusable; and what the system says
 */
function checkFolder (folder) {
  const stat = lstatSync(folder)
  if (!stat.isDirectory()) throw unusableFolder(`${folder}, which is none`)
  const own = process.geteuid?.()
  if (own === undefined) return
  if (stat.uid !== own) throw unusableFolder(`${folder}, which belongs to another user (uid ${stat.uid}, this process has ${own})`)
  if (stat.mode & OF_OTHERS) throw unusableFolder(`${folder}, which is open to others (mode ${(stat.mode & 0o7777).toString(8).padStart(4, '0')}, expected 0700)`)
  const reason = whyPathDistrusted(folder)
  if (reason !== null) throw unusableFolder(`${folder}, but ${reason}`)
}

/** @param {string} received @param {unknown} [cause] */
function unusableFolder (received, cause) {
  return new DeckError('runtime-dir-unusable', `CLUSTERDECK_RUNTIME_DIR: expected a folder of this user alone, received ${received}`, { cause })
}

/** @param {string} folder @param {Pick<RunningDeck, 'dataDir'>} deck */
function fileOf (folder, { dataDir }) {
  return path.join(folder, `${createHash('sha256').update(realPath(dataDir)).digest('hex').slice(0, 16)}.json`)
}

/** @param {string} folder */
function realPath (folder) {
  try {
    return realpathSync(folder)
  } catch {
    // ENOENT: on a disk that takes nothing it is not there.
    return path.resolve(folder)
  }
}

/** @param {string} file @returns {RunningDeck | null} null: nothing that a master has written */
function readDeck (file) {
  const stat = statOf(file)
  const deck = stat?.isFile() && stat.size <= MAX_BYTES ? readJson(file) : null
  return isRunningDeck(deck) ? deck : null
}

/** @param {unknown} deck @returns {deck is RunningDeck} */
function isRunningDeck (deck) {
  return typeof deck === 'object' && deck !== null && Object.entries(FIELDS).every(([name, isFine]) => isFine(Reflect.get(deck, name)))
}

/** @param {string} file */
function statOf (file) {
  try {
    return statSync(file)
  } catch {
    // ENOENT, EACCES.
    return null
  }
}

/** @param {string} file */
function removeFile (file) {
  try {
    rmSync(file, { force: true })
  } catch {
    // EROFS: it is left out all the same.
  }
}

/** @param {RunningDeck} deck */
function isRunning ({ master, keeper }) {
  return isAlive(master) || (keeper !== null && isAlive(keeper))
}

/** @param {import('./process-identity.js').ProcessIdentity} one @param {import('./process-identity.js').ProcessIdentity} other */
function isSame (one, other) {
  return one.pid === other.pid && one.startTime === other.startTime
}

/** @param {unknown} value @returns {value is string} */
function isText (value) {
  return typeof value === 'string' && value !== ''
}

/** @param {unknown} value */
function isAddress (value) {
  return isText(value) && /^https?:\/\//.test(value) && URL.canParse(value)
}

/** @param {unknown} value */
function isIdentity (value) {
  const { pid, startTime } = Object(value)
  return Number.isSafeInteger(pid) && pid > 0 && (startTime === null || isText(startTime))
}

/** @param {string} one @param {string} other */
function compareText (one, other) {
  return one < other ? -1 : one > other ? 1 : 0
}
