import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { pickApp } from '../config/apps.js'
import { readConfigFile } from '../config/file.js'
import { didYouMean } from '../config/nearest.js'
import { DeckError, errorCode } from '../errors.js'
import { fallbackFolders } from '../system/fallback-folder.js'
import { isAlive } from '../system/process-identity.js'
import { runningDecks } from '../system/running-decks.js'
import { SECRETS, whyFolderDistrusted } from '../system/trust.js'
import { asNamed, pinPath } from '../system/working-folder.js'
import { givenToken } from './token.js'
import { userId } from './user.js'

const ROOT = 0

/**
 * @typedef {object} Master
 * @property {string} url
 * @property {string} token
 * @property {string | null} fingerprint of its certificate, where the data folder has it
 * @property {import('../system/recipient.js').Recipient | null} recipient the processes that may get the token; null: any, as the user has named the address
 * @property {string} dataDir
 * @property {string} [member] the member of its fleet that is meant instead
 *
 * @typedef {{ folder: string, isNamed: boolean }} Place of a data folder; `isNamed`: the user has named it; else it just lies in the working folder
 */

/**
 * Finds the master and its token: as named by the user, else as the data folder says.
 * @param {{ url?: string, token?: string, tokenFile?: string, dataDir?: string, app?: string, name?: string }} options
 * @param {{ env: Record<string, string | undefined>, cwd: string }} process
 * @returns {Promise<Master>}
 * @throws {DeckError} no-master, unauthenticated, usage, invalid-config, runtime-dir-unusable
 */
export async function findMaster (options, { env, cwd }) {
  const byName = findByName(options, env)
  const place = byName === null ? await findDataDir(options, env, cwd) : { folder: byName, isNamed: true }
  const dataDir = place.folder
  const named = byName === null ? checkedUrl(options.url ?? (env.CLUSTERDECK_URL || undefined)) : null
  const running = readRunning(place, env)
  const url = named ?? running?.url
  if (url === undefined) {
    throw new DeckError('no-master', `no master is running on ${dataDir}: it has no master.json (another folder: --data-dir; another machine: --url)`)
  }
  // The token of this folder is for its own master, so it is sent to no other address.
  const own = named === null || named === running?.url ? running : null
  const token = givenToken(options, { env, cwd }) ?? (own ? readToken([dataDir, own.folder]) : undefined)
  if (token === undefined) {
    const ways = 'or --token-file, CLUSTERDECK_TOKEN, CLUSTERDECK_TOKEN_FILE'
    throw new DeckError('unauthenticated', `--token: expected the token of the master at ${named} (${ways}), received none`)
  }
  return { url, token, fingerprint: own?.fingerprint ?? null, recipient: own?.recipient ?? null, dataDir }
}

/**
 * @param {string} dataDir @param {Record<string, string | undefined>} env
 * @returns {number | null} the pid of the master that runs there; null: none, or another user's
 */
export function findRunning (dataDir, env) {
  try {
    const [master] = readRunning({ folder: dataDir, isNamed: true }, env)?.recipient.processes ?? []
    return master && isAlive(master) ? master.pid : null
  } catch {
    // EACCES: another user's.
    return null
  }
}

/**
 * Finds a deck of this user by its name, in whatever folder it is.
 * @param {{ name?: string, url?: string, dataDir?: string, app?: string }} options @param {Record<string, string | undefined>} env
 * @returns {string | null} its data folder; null: no name is given
 */
function findByName (options, env) {
  for (const [flag, value] of [['--data-dir', options.dataDir], ['--app', options.app], ['--url', options.url]]) {
    if (options.name !== undefined && value !== undefined) throw new DeckError('usage', `--name: expected without ${flag}, received both`)
  }
  const isPlaced = [options.dataDir, options.app, options.url, env.CLUSTERDECK_DATA_DIR, env.CLUSTERDECK_APP, env.CLUSTERDECK_URL].some(Boolean)
  const name = options.name ?? (isPlaced ? undefined : env.CLUSTERDECK_NAME || undefined)
  if (name === undefined) return null
  const decks = runningDecks(env)
  const [deck, ...others] = decks.filter((each) => each.name === name)
  if (others.length > 0) {
    const folders = [deck, ...others].map(({ dataDir }) => dataDir).join(', ')
    const received = `${JSON.stringify(name)}, which ${others.length + 1} decks have; choose one by --data-dir: ${folders}`
    throw new DeckError('usage', `--name: expected the name of one deck, received ${received}`)
  }
  if (deck) return deck.dataDir
  const known = [...new Set(decks.map((each) => each.name))]
  const running = known.length === 0 ? 'none runs' : `running: ${known.join(', ')}`
  throw new DeckError('no-master', `no deck of this user is called ${JSON.stringify(name)}${didYouMean(name, known)}; ${running}`)
}

/**
 * @param {{ url?: string, dataDir?: string, app?: string }} options @param {Record<string, string | undefined>} env @param {string} cwd
 * @returns {Promise<Place>}
 */
async function findDataDir (options, env, cwd) {
  const named = options.dataDir ?? (env.CLUSTERDECK_DATA_DIR || undefined)
  if (named !== undefined) return { folder: path.resolve(cwd, named), isNamed: true }
  const file = await readConfigFile(env.CLUSTERDECK_CONFIG || undefined, cwd)
  const app = options.app ?? (env.CLUSTERDECK_APP || undefined)
  // A deck that is named by its address need not be one of the apps.
  const isElsewhere = app === undefined && (options.url ?? (env.CLUSTERDECK_URL || undefined)) !== undefined
  const place = placeOf(isElsewhere ? { shared: file, own: null, dataDir: null } : pickApp(file, app, cwd), cwd)
  if (app !== undefined || isElsewhere || readRunning(place, env) !== null) return place
  const behind = dataDirBehindLink(cwd, env)
  return behind === null ? place : { folder: behind, isNamed: true }
}

/**
 * @param {import('../config/apps.js').ConfigFile | null} file @param {string | undefined} app @param {string} cwd
 * @returns {string} absolute
 * @throws {DeckError} invalid-config
 */
export function dataDirOfApp (file, app, cwd) {
  return placeOf(pickApp(file, app, cwd), cwd).folder
}

/** @param {Pick<ReturnType<typeof pickApp>, 'shared' | 'own' | 'dataDir'>} picked @param {string} cwd @returns {Place} */
function placeOf ({ shared, own, dataDir }, cwd) {
  const file = own ?? shared
  const configured = own?.values.dataDir ?? shared?.values.dataDir
  const said = dataDir
    ? path.resolve(dataDir.folder, dataDir.value)
    : file && typeof configured === 'string' ? path.resolve(path.dirname(file.file), configured) : null
  // The master resolves links only once, so its data folder stays where it was.
  return { folder: pinPath(said ?? path.resolve(cwd, '.clusterdeck'), asNamed(cwd)), isNamed: said !== null }
}

/**
 * Finds a deck that was started in this folder through a symbolic link that led elsewhere then.
 * @param {string} cwd @param {Record<string, string | undefined>} env
 * @returns {string | null} its data folder; null: there is none, or more than one
 */
function dataDirBehindLink (cwd, env) {
  if (asNamed(cwd).real === cwd) return null
  const [deck, ...others] = runningDecks(env).filter((each) => each.cwd === cwd)
  return deck && others.length === 0 ? deck.dataDir : null
}

/**
 * Reads master.json. A master that cannot write to the folder has it in another one, and this one may name a dead master.
 * @param {Place} place @param {Record<string, string | undefined>} env
 * @throws {DeckError} data-dir-unusable, unauthenticated
 */
function readRunning ({ folder, isNamed }, env) {
  checkFolder(folder, isNamed)
  const masters = [folder, ...fallbackFolders(folder, env).filter(isOwnFolder)].map(readMaster).filter((master) => master !== null)
  return masters.find(({ recipient: { processes: [master] } }) => isAlive(master)) ?? masters[0] ?? null
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

/** @param {string} folder @returns {Pick<Master, 'url' | 'fingerprint'> & { recipient: import('../system/recipient.js').Recipient, folder: string } | null} */
function readMaster (folder) {
  try {
    const written = JSON.parse(readFileSync(path.join(folder, 'master.json'), 'utf8'))
    const { adminUrl, fingerprint = null, pid, startTime = null, keeper = null, pidNamespace = null } = written
    const processes = [{ pid: Number(pid), startTime }, ...(keeper === null ? [] : [{ pid: Number(keeper.pid), startTime: keeper.startTime }])]
    return { url: new URL(adminUrl).origin, fingerprint, recipient: { owner: statSync(folder).uid, processes, pidNamespace }, folder }
  } catch {
    // ENOENT: none runs here. Unreadable content counts as none.
    return null
  }
}

/** @param {string[]} folders the first one with a token counts */
function readToken (folders) {
  const files = folders.map((folder) => path.join(folder, 'admin.token'))
  const file = files.find((each) => existsSync(each)) ?? files[0]
  try {
    return readOwn(file)
  } catch (error) {
    const received = `${errorCode(error)}; give it by --token-file or CLUSTERDECK_TOKEN`
    throw new DeckError('unauthenticated', `${file}: expected the admin token, received ${received}`, { cause: error })
  }
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

/** @param {string | undefined} url @returns {string | null} */
function checkedUrl (url) {
  if (url === undefined) return null
  const { protocol, origin, pathname } = URL.canParse(url) ? new URL(url) : { protocol: '', origin: '', pathname: '' }
  if (/^https?:$/.test(protocol)) return `${origin}${pathname.replace(/\/+$/, '')}`
  throw new DeckError('usage', `--url: expected an address such as http://127.0.0.1:9777, received ${JSON.stringify(url)}`)
}
