import { randomBytes } from 'node:crypto'
import { accessSync, constants, existsSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync,
  writeFileSync } from 'node:fs'
import path from 'node:path'
import { takeLock } from '../../db/lock.ts'
import { attempt, DeckError, errorReason, succeeds, toError, unless } from '../errors.ts'
import { fallbackFolders } from './fallback-folder.ts'
import { readJson, writeJson } from './json-file.ts'
import { makeFolders } from './make-folders.ts'
import { isAlive, type ProcessIdentity } from './process-identity.ts'
import { SECRETS, whyFolderDistrusted, whyPathDistrusted } from './trust.ts'

export type DataDir = ReturnType<typeof openDataDir>
/**
 * What a master says of itself; `fingerprint`: of its certificate; `host`: the folder of the host that the app is in,
 * which has the token.
 */
type Announcement =
  & ProcessIdentity
  & { keeper: ProcessIdentity | null, pidNamespace: string | null, adminUrl: string, fingerprint?: string,
    startedAt: string, host?: string }

/** What else is in a folder of this name is nothing that anybody wants in a repository either. */
const DEFAULT_NAME = '.clusterdeck'
const IGNORED = '# Tokens, history and logs of this deck: nothing for a repository.\n*\n'

/**
 * The data folder: made at the first start, readable by its owner alone. Where nothing can be written there, as on a
 * full or read-only disk, another folder takes its place until the next start: no app waits for its history. `wanted`:
 * absolute path.
 * @throws {DeckError} data-dir-unusable
 */
export function openDataDir (wanted: string) {
  const { folder, away } = placeFolder(wanted)
  const fileOf = (name: string) => path.join(folder, name)
  let lock: ReturnType<typeof takeLock> = null
  /** What this master has read or made, by the name of the file. */
  const secrets: Map<string, string> = new Map()
  let remembered: unknown = null
  let announced: Announcement | null = null
  const announcements = [...new Set([folder, ...fallbackFolders(wanted)])].map((each) => path.join(each, 'master.json'))

  return {
    historyFile: fileOf('history.db'),
    logFolder: fileOf('logs'),
    logFile: path.join(folder, 'logs', 'master.log'),
    crashFolder: fileOf('crashes'),
    compileCacheFolder: fileOf('compile-cache'),
    diagnosticsFolder: fileOf('diagnostics'),
    profileFolder: fileOf('profiles'),
    heapFolder: fileOf('heaps'),
    orderFolder: fileOf('orders'),
    sessionFolder: fileOf('sessions'),
    releaseFolder: fileOf('releases'),
    folder,
    /** Why this folder takes the place of the one that was wanted; null: it is that one. */
    away,

    /**
     * From here on no other master runs on this folder, until this one lets go of it or ends. It may be called twice.
     * @throws {DeckError} master-running, data-dir-unusable
     */
    lock () {
      if (lock) return
      try {
        lock = takeLock(fileOf('master.lock'))
      } catch (error) {
        throw error instanceof DeckError ? error : unusableFolder(folder, toError(error))
      }
      if (!lock) throw masterRunning(readJson(fileOf('master.json')))
    },

    /** Whether it is there still: whoever removes an old release may take it along. */
    isThere: () => existsSync(folder),

    /**
     * Makes it anew, with the secrets that it had.
     * @throws {DeckError} data-dir-unusable, master-running; and what the system says
     */
    restore () {
      makePrivate(folder, SECRETS)
      for (const [name, value] of secrets) writeSecret(fileOf(name), value)
      makeFolder(folder)
      lock?.release()
      lock = null
      this.lock()
      if (remembered !== null) writeJson(fileOf('memory.json'), remembered)
      // Where it cannot be announced, its history still goes on there.
      const master = announced
      if (master) attempt(() => this.announce(master))
    },

    /** `how`: the next master has announced itself, or is about to */
    release ({ handsOver }: { handsOver: boolean }) {
      // Another master has the folder, or this one has let go of it before.
      if (!lock) return
      if (!handsOver) announcements.forEach(withdrawAnnouncement)
      lock.release()
      lock = null
    },

    /** @returns the admin token, made when there is none */
    token: (): string => readOrMakeSecret('admin.token'),

    /**
     * @returns what digests of the workers' variables are made with: without it a short value could be guessed from one
     */
    releaseKey: (): string => readOrMakeSecret('release.key'),

    announce (master: Announcement) {
      announced = master
      const [own, ...others] = announcements
      try {
        writeJson(own, master)
        others.forEach(withdrawAnnouncement)
      } catch (error) {
        // Whoever looks for this master looks there too.
        withdrawAnnouncement(own)
        for (const other of others) {
          if (succeeds(() => {
            makePrivate(path.dirname(other), SECRETS)
            writeJson(other, master)
          })) return
        }
        throw error
      }
    },

    /** What runs of the app, where its master has no other app. */
    runs: { file: fileOf('runs.json'),
      read: (): unknown => readJson(newestOf(fileOf('runs.json'), path.join(wanted, 'runs.json'))) },

    memory: {
      /** @returns what the last master has left, wherever that was; null if it has ended as it should */
      read: (): unknown => readJson(newestOf(fileOf('memory.json'), path.join(wanted, 'memory.json'))),
      /** `content`: what the next master has to know if this one cannot end as it should */
      write (content: unknown) {
        remembered = content
        writeJson(fileOf('memory.json'), content)
      },
      clear () {
        remembered = null
        // What is left in a folder that cannot be written counts no more either.
        if (away) writeJson(fileOf('memory.json'), null)
        else rmSync(fileOf('memory.json'), { force: true })
      }
    }
  }

  /** Of a master that is gone, or was told of somewhere else. */
  function withdrawAnnouncement (announcement: string) {
    // Anybody can make a folder of that name in a place for all, or a link.
    if (!succeeds(() => checkTrusted(whyPathDistrusted(announcement)))) return
    attempt(() => rmSync(announcement, { force: true }))
    // ENOTEMPTY: more than that is kept there.
    if (path.dirname(announcement) !== folder) attempt(() => rmdirSync(path.dirname(announcement)))
  }

  /** @returns made when there is none */
  function readOrMakeSecret (name: string): string {
    try {
      // The secrets of a folder still count if it can only be read.
      const kept = away === null ? null : attempt(() => readToken(path.join(wanted, name)))
      const value = kept ?? readToken(fileOf(name)) ?? makeToken(fileOf(name))
      secrets.set(name, value)
      return value
    } catch (error) {
      throw unusableFolder(folder, toError(error))
    }
  }
}

/** `folder`: a data folder that is not opened @returns as `memory.read` */
export function readMemory (folder: string): unknown {
  return readJson(path.join(folder, 'memory.json'))
}

/** `folder`: a data folder that is not opened @returns as `runs.read` */
export function readRuns (folder: string): unknown {
  return readJson(path.join(folder, 'runs.json'))
}

function placeFolder (wanted: string): { folder: string, away: string | null } {
  try {
    makeFolder(wanted)
    return { folder: wanted, away: null }
  } catch (thrown) {
    if (thrown instanceof DeckError) throw thrown
    const error = toError(thrown)
    if (!isOutOfReach(error, wanted)) throw unusableFolder(wanted, error)
    const folder = fallbackFolders(wanted).find((each) => succeeds(() => makeFolder(each)))
    if (folder === undefined) throw unusableFolder(wanted, error)
    const away =
      `dataDir: ${wanted} cannot be written (${error.code}); until the next start everything is kept in ${folder}, and earlier history is not shown`
    return { folder, away }
  }
}

/** Whether it is the disk that takes nothing, and not a wrong path. */
function isOutOfReach ({ code = '' }: NodeJS.ErrnoException, folder: string) {
  return ['ENOSPC', 'EDQUOT', 'EROFS'].includes(code) || (['EACCES', 'EPERM'].includes(code) && existsSync(folder))
}

function makeFolder (folder: string) {
  const isOurs = makePrivate(folder, SECRETS) || path.basename(folder) === DEFAULT_NAME
  if (isOurs) attempt(() => keepOutOfRepositories(folder))
  for (const name of ['logs', 'crashes', 'orders', 'sessions']) makePrivate(path.join(folder, name), [])
  const token = path.join(folder, 'admin.token')
  if (readToken(token) === null) makeToken(token)
}

function keepOutOfRepositories (folder: string) {
  const file = path.join(folder, '.gitignore')
  // A full disk leaves an empty one.
  if (!statSync(file, { throwIfNoEntry: false })?.size) writeFileSync(file, IGNORED)
}

/**
 * What is in it says whose orders are obeyed, and which programs are run.
 * @param secrets names of files in it that nobody else may read
 * @returns whether nothing was in it
 * @throws {DeckError} data-dir-unusable: others could have written there, or put another folder in its place; and what
 * the system says
 */
function makePrivate (folder: string, secrets: readonly string[]): boolean {
  // Nothing is made where it is theirs to move, and nothing was put there meanwhile.
  checkTrusted(whyPathDistrusted(folder))
  makeFolders(folder, 0o700)
  checkTrusted(whyFolderDistrusted(folder, secrets))
  accessSync(folder, constants.W_OK)
  return readdirSync(folder).length === 0
}

/** `reason`: why a folder cannot be trusted; null: it can be @throws {DeckError} data-dir-unusable */
function checkTrusted (reason: string | null) {
  if (reason !== null)
    throw new DeckError('data-dir-unusable',
      `dataDir: expected a folder that only its user can write, but ${reason}; correct that, or choose another folder (--data-dir)`)
}

/** @returns the one that was written last */
function newestOf (...files: string[]): string {
  const writtenAt = (file: string) => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? -Infinity
  return files.reduce((best, file) => writtenAt(file) > writtenAt(best) ? file : best)
}

/** `announced`: what it has said of itself, if it has come that far */
function masterRunning (announced: unknown) {
  const { pid, adminUrl, host } = Object(announced)
  // While it takes over from a master that has died, it has not said anything yet.
  const who = typeof pid === 'number' && isAlive({ pid, startTime: null })
    ? `a master (pid ${pid}, ${adminUrl})`
    : 'another master'
  const isInHost = typeof host === 'string'
  return new DeckError('master-running',
    `${who} already runs on this data folder${isInHost ? ': this app is in the host now' : ''}`, {
    details: { isInHost }
  })
}

function readToken (file: string): string | null {
  return unless('ENOENT', () => readFileSync(file, 'utf8').trim() || null)
}

function makeToken (file: string) {
  const token = randomBytes(32).toString('base64url')
  writeSecret(file, token)
  return token
}

function writeSecret (file: string, value: string) {
  try {
    writeFileSync(file, `${value}\n`, { mode: 0o600 })
  } catch (error) {
    // On a full disk an empty one is left.
    rmSync(file, { force: true })
    throw error
  }
}

function unusableFolder (folder: string, error: NodeJS.ErrnoException) {
  return new DeckError('data-dir-unusable',
    `dataDir: expected a folder that can be written, received ${folder} (${errorReason(error)})`, { cause: error })
}
