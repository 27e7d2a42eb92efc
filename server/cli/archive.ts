import { createHash, randomUUID, type Hash } from 'node:crypto'
import { constants, existsSync, type Stats } from 'node:fs'
import { lstat, open, readFile, readdir, readlink, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import ignore from 'ignore'
import { formatBytes } from '../../public/format.ts'
import { DeckError, errorText } from '../errors.ts'
import { ARCHIVE, leadsInside, tameMode, whyNoName, type ArchiveLimits } from '../system/archive.ts'
import { misuse } from './usage.ts'
import type { FileHandle } from 'node:fs/promises'
import type { Ignore } from 'ignore'

/**
 * A folder as one file, to be sent: a gzipped tar archive. Equal folders make equal archives: names are sorted, and
 * nothing tells who packed it and where. Modification times are kept, as an app may answer with them (ETag,
 * Last-Modified).
 */
export type Archive = {
  /** `sha256:` and 64 hex digits */
  digest: string,
  bytes: number,
  entries: number,
  unpackedBytes: number,
  leftOut: LeftOut[],
  read: (onRead?: (bytes: number) => void) => Readable,
  close: () => Promise<void>
}
/** `canBeAskedFor`: it is sent if `also` names it */
export type LeftOut = { name: string, why: string, canBeAskedFor: boolean }
/** `name`: with slashes; `target`: of a link */
type Entry = { name: string, stat: Stats, target: string | null }

const READ_BYTES = 64 * 1024
const LEFT_OUT = new Set(['.git', '.clusterdeck'])
const ENV_FILE = /^\.env(rc|~|\..+)?$|\.env$/i
/** Packages are sent, as an app does not run without them. `.gitignore` files in them belong to other repositories. */
const PACKAGES = 'node_modules'
const KEY_STORE = /\.(p12|pfx|jks|keystore|ppk|kdbx)$/i
/** The files that may hold a secret, and the text that shows it. */
const SECRETS = [
  // A key may have any name. It is at the beginning of its file; elsewhere the text may be part of a program.
  { name: /^/, text: /^\s*-----BEGIN [A-Z ]*PRIVATE KEY-----/, why: 'a private key' },
  { name: /\.json$/i, text: /"private_key"\s*:\s*"-----BEGIN/, why: 'a private key' },
  { name: /^id_[^.]+$|\.(pem|key|creds)$/i, text: /PRIVATE KEY-----|NKEY SEED-----/, why: 'a private key' },
  // A file that names a variable instead of a value holds no token.
  { name: /^\.npmrc/, text: /_(auth|authToken|password)\s*=\s*["']?[^\s"'$]/, why: 'a token' },
  { name: /^\.yarnrc\.yml$/, text: /npmAuth(Token|Ident)["']?\s*:\s*["']?[^\s"'$]/, why: 'a token' },
  { name: /^[._]netrc$/, text: /\bpassword\s/, why: 'a password' },
  { name: /^\.pgpass$/, text: /^[^#\n]*:[^:\n]+$/m, why: 'a password' },
  { name: /^\.git-credentials$/, text: /:\/\/[^/\s]*:[^/\s]*@/, why: 'a password' },
  { name: /^credentials$/, text: /^\s*aws_secret_access_key\s*=/m, why: 'a token' },
  // Docker keeps its logins in `config.json`, and earlier in `.dockercfg`.
  { name: /^(config\.json|\.dockercfg)$/, text: /"auth"\s*:\s*"[^"]/, why: 'a token' }
]
const SECRET_BYTES = 64 * 1024
/** The beginning of a key fits into this. */
const KEY_BYTES = 128
const REMOVED_CODES = new Set(['ENOENT', 'ENOTDIR'])

/**
 * Packs a folder into a file without a name, so that nothing is left of it when this process ends. `options`: `also`:
 * patterns as in a `.gitignore`, of `.env` files and ignored files that are sent all the same.
 * @throws {DeckError} usage: the folder cannot be packed, or a pattern of `also` matches nothing
 */
export async function packFolder (folder: string,
  { limits = ARCHIVE, also = [] }: { limits?: ArchiveLimits, also?: string[] } = {}): Promise<Archive>
{
  const top = await topOf(folder)
  const { entries, unpackedBytes, leftOut } = await listEntries(top, { limits, also })
  if (entries.length === 0) throw refusePacking(folder, 'it is empty')
  const file = path.join(tmpdir(), `clusterdeck-${randomUUID()}.tgz`)
  const handle = await open(file, 'wx+', 0o600)
  await rm(file)
  try {
    const hash = createHash('sha256')
    const counter = { bytes: 0 }
    await pipeline(await packEntries(top, entries), createGzip(), createMeter(hash, counter, folder, limits),
      (packed) => writeFile(handle, packed))
    return { digest: `sha256:${hash.digest('hex')}`, bytes: counter.bytes, entries: entries.length, unpackedBytes,
      leftOut, read: (onRead = () => {}) => Readable.from(bytesOf(handle, onRead), { objectMode: false }), close: () =>
        handle.close() }
  } catch (error) {
    await handle.close()
    throw error instanceof DeckError ? error : refusePacking(folder, errorText(error))
  }
}

/** Reads from the beginning. A stream of the file would close it at the end. */
async function* bytesOf (handle: FileHandle, onRead: (bytes: number) => void) {
  for (let position = 0;;) {
    const { bytesRead, buffer } = await handle.read({ buffer: Buffer.allocUnsafe(READ_BYTES), position })
    if (bytesRead === 0) return
    position += bytesRead
    onRead(bytesRead)
    yield buffer.subarray(0, bytesRead)
  }
}

/**
 * Returns its real path
 * @throws {DeckError} usage
 */
async function topOf (folder: string): Promise<string> {
  const top = await realpath(folder).catch(() => null)
  if (top === null || !(await stat(top)).isDirectory()) throw misuse('--push', 'a folder', `${folder}, which is none`)
  return top
}

/** @returns folders before what is in them */
async function listEntries (top: string,
  { limits, also }: { limits: ArchiveLimits, also: string[] }
): Promise<{ entries: Entry[], unpackedBytes: number, leftOut: LeftOut[] }> {
  const entries: Entry[] = []
  const leftOut: LeftOut[] = []
  let unpackedBytes = 0
  const names = await readdir(top)
  if (isDataFolder(names)) throw refusePacking(top, 'it is a data folder, whose token opens this deck')
  const asked = createAsked(also)
  await addAll('', names, await ignoredAbove(top))
  const missing = asked.unseen()
  if (missing.length > 0) {
    const received = `${missing.join(', ')}, which ${missing.length === 1 ? 'matches' : 'match'} none`
    throw misuse('--push-also', `names of files that would be left out of ${top}`, received)
  }
  return { entries, unpackedBytes, leftOut }

  /** `names`: of what is in it; `ignored`: null: below packages */
  async function addAll (folder: string, names: string[], ignored: Ignored | null) {
    const file = path.join(top, folder)
    const here = ignored && names.includes('.gitignore') ? ignored.with(file, await readIgnoreFile(file)) : ignored
    for (const name of names.sort()) {
      const place = folder === '' ? name : `${folder}/${name}`
      if (LEFT_OUT.has(name)) {
        leftOut.push({ name: place, why: 'never sent', canBeAskedFor: false })
        continue
      }
      const entry = await findEntry(top, place, limits)
      if (entry === null) continue
      const inside = entry.stat.isDirectory() ? await readdir(path.join(top, place)) : []
      const secret = await whyNeverSent(path.join(top, place), entry, inside)
      const why = secret ?? whyOnlyAsked(path.join(top, place), entry, here)
      const isAsked = secret === null && why !== null && asked.has(place, entry.stat.isDirectory())
      if (why !== null && !isAsked) {
        leftOut.push({ name: place, why, canBeAskedFor: secret === null })
        continue
      }
      entries.push(entry)
      unpackedBytes += entry.stat.isFile() ? entry.stat.size : 0
      if (entries.length > limits.maxEntries)
        throw refusePacking(top, `it has more than ${limits.maxEntries} files and folders`)
      if (unpackedBytes > limits.maxUnpackedBytes)
        throw refusePacking(top, `its files are larger than ${formatBytes(limits.maxUnpackedBytes)} together`)
      // In a folder that `also` names, ignored files are sent too.
      if (entry.stat.isDirectory()) await addAll(entry.name, inside, name === PACKAGES || isAsked ? null : here)
    }
  }
}

/** A data folder may have any name, but its master has put these files into it. `names`: in the folder. */
function isDataFolder (names: string[]) {
  return names.includes('admin.token') || names.includes('release.key') ||
    (names.includes('master.lock') && names.includes('history.db'))
}

/** Secrets of this machine must not reach other hosts, or the NATS servers between. */
async function whyNeverSent (file: string, { stat }: Entry, inside: string[]): Promise<string | null> {
  const name = path.basename(file)
  if (isDataFolder(inside)) return 'a data folder'
  if (!stat.isFile()) return null
  if (KEY_STORE.test(name)) return 'a private key'
  const wanted = SECRETS.filter((each) => each.name.test(name))
  const text = stat.size === 0
    ? ''
    : await beginningOf(file, wanted.length > 1 ? SECRET_BYTES : KEY_BYTES).catch(unlessRemoved)
  return wanted.find((each) => each.text.test(text))?.why ?? null
}

function whyOnlyAsked (file: string, { stat }: Entry, ignored: Ignored | null) {
  const name = path.basename(file)
  if (ENV_FILE.test(name) && !stat.isDirectory()) return 'variables'
  return name !== PACKAGES && ignored?.names(file, stat.isDirectory()) ? 'in .gitignore' : null
}

/** @returns no text, where the file has just been removed */
function unlessRemoved (error: NodeJS.ErrnoException): string {
  if (REMOVED_CODES.has(String(error.code))) return ''
  throw error
}

async function beginningOf (file: string, bytes: number) {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(bytes), position: 0 })
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await handle.close()
  }
}

type Ignored = { with: (folder: string, text: string) => Ignored, names: (file: string, isFolder: boolean) => boolean }

/**
 * Matches files against the `.gitignore` files of their folder and of those above. An inner one overrides an outer one.
 */
function createIgnored (files: { folder: string, rules: Ignore }[]): Ignored {
  return { with: (folder, text) => createIgnored([...files, { folder, rules: ignore().add(text) }]),
    names (file, isFolder) {
      let isNamed = false
      for (const { folder, rules } of files) {
        const { ignored, unignored } = rules.test(path.relative(folder, file) + (isFolder ? '/' : ''))
        if (ignored || unignored) isNamed = ignored
      }
      return isNamed
    } }
}

/** Reads the `.gitignore` files of the folders above, up to the root of the repository. */
async function ignoredAbove (top: string) {
  const folders: string[] = []
  for (let folder = top;; folder = path.dirname(folder)) {
    if (folder !== top) folders.unshift(folder)
    if (existsSync(path.join(folder, '.git'))) break
    if (folder === path.dirname(folder)) return createIgnored([])
  }
  let found = createIgnored([])
  for (const folder of folders) found = found.with(folder, await readIgnoreFile(folder))
  // A build folder is often ignored; the pushed folder itself is sent all the same.
  return found.names(top, true) ? createIgnored([]) : found
}

async function readIgnoreFile (folder: string) {
  return readFile(path.join(folder, '.gitignore'), 'utf8').catch(() => '')
}

/** Remembers which patterns of `--push-also` have matched something. `also`: as in a `.gitignore`. */
function createAsked (also: string[]) {
  const patterns = also.map((pattern) => ({ pattern, rules: ignore().add(pattern), isSeen: false }))
  return { has (place: string, isFolder: boolean) {
    const parent = path.posix.dirname(place)
    // A pattern that names a folder does not ask for the `.env` files in it.
    const found = patterns.filter(({ rules }) =>
      rules.ignores(place + (isFolder ? '/' : '')) && (parent === '.' || !rules.ignores(`${parent}/`))
    )
    for (const each of found) each.isSeen = true
    return found.length > 0
  }, unseen: () => patterns.filter(({ isSeen }) => !isSeen).map(({ pattern }) => pattern) }
}

/** Null: it has just been removed */
async function findEntry (top: string, name: string, limits: ArchiveLimits): Promise<Entry | null> {
  const reason = whyNoName(name, limits)
  if (reason) throw refusePacking(top, `${JSON.stringify(name)}: ${reason}`)
  const file = path.join(top, name)
  const found = await lstat(file).catch((error) => {
    if (REMOVED_CODES.has(error.code)) return null
    throw error
  })
  if (found === null) return null
  if (found.isSymbolicLink()) return { name, stat: found, target: await targetOf(top, name) }
  if (found.isDirectory() || found.isFile()) return { name, stat: asPacked(found), target: null }
  throw refusePacking(top, `${JSON.stringify(name)} is not a file, a folder or a symbolic link`)
}

/** A file with several names becomes several files, as no host unpacks hard links. */
function asPacked (stat: Stats) {
  return Object.assign(stat, { nlink: 1,
    mode: (stat.mode & constants.S_IFMT) | tameMode(stat.mode, stat.isDirectory()) })
}

/** Makes an absolute target relative, as the folder has another path on each host. */
async function targetOf (top: string, name: string): Promise<string> {
  const at = path.dirname(path.join(top, name))
  const written = await readlink(path.join(top, name))
  const target = path.isAbsolute(written)
    ? path.relative(at, await realpath(written).catch(() => written)) || '.'
    : written
  if (leadsInside(name, target)) return target
  throw refusePacking(top, `${JSON.stringify(name)} is a link that leaves it: ${JSON.stringify(written)}`)
}

async function packEntries (top: string, entries: Entry[]): Promise<Readable> {
  // It takes longer to load than most commands take to run.
  const { Pack } = await import('tar')
  const byName = new Map(entries.map((entry) => [entry.name, entry]))
  const pack = new Pack({ cwd: top, portable: true, strict: true, noDirRecurse: true,
    statCache: new Map(entries.map(({ name, stat }) => [path.join(top, name), stat])), onWriteEntry (entry) {
    if (entry.type === 'SymbolicLink') entry.linkpath = byName.get(entry.path)?.target ?? undefined
  } })
  for (const { name } of entries) pack.add(name)
  pack.end()
  return Readable.from(pack)
}

function createMeter (hash: Hash, counter: { bytes: number }, folder: string, { maxBytes }: ArchiveLimits) {
  return new Transform({ transform (chunk, _, done) {
    counter.bytes += chunk.length
    hash.update(chunk)
    done(counter.bytes > maxBytes ? refusePacking(folder, `packed, it is larger than ${formatBytes(maxBytes)}`) : null,
      chunk)
  } })
}

function refusePacking (folder: string, why: string) {
  return misuse('--push', 'a folder that can be packed', `${folder}: ${why}`)
}
