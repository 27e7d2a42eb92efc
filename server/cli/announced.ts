import { closeSync, constants, existsSync, fstatSync, openSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { DECK_NAME } from '../config/apps.ts'
import { attempt, DeckError, errorCode, errorReason } from '../errors.ts'
import { fallbackFolders } from '../system/fallback-folder.ts'
import { isAlive } from '../system/process-identity.ts'
import { SECRETS, whyFolderDistrusted } from '../system/trust.ts'
import { userId } from '../system/user.ts'
import { misuse } from './usage.ts'
import type { Recipient } from '../system/recipient.ts'
import type { Place } from './program.ts'

/** What a master has announced in a data folder. */
export type Announced = {
  url: string,
  /** of its certificate */
  fingerprint: string | null,
  recipient: Recipient,
  /** where that is written */
  folder: string,
  /** the folder of the host that the app is in, and the app's path there */
  host: { folder: string, path: string } | null
}
/** of a data folder; `isNamed`: the user has named it; else it just lies in the working folder */
export type DataFolder = { folder: string, isNamed: boolean }

const ROOT = 0
/** The characters that a header can carry. */
const TOKEN = /^[\x21-\x7e]+$/

/**
 * Reads master.json. A master that cannot write to the folder has it in another one, and this one may name a dead
 * master.
 * @throws {DeckError} data-dir-unusable, unauthenticated
 */
export function readAnnounced ({ folder, isNamed }: DataFolder, env: Record<string, string | undefined>):
  | Announced
  | null
{
  checkFolder(folder, isNamed)
  const masters = [folder, ...fallbackFolders(folder, env).filter(isOwnFolder)].map(readMaster).filter((master) =>
    master !== null
  )
  return masters.find(({ recipient: { processes: [master] } }) => isAlive(master)) ?? masters[0] ?? null
}

/** `folders`: the first one with a token counts @throws {DeckError} unauthenticated */
export function readToken (folders: string[]) {
  const files = folders.map((folder) => path.join(folder, 'admin.token'))
  const file = files.find((each) => existsSync(each)) ?? files[0]
  try {
    return readOwn(file)
  } catch (error) {
    const received = `${errorCode(error)}; give it by --token-file or CLUSTERDECK_TOKEN`
    throw new DeckError('unauthenticated', `${file}: expected the admin token, received ${received}`, { cause: error })
  }
}

/** Takes the token of a flag, or else of a variable. Returns undefined: none is given. @throws {DeckError} usage */
export function givenToken ({ token, tokenFile }: { token?: string, tokenFile?: string }, { env, cwd }: Place):
  | string
  | undefined
{
  if (token !== undefined && tokenFile !== undefined) throw misuse('--token-file', 'without --token', 'both')
  if (token !== undefined) return checkedToken('--token', token)
  if (tokenFile !== undefined) return tokenIn('--token-file', tokenFile, cwd)
  if (env.CLUSTERDECK_TOKEN) return checkedToken('CLUSTERDECK_TOKEN', env.CLUSTERDECK_TOKEN)
  return env.CLUSTERDECK_TOKEN_FILE ? tokenIn('CLUSTERDECK_TOKEN_FILE', env.CLUSTERDECK_TOKEN_FILE, cwd) : undefined
}

function tokenIn (option: string, file: string, cwd: string) {
  try {
    return checkedToken(`${option} ${file}`, readFileSync(path.resolve(cwd, file), 'utf8').trim())
  } catch (error) {
    if (error instanceof DeckError) throw error
    const received = `${JSON.stringify(file)} (${errorReason(error)})`
    throw misuse(option, 'a file with the token in it', received, { cause: error })
  }
}

/** The message does not show the text, which may be most of a secret. */
function checkedToken (source: string, token: string) {
  if (TOKEN.test(token)) return token
  throw misuse(source, 'a token', token === '' ? 'nothing' : 'blanks, or characters that no token has')
}

/**
 * Distrusts a folder that others could have planted, as a start does. A folder that the user has named may belong to
 * another user: his token then goes to his processes alone.
 */
function checkFolder (folder: string, isNamed: boolean) {
  try {
    const found = statSync(folder, { throwIfNoEntry: false })
    const reason = found ? whyFolderDistrusted(folder, SECRETS, isNamed ? { owner: found.uid } : {}) : null
    if (reason !== null) {
      const hint = isNamed ? '' : '; --data-dir names the folder of another deck'
      throw new DeckError('data-dir-unusable',
        `dataDir: expected a folder that only its user can write, but ${reason}${hint}`)
    }
  } catch (error) {
    if (errorCode(error) === 'EACCES')
      throw new DeckError('unauthenticated', `${folder}: belongs to another user`, { cause: error })
    if (error instanceof DeckError) throw error
    // ENOTDIR: none runs here.
  }
}

/** Anybody can make a folder of that name first. */
function isOwnFolder (folder: string) {
  // ENOENT: the usual case.
  return attempt(() => whyFolderDistrusted(folder, SECRETS) === null, false)
}

function readMaster (folder: string): Announced | null {
  // ENOENT: none runs here. Unreadable content counts as none.
  return attempt(() => {
    const written = JSON.parse(readFileSync(path.join(folder, 'master.json'), 'utf8'))
    const { adminUrl, fingerprint = null, pid, startTime = null, keeper = null, pidNamespace = null, host = null } =
      written
    const processes = [{ pid: Number(pid), startTime },
      ...(keeper === null ? [] : [{ pid: Number(keeper.pid), startTime: keeper.startTime }])]
    const { origin, pathname } = new URL(adminUrl)
    return { url: origin, fingerprint, recipient: { owner: statSync(folder).uid, processes, pidNamespace }, folder,
      host: placeInHost(host, pathname) }
  })
}

/** @throws {Error} */
function placeInHost (folder: unknown, pathname: string): Announced['host'] {
  if (folder === null) return null
  const [, name = ''] = /^\/apps\/([^/]+)$/.exec(pathname) ?? []
  if (typeof folder === 'string' && path.isAbsolute(folder) && DECK_NAME.test(name)) return { folder, path: pathname }
  throw new Error('no app of a host')
}

/** In the folder of another user, the file may be a link to a secret that is not his. */
function readOwn (file: string): string {
  const { uid } = statSync(path.dirname(file))
  if (uid === userId() || uid === ROOT) return readFileSync(file, 'utf8').trim()
  const descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const found = fstatSync(descriptor)
    if (found.uid !== uid || !found.isFile())
      throw Object.assign(new Error('not his'), { code: 'what is not a file of the owner of its folder' })
    return readFileSync(descriptor, 'utf8').trim()
  } finally {
    closeSync(descriptor)
  }
}
