import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { attempt, DeckError, errorReason, toError, unless } from '../errors.ts'
import { readJson, writeJson } from './json-file.ts'
import { makeFolders } from './make-folders.ts'
import { isAlive, type ProcessIdentity } from './process-identity.ts'
import { whyPathDistrusted } from './trust.ts'

/** A deck of this user on this machine, as its master has said it. */
export type RunningDeck = {
  /** several decks may have the same */
  name: string,
  entry: string,
  cwd: string,
  /** absolute, as configured: its token is there, and no other deck has it */
  dataDir: string,
  configFile: string | null,
  adminUrl: string,
  /** of its admin page, for people, where that is another one */
  publicUrl?: string | null,
  /** of its certificate */
  fingerprint: string | null,
  /** of clusterdeck */
  version: string,
  /** ISO 8601, of this master */
  startedAt: string,
  master: ProcessIdentity,
  keeper: ProcessIdentity | null
}

const MAX_BYTES = 64 * 1024
const OF_OTHERS = 0o077

/** What a file has to say of a deck. */
const FIELDS: Readonly<Record<keyof RunningDeck, (value: unknown) => boolean>> = Object.freeze({ name: isText,
  entry: isText, cwd: isText, dataDir: (value) => isText(value) && path.isAbsolute(value),
  configFile: (value) => value === null || isText(value), adminUrl: isAddress,
  publicUrl: (value) => (value ?? null) === null || isAddress(value),
  fingerprint: (value) => value === null || isText(value), version: isText,
  startedAt: (value) => isText(value) && !Number.isNaN(Date.parse(value)), master: isIdentity,
  keeper: (value) => value === null || isIdentity(value) })

/** Where all decks of this user are told of: a file each. @returns absolute */
export function runtimeFolder (env: Record<string, string | undefined> = process.env): string {
  if (env.CLUSTERDECK_RUNTIME_DIR) return path.resolve(env.CLUSTERDECK_RUNTIME_DIR)
  const own = process.geteuid?.() ?? 'user'
  // sudo and su pass on that of another user.
  const isOwn = env.XDG_RUNTIME_DIR && path.isAbsolute(env.XDG_RUNTIME_DIR) &&
    (statOf(env.XDG_RUNTIME_DIR)?.uid === own || own === 'user')
  return isOwn ? path.join(String(env.XDG_RUNTIME_DIR), 'clusterdeck') : path.join(tmpdir(), `clusterdeck-${own}`)
}

/**
 * Says that this deck runs, in place of what was said of its data folder before.
 * @throws {DeckError} runtime-dir-unusable
 */
export function registerDeck (deck: RunningDeck, env: Record<string, string | undefined> = process.env) {
  const folder = runtimeFolder(env)
  try {
    // Where it is a file, the check says so.
    unless('EEXIST', () => makeFolders(folder, 0o700))
    checkFolder(folder)
    writeJson(fileOf(folder, deck), deck)
  } catch (error) {
    throw error instanceof DeckError
      ? error
      : unusableFolder(`${folder}, which cannot be written (${errorReason(error)})`, error)
  }
}

/** Says no more that it runs, unless another master has taken its place. */
export function withdrawDeck (deck: Pick<RunningDeck, 'dataDir' | 'master'>,
  env: Record<string, string | undefined> = process.env)
{
  const file = fileOf(runtimeFolder(env), deck)
  const told = readDeck(file)
  if (told && isSame(told.master, deck.master)) removeFile(file)
}

/**
 * The decks of this user on this machine; those that have ended without a word are forgotten.
 * @returns by name
 * @throws {DeckError} runtime-dir-unusable: others could have said it
 */
export function runningDecks (env: Record<string, string | undefined> = process.env): RunningDeck[] {
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

/** `dataDir`: absolute. Returns the deck that lives there; null: none does, or nobody can be trusted to say so. */
export function runningDeckAt (dataDir: string, env: Record<string, string | undefined> = process.env):
  | RunningDeck
  | null
{
  // ENOENT: no deck has run yet.
  return attempt(() => {
    const folder = runtimeFolder(env)
    checkFolder(folder)
    const deck = readDeck(fileOf(folder, { dataDir }))
    return deck && isRunning(deck) ? deck : null
  })
}

/** @throws {DeckError} runtime-dir-unusable */
function filesOf (folder: string): string[] {
  try {
    checkFolder(folder)
    return readdirSync(folder).filter((name) => name.endsWith('.json')).map((name) => path.join(folder, name))
  } catch (error) {
    // No deck has run yet.
    if (toError(error).code === 'ENOENT') return []
    throw error instanceof DeckError
      ? error
      : unusableFolder(`${folder}, which cannot be read (${errorReason(error)})`, error)
  }
}

/**
 * Whoever can write there says to which programs this user's commands talk.
 * @throws {DeckError} runtime-dir-unusable; and what the system says
 */
function checkFolder (folder: string) {
  const stat = lstatSync(folder)
  if (!stat.isDirectory()) throw unusableFolder(`${folder}, which is none`)
  const own = process.geteuid?.()
  if (own === undefined) return
  if (stat.uid !== own)
    throw unusableFolder(`${folder}, which belongs to another user (uid ${stat.uid}, this process has ${own})`)
  if (stat.mode & OF_OTHERS)
    throw unusableFolder(
      `${folder}, which is open to others (mode ${(stat.mode & 0o7777).toString(8).padStart(4, '0')}, expected 0700)`
    )
  const reason = whyPathDistrusted(folder)
  if (reason !== null) throw unusableFolder(`${folder}, but ${reason}`)
}

function unusableFolder (received: string, cause?: unknown) {
  return new DeckError('runtime-dir-unusable',
    `CLUSTERDECK_RUNTIME_DIR: expected a folder of this user alone, received ${received}`, { cause })
}

function fileOf (folder: string, { dataDir }: Pick<RunningDeck, 'dataDir'>) {
  // ENOENT: on a disk that takes nothing it is not there.
  const real = attempt(() => realpathSync(dataDir), path.resolve(dataDir))
  return path.join(folder, `${createHash('sha256').update(real).digest('hex').slice(0, 16)}.json`)
}

/** Null: nothing that a master has written */
function readDeck (file: string): RunningDeck | null {
  const stat = statOf(file)
  const deck = stat?.isFile() && stat.size <= MAX_BYTES ? readJson(file) : null
  return isRunningDeck(deck) ? deck : null
}

function isRunningDeck (deck: unknown): deck is RunningDeck {
  return typeof deck === 'object' && deck !== null &&
    Object.entries(FIELDS).every(([name, isFine]) => isFine(Reflect.get(deck, name)))
}

function statOf (file: string) {
  // ENOENT, EACCES.
  return attempt(() => statSync(file))
}

function removeFile (file: string) {
  // EROFS: it is left out all the same.
  attempt(() => rmSync(file, { force: true }))
}

function isRunning ({ master, keeper }: RunningDeck) {
  return isAlive(master) || (keeper !== null && isAlive(keeper))
}

function isSame (one: ProcessIdentity, other: ProcessIdentity) {
  return one.pid === other.pid && one.startTime === other.startTime
}

function isText (value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

function isAddress (value: unknown) {
  return isText(value) && /^https?:\/\//.test(value) && URL.canParse(value)
}

function isIdentity (value: unknown) {
  const { pid, startTime } = Object(value)
  return Number.isSafeInteger(pid) && pid > 0 && (startTime === null || isText(startTime))
}

function compareText (one: string, other: string) {
  return one < other ? -1 : one > other ? 1 : 0
}
