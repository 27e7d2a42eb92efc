import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { DECK_NAME } from '../config/apps.js'
import { DeckError, errorCode } from '../errors.js'
import { fallbackFolders } from '../system/fallback-folder.js'
import { isAlive } from '../system/process-identity.js'
import { SECRETS, whyFolderDistrusted } from '../system/trust.js'
import { userId } from '../system/user.js'

/**
 * What a master has announced in a data folder.
 * @typedef {object} Announced
 * @property {string} url
 * @property {string | null} fingerprint of its certificate
 * @property {import('../system/recipient.js').Recipient} recipient
 * @property {string} folder where that is written
 * @property {{ folder: string, path: string } | null} host the folder of the host that the app is in, and the app's path there
 *
 * @typedef {{ folder: string, isNamed: boolean }} Place of a data folder; `isNamed`: the user has named it; else it just lies in the working folder
 */

const ROOT = 0

/**
 * Reads master.json. A master that cannot write to the folder has it in another one, and this one may name a dead master.
 * @param {Place} place @param {Record<string, string | undefined>} env
 * @returns {Announced | null}
 * @throws {DeckError} data-dir-unusable, unauthenticated
 */
export function readAnnounced ({ folder, isNamed }, env) {
  checkFolder(folder, isNamed)
  const masters = [folder, ...fallbackFolders(folder, env).filter(isOwnFolder)].map(readMaster).filter((master) => master !== null)
  return masters.find(({ recipient: { processes: [master] } }) => isAlive(master)) ?? masters[0] ?? null
}

/** @param {string[]} folders the first one with a token counts @throws {DeckError} unauthenticated */
export function readToken (folders) {
  const files = folders.map((folder) => path.join(folder, 'admin.token'))
  const file = files.find((each) => existsSync(each)) ?? files[0]
  try {
    return readOwn(file)
  } catch (error) {
    const received = `${errorCode(error)}; give it by --token-file or CLUSTERDECK_TOKEN`
    throw new DeckError('unauthenticated', `${file}: expected the admin token, received ${received}`, { cause: error })
  }
}

/**
 * Distrusts a folder that others could have planted, as a start does. A folder that the user has named may belong to
 * another user: his token then goes to his processes alone.
 * @param {string} folder @param {boolean} isNamed
 * @throws {DeckError} data-dir-unusable, unauthenticated
 */
function checkFolder (folder, isNamed) {
  try {
    const found = statSync(folder, { throwIfNoEntry: false })
    const reason = found ? whyFolderDistrusted(folder, SECRETS, isNamed ? { owner: found.uid } : {}) : null
    if (reason !== null) {
      const hint = isNamed ? '' : '; --data-dir names the folder of another deck'
      throw new DeckError('data-dir-unusable', `dataDir: expected a folder that only its user can write, but ${reason}${hint}`)
    }
  } catch (error) {
    if (errorCode(error) === 'EACCES') throw new DeckError('unauthenticated', `${folder}: belongs to another user`, { cause: error })
    if (error instanceof DeckError) throw error
    // ENOTDIR: none runs here.
  }
}

/** Anybody can make a folder of that name first. @param {string} folder */
function isOwnFolder (folder) {
  try {
    return whyFolderDistrusted(folder, SECRETS) === null
  } catch {
    // ENOENT: the usual case.
    return false
  }
}

/** @param {string} folder @returns {Announced | null} */
function readMaster (folder) {
  try {
    const written = JSON.parse(readFileSync(path.join(folder, 'master.json'), 'utf8'))
    const { adminUrl, fingerprint = null, pid, startTime = null, keeper = null, pidNamespace = null, host = null } = written
    const processes = [{ pid: Number(pid), startTime }, ...(keeper === null ? [] : [{ pid: Number(keeper.pid), startTime: keeper.startTime }])]
    const { origin, pathname } = new URL(adminUrl)
    return { url: origin, fingerprint, recipient: { owner: statSync(folder).uid, processes, pidNamespace }, folder, host: placeInHost(host, pathname) }
  } catch {
    // ENOENT: none runs here. Unreadable content counts as none.
    return null
  }
}

/** @param {unknown} folder @param {string} pathname @returns {Announced['host']} @throws {Error} */
function placeInHost (folder, pathname) {
  if (folder === null) return null
  const [, name = ''] = /^\/apps\/([^/]+)$/.exec(pathname) ?? []
  if (typeof folder === 'string' && path.isAbsolute(folder) && DECK_NAME.test(name)) return { folder, path: pathname }
  throw new Error('no app of a host')
}

/** In the folder of another user, the file may be a link to a secret that is not his. @param {string} file @returns {string} */
function readOwn (file) {
  const { uid } = statSync(path.dirname(file))
  if (uid === userId() || uid === ROOT) return readFileSync(file, 'utf8').trim()
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const found = fstatSync(descriptor)
    if (found.uid !== uid || !found.isFile()) throw Object.assign(new Error('not his'), { code: 'what is not a file of the owner of its folder' })
    return readFileSync(descriptor, 'utf8').trim()
  } finally {
    closeSync(descriptor)
  }
}
