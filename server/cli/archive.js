import { createHash, randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, readdir, readlink, realpath, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { formatBytes } from '../../public/format.js'
import { DeckError } from '../errors.js'
import { ARCHIVE, leadsInside, tameMode, whyNoName } from '../system/archive.js'

/**
 * A folder as one file, to be sent: a tar archive by gzip. Equal folders make equal archives: names in order, nothing of
 * who packs it and where. Times of change are kept, since answers of the app may be told apart by them.
 * @typedef {{ digest: string, bytes: number, entries: number, unpackedBytes: number, leftOut: LeftOut[], read: () => Readable, close: () => Promise<void> }} Archive `digest`: `sha256:` and 64 hex digits
 * @typedef {{ name: string, why: string }} LeftOut
 * @typedef {{ name: string, stat: import('node:fs').Stats, target: string | null }} Entry `name`: with slashes; `target`: of a link
 */

const READ_BYTES = 64 * 1024
const LEFT_OUT = new Set(['.git', '.clusterdeck'])
const ENV_FILE = /^\.env(\..+)?$/
/** What may hold a private key; whether it does is read. */
const KEY_FILE = /^id_[^.]+$|\.(pem|key|creds)$/i
const PRIVATE = /PRIVATE KEY-----|NKEY SEED-----/
const KEY_BYTES = 64 * 1024
export const ENV_REASON = 'variables'
const NOT_KEPT = new Set(['ENOENT', 'ENOTDIR'])

/**
 * @param {string} folder
 * @param {{ limits?: import('../system/archive.js').ArchiveLimits, withEnvFiles?: boolean }} [options]
 * @returns {Promise<Archive>} on the disk, without a name: whatever ends this process, nothing is left of it
 * @throws {DeckError} usage: it cannot be packed
 */
export async function packFolder (folder, { limits = ARCHIVE, withEnvFiles = false } = {}) {
  const top = await topOf(folder)
  const { entries, unpackedBytes, leftOut } = await listEntries(top, { limits, withEnvFiles })
  if (entries.length === 0) throw refused(folder, 'it is empty')
  const file = path.join(tmpdir(), `clusterdeck-${randomUUID()}.tgz`)
  const handle = await open(file, 'wx+', 0o600)
  await rm(file)
  try {
    const hash = createHash('sha256')
    const counter = { bytes: 0 }
    await pipeline(await packEntries(top, entries), createGzip(), measure(hash, counter, folder, limits), (/** @type {any} an iterable, which the types do not know yet */ packed) => handle.writeFile(packed))
    return {
      digest: `sha256:${hash.digest('hex')}`,
      bytes: counter.bytes,
      entries: entries.length,
      unpackedBytes,
      leftOut,
      read: () => Readable.from(bytesOf(handle), { objectMode: false }),
      close: () => handle.close()
    }
  } catch (/** @type {any} */ error) {
    await handle.close()
    throw error instanceof DeckError ? error : refused(folder, error.message)
  }
}

/** From its beginning; a stream would close the file with itself. @param {import('node:fs/promises').FileHandle} handle */
async function * bytesOf (handle) {
  for (let position = 0; ;) {
    const { bytesRead, buffer } = await handle.read({ buffer: Buffer.allocUnsafe(READ_BYTES), position })
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** @param {string} folder @returns {Promise<string>} its real path @throws {DeckError} usage */
async function topOf (folder) {
  const top = await realpath(folder).catch(() => null)
  if (top === null || !(await stat(top)).isDirectory()) throw new DeckError('usage', `--push: expected a folder, received ${folder}, which is none`)
  return top
}

/** @param {string} top @param {{ limits: import('../system/archive.js').ArchiveLimits, withEnvFiles: boolean }} options @returns {Promise<{ entries: Entry[], unpackedBytes: number, leftOut: LeftOut[] }>} folders before what is in them */
async function listEntries (top, { limits, withEnvFiles }) {
  /** @type {Entry[]} */
  const entries = []
  /** @type {LeftOut[]} */
  const leftOut = []
  let unpackedBytes = 0
  const names = await readdir(top)
  if (isDataFolder(names)) throw refused(top, 'it is a data folder, whose token opens this deck')
  await addAll('', names)
  return { entries, unpackedBytes, leftOut }

  /** @param {string} folder @param {string[]} names of what is in it */
  async function addAll (folder, names) {
    for (const name of names.sort()) {
      const place = folder === '' ? name : `${folder}/${name}`
      if (LEFT_OUT.has(name)) {
        leftOut.push({ name: place, why: 'never sent' })
        continue
      }
      const entry = await look(top, place, limits)
      if (entry === null) continue
      const inside = entry.stat.isDirectory() ? await readdir(path.join(top, place)) : []
      const why = await whyNotSent(path.join(top, place), entry, { inside, withEnvFiles })
      if (why !== null) {
        leftOut.push({ name: place, why })
        continue
      }
      entries.push(entry)
      unpackedBytes += entry.stat.isFile() ? entry.stat.size : 0
      if (entries.length > limits.maxEntries) throw refused(top, `there are more than ${limits.maxEntries} files and folders in it`)
      if (unpackedBytes > limits.maxUnpackedBytes) throw refused(top, `its files are larger than ${formatBytes(limits.maxUnpackedBytes)} together`)
      if (entry.stat.isDirectory()) await addAll(entry.name, inside)
    }
  }
}

/** By whatever name, as its master has made it. @param {string[]} names of what is in a folder */
function isDataFolder (names) {
  return names.includes('admin.token') || names.includes('release.key') || (names.includes('master.lock') && names.includes('history.db'))
}

/**
 * What is a secret of the machine where it is packed is not for all hosts, and not for the servers between.
 * @param {string} file @param {Entry} entry @param {{ inside: string[], withEnvFiles: boolean }} options
 * @returns {Promise<string | null>}
 */
async function whyNotSent (file, { stat }, { inside, withEnvFiles }) {
  const name = path.basename(file)
  if (isDataFolder(inside)) return 'a data folder'
  if (!withEnvFiles && ENV_FILE.test(name) && !stat.isDirectory()) return ENV_REASON
  if (stat.isFile() && KEY_FILE.test(name) && await isPrivateKey(file)) return 'a private key'
  return null
}

/** @param {string} file */
async function isPrivateKey (file) {
  const handle = await open(file)
  try {
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(KEY_BYTES), position: 0 })
    return PRIVATE.test(buffer.toString('latin1', 0, bytesRead))
  } finally {
    await handle.close()
  }
}

/** @param {string} top @param {string} name @param {import('../system/archive.js').ArchiveLimits} limits @returns {Promise<Entry | null>} null: it has just been removed */
async function look (top, name, limits) {
  const reason = whyNoName(name, limits)
  if (reason) throw refused(top, `${JSON.stringify(name)}: ${reason}`)
  const file = path.join(top, name)
  const found = await lstat(file).catch((error) => {
    if (NOT_KEPT.has(error.code)) return null
    throw error
  })
  if (found === null) return null
  if (found.isSymbolicLink()) return { name, stat: found, target: await targetOf(top, name) }
  if (found.isDirectory() || found.isFile()) return { name, stat: asPacked(found), target: null }
  throw refused(top, `${JSON.stringify(name)} is neither a file nor a folder nor a symbolic link`)
}

/** Of a file that has several names, each is one of its own: no host unpacks hard links. @param {import('node:fs').Stats} stat */
function asPacked (stat) {
  return Object.assign(stat, { nlink: 1, mode: (stat.mode & constants.S_IFMT) | tameMode(stat.mode, stat.isDirectory()) })
}

/** Absolute, it would lead to another place on each host. @param {string} top @param {string} name @returns {Promise<string>} */
async function targetOf (top, name) {
  const at = path.dirname(path.join(top, name))
  const written = await readlink(path.join(top, name))
  const target = path.isAbsolute(written) ? path.relative(at, await realpath(written).catch(() => written)) || '.' : written
  if (leadsInside(name, target)) return target
  throw refused(top, `${JSON.stringify(name)} is a link that leaves it: ${JSON.stringify(written)}`)
}

/** @param {string} top @param {Entry[]} entries @returns {Promise<Readable>} */
async function packEntries (top, entries) {
  // Not before it is needed: it takes longer to load than most commands to run.
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

/** @param {import('node:crypto').Hash} hash @param {{ bytes: number }} counter @param {string} folder @param {import('../system/archive.js').ArchiveLimits} limits */
function measure (hash, counter, folder, { maxBytes }) {
  return new Transform({
    transform (chunk, _, done) {
      counter.bytes += chunk.length
      hash.update(chunk)
      done(counter.bytes > maxBytes ? refused(folder, `packed, it is larger than ${formatBytes(maxBytes)}`) : null, chunk)
    }
  })
}

/** @param {string} folder @param {string} why */
function refused (folder, why) {
  return new DeckError('usage', `--push: expected a folder that can be packed, received ${folder}: ${why}`)
}
