import { createHash, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, readFile, readdir, readlink, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import ignore from 'ignore'
import { formatBytes } from '../../public/format.js'
import { DeckError, errorText } from '../errors.js'
import { ARCHIVE, leadsInside, tameMode, whyNoName } from '../system/archive.js'

/**
 * A folder as one file, to be sent: a gzipped tar archive. Equal folders make equal archives: names are sorted, and nothing
 * tells who packed it and where. Modification times are kept, as an app may answer with them (ETag, Last-Modified).
 * @typedef {object} Archive
 * @property {string} digest `sha256:` and 64 hex digits
 * @property {number} bytes
 * @property {number} entries
 * @property {number} unpackedBytes
 * @property {LeftOut[]} leftOut
 * @property {(onRead?: (bytes: number) => void) => Readable} read
 * @property {() => Promise<void>} close
 *
 * @typedef {{ name: string, why: string, canBeAskedFor: boolean }} LeftOut `canBeAskedFor`: it is sent if `also` names it
 * @typedef {{ name: string, stat: import('node:fs').Stats, target: string | null }} Entry `name`: with slashes; `target`: of a link
 * @typedef {import('../system/archive.js').ArchiveLimits} ArchiveLimits
 */

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
 * Packs a folder into a file without a name, so that nothing is left of it when this process ends.
 * @param {string} folder
 * @param {{ limits?: ArchiveLimits, also?: string[] }} [options]
 *   `also`: patterns as in a `.gitignore`, of `.env` files and ignored files that are sent all the same
 * @returns {Promise<Archive>}
 * @throws {DeckError} usage: the folder cannot be packed, or a pattern of `also` matches nothing
 */
export async function packFolder (folder, { limits = ARCHIVE, also = [] } = {}) {
  const top = await topOf(folder)
  const { entries, unpackedBytes, leftOut } = await listEntries(top, { limits, also })
  if (entries.length === 0) throw refusePacking(folder, 'it is empty')
  const file = path.join(tmpdir(), `clusterdeck-${randomUUID()}.tgz`)
  const handle = await open(file, 'wx+', 0o600)
  await rm(file)
  try {
    const hash = createHash('sha256')
    const counter = { bytes: 0 }
    await pipeline(await packEntries(top, entries), createGzip(), createMeter(hash, counter, folder, limits), (packed) => writeFile(handle, packed))
    return {
      digest: `sha256:${hash.digest('hex')}`,
      bytes: counter.bytes,
      entries: entries.length,
      unpackedBytes,
      leftOut,
      read: (onRead = () => {}) => Readable.from(bytesOf(handle, onRead), { objectMode: false }),
      close: () => handle.close()
    }
  } catch (error) {
    await handle.close()
    throw error instanceof DeckError ? error : refusePacking(folder, errorText(error))
  }
}

/**
 * Reads from the beginning. A stream of the file would close it at the end.
 * @param {import('node:fs/promises').FileHandle} handle @param {(bytes: number) => void} onRead
 */
async function * bytesOf (handle, onRead) {
  for (let position = 0; ;) {
    const { bytesRead, buffer } = await handle.read({ buffer: Buffer.allocUnsafe(READ_BYTES), position })
    if (bytesRead === 0) return
    position += bytesRead
    onRead(bytesRead)
    yield buffer.subarray(0, bytesRead)
  }
}

/** @param {string} folder @returns {Promise<string>} its real path @throws {DeckError} usage */
async function topOf (folder) {
  const top = await realpath(folder).catch(() => null)
  if (top === null || !(await stat(top)).isDirectory()) throw new DeckError('usage', `--push: expected a folder, received ${folder}, which is none`)
  return top
}

/**
 * @param {string} top
 * @param {{ limits: ArchiveLimits, also: string[] }} options
 * @returns {Promise<{ entries: Entry[], unpackedBytes: number, leftOut: LeftOut[] }>} folders before what is in them
 */
async function listEntries (top, { limits, also }) {
  /** @type {Entry[]} */
  const entries = []
  /** @type {LeftOut[]} */
  const leftOut = []
  let unpackedBytes = 0
  const names = await readdir(top)
  if (isDataFolder(names)) throw refusePacking(top, 'it is a data folder, whose token opens this deck')
  const asked = createAsked(also)
  await addAll('', names, await ignoredAbove(top))
  const missing = asked.unseen()
  if (missing.length > 0) {
    const received = `${missing.join(', ')}, which ${missing.length === 1 ? 'matches' : 'match'} none`
    throw new DeckError('usage', `--push-also: expected names of files that would be left out of ${top}, received ${received}`)
  }
  return { entries, unpackedBytes, leftOut }

  /** @param {string} folder @param {string[]} names of what is in it @param {Ignored | null} ignored null: below packages */
  async function addAll (folder, names, ignored) {
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
      if (entries.length > limits.maxEntries) throw refusePacking(top, `it has more than ${limits.maxEntries} files and folders`)
      if (unpackedBytes > limits.maxUnpackedBytes) throw refusePacking(top, `its files are larger than ${formatBytes(limits.maxUnpackedBytes)} together`)
      // In a folder that `also` names, ignored files are sent too.
      if (entry.stat.isDirectory()) await addAll(entry.name, inside, name === PACKAGES || isAsked ? null : here)
    }
  }
}

/** A data folder may have any name, but its master has put these files into it. @param {string[]} names in the folder */
function isDataFolder (names) {
  return names.includes('admin.token') || names.includes('release.key') || (names.includes('master.lock') && names.includes('history.db'))
}

/**
 * Secrets of this machine must not reach other hosts, or the NATS servers between.
 * @param {string} file @param {Entry} entry @param {string[]} inside
 * @returns {Promise<string | null>}
 */
async function whyNeverSent (file, { stat }, inside) {
  const name = path.basename(file)
  if (isDataFolder(inside)) return 'a data folder'
  if (!stat.isFile()) return null
  if (KEY_STORE.test(name)) return 'a private key'
  const wanted = SECRETS.filter((each) => each.name.test(name))
  const text = stat.size === 0 ? '' : await beginningOf(file, wanted.length > 1 ? SECRET_BYTES : KEY_BYTES).catch(unlessRemoved)
  return wanted.find((each) => each.text.test(text))?.why ?? null
}

/** @param {string} file @param {Entry} entry @param {Ignored | null} ignored */
function whyOnlyAsked (file, { stat }, ignored) {
  const name = path.basename(file)
  if (ENV_FILE.test(name) && !stat.isDirectory()) return 'variables'
  return name !== PACKAGES && ignored?.names(file, stat.isDirectory()) ? 'in .gitignore' : null
}

/** @param {NodeJS.ErrnoException} error @returns {string} no text, where the file has just been removed */
function unlessRemoved (error) {
  if (REMOVED_CODES.has(String(error.code))) return ''
  throw error
}

/** @param {string} file @param {number} bytes */
async function beginningOf (file, bytes) {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(bytes), position: 0 })
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await handle.close()
  }
}

/**
 * Matches files against the `.gitignore` files of their folder and of those above. An inner one overrides an outer one.
 * @typedef {{ with: (folder: string, text: string) => Ignored, names: (file: string, isFolder: boolean) => boolean }} Ignored
 * @param {{ folder: string, rules: import('ignore').Ignore }[]} files @returns {Ignored}
 */
function createIgnored (files) {
  return {
    with: (folder, text) => createIgnored([...files, { folder, rules: ignore().add(text) }]),
    names (file, isFolder) {
      let isNamed = false
      for (const { folder, rules } of files) {
        const { ignored, unignored } = rules.test(path.relative(folder, file) + (isFolder ? '/' : ''))
        if (ignored || unignored) isNamed = ignored
      }
      return isNamed
    }
  }
}

/** Reads the `.gitignore` files of the folders above, up to the root of the repository. @param {string} top */
async function ignoredAbove (top) {
  /** @type {string[]} */
  const folders = []
  for (let folder = top; ; folder = path.dirname(folder)) {
    if (folder !== top) folders.unshift(folder)
    if (await doesExist(path.join(folder, '.git'))) break
    if (folder === path.dirname(folder)) return createIgnored([])
  }
  let found = createIgnored([])
  for (const folder of folders) found = found.with(folder, await readIgnoreFile(folder))
  // A build folder is often ignored; the pushed folder itself is sent all the same.
  return found.names(top, true) ? createIgnored([]) : found
}

/** @param {string} folder */
async function readIgnoreFile (folder) {
  return readFile(path.join(folder, '.gitignore'), 'utf8').catch(() => '')
}

/** @param {string} file */
async function doesExist (file) {
  return await lstat(file).catch(() => null) !== null
}

/** Remembers which patterns of `--push-also` have matched something. @param {string[]} also as in a `.gitignore` */
function createAsked (also) {
  const patterns = also.map((pattern) => ({ pattern, rules: ignore().add(pattern), isSeen: false }))
  return {
    /** @param {string} place @param {boolean} isFolder */
    has (place, isFolder) {
      const parent = path.posix.dirname(place)
      // A pattern that names a folder does not ask for the `.env` files in it.
      const found = patterns.filter(({ rules }) => rules.ignores(place + (isFolder ? '/' : '')) && (parent === '.' || !rules.ignores(`${parent}/`)))
      for (const each of found) each.isSeen = true
      return found.length > 0
    },
    unseen: () => patterns.filter(({ isSeen }) => !isSeen).map(({ pattern }) => pattern)
  }
}

/** @param {string} top @param {string} name @param {ArchiveLimits} limits @returns {Promise<Entry | null>} null: it has just been removed */
async function findEntry (top, name, limits) {
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

/** A file with several names becomes several files, as no host unpacks hard links. @param {import('node:fs').Stats} stat */
function asPacked (stat) {
  return Object.assign(stat, { nlink: 1, mode: (stat.mode & constants.S_IFMT) | tameMode(stat.mode, stat.isDirectory()) })
}

/** Makes an absolute target relative, as the folder has another path on each host. @param {string} top @param {string} name @returns {Promise<string>} */
async function targetOf (top, name) {
  const at = path.dirname(path.join(top, name))
  const written = await readlink(path.join(top, name))
  const target = path.isAbsolute(written) ? path.relative(at, await realpath(written).catch(() => written)) || '.' : written
  if (leadsInside(name, target)) return target
  throw refusePacking(top, `${JSON.stringify(name)} is a link that leaves it: ${JSON.stringify(written)}`)
}

/** @param {string} top @param {Entry[]} entries @returns {Promise<Readable>} */
async function packEntries (top, entries) {
  // It takes longer to load than most commands take to run.
  const { Pack } = await import('tar')
  const byName = new Map(entries.map((entry) => [entry.name, entry]))
  const pack = new Pack({
    cwd: top,
    portable: true,
    strict: true,
    noDirRecurse: true,
    statCache: new Map(entries.map(({ name, stat }) => [path.join(top, name), stat])),
    onWriteEntry (entry) {
      if (entry.type === 'SymbolicLink') entry.linkpath = byName.get(entry.path)?.target ?? undefined
    }
  })
  for (const { name } of entries) pack.add(name)
  pack.end()
  return Readable.from(pack)
}

/** @param {import('node:crypto').Hash} hash @param {{ bytes: number }} counter @param {string} folder @param {ArchiveLimits} limits */
function createMeter (hash, counter, folder, { maxBytes }) {
  return new Transform({
    transform (chunk, _, done) {
      counter.bytes += chunk.length
      hash.update(chunk)
      done(counter.bytes > maxBytes ? refusePacking(folder, `packed, it is larger than ${formatBytes(maxBytes)}`) : null, chunk)
    }
  })
}

/** @param {string} folder @param {string} why */
function refusePacking (folder, why) {
  return new DeckError('usage', `--push: expected a folder that can be packed, received ${folder}: ${why}`)
}
