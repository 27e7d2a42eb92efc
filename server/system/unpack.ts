import { createReadStream } from 'node:fs'
import path from 'node:path'
import { Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { ARCHIVE, leadsInside, plainName, tameMode, whyNoName } from './archive.ts'
import { oneLine } from './one-line.ts'
import type { ReadEntry as Entry, Unpack } from 'tar'
import type { ArchiveLimits as Limits } from './archive.ts'

/**
 * Unpacks an archive that nobody vouches for into an empty folder. An entry that would leave the folder, by its name or
 * by a link, or that is no file, folder or link, ends it. Nothing is ever replaced.
 */

const FILES = new Set(['File', 'OldFile', 'ContiguousFile'])
/**
 * The first bytes of gzip and zstd. The parser would unpack such an archive again, and those bytes would not be
 * counted.
 */
const PACKED = [Buffer.from([0x1f, 0x8b]), Buffer.from([0x28, 0xb5, 0x2f, 0xfd])]
const MAX_SHOWN_CHARS = 200

/** `file`: a tar archive, by gzip @throws {Error} why it is refused; the caller has to empty the folder then */
export async function unpackArchive (file: string, folder: string, limits: Limits = ARCHIVE) {
  // It takes longer to load than everything else here.
  const { UnpackSync } = await import('tar')
  const judge = createJudge(limits)
  // UnpackSync writes entry by entry: the other one would keep in memory all that is still to be written.
  const parser = new UnpackSync({
    cwd: folder,
    strict: true,
    preserveOwner: false,
    dmode: tameMode(undefined, true),
    umask: 0o022,
    maxDepth: limits.maxDepth,
    // The type of the option names entries that are made from a disk too.
    filter: (_, entry) => isWanted(entry as Entry)
  })
  // The filter does not see entries that describe others.
  parser.on('meta', () => refuseEntry(judge.count()))
  // The parser leaves out what it does not know or finds too large, and does not ask the filter.
  parser.on('ignoredEntry', (entry: Entry) => {
    if (!isTop(entry)) refuseEntry(`${quoteText(entry.path)}: ${notAllowed(entry.type)}`)
  })
  await pipeline(createReadStream(file), createGunzip(), countBytes(limits.maxUnpackedBytes), writableOf(parser))

  function isWanted (entry: Entry) {
    // That folder exists already.
    if (isTop(entry)) return false
    const name = plainName(entry.path)
    const reason = judge.whyNot(name, entry)
    if (reason) return refuseEntry(`${quoteText(entry.path)}: ${reason}`)
    entry.path = name
    entry.mode = tameMode(entry.mode, entry.type === 'Directory')
    return true
  }

  function refuseEntry (reason: string | null) {
    if (reason) parser.abort(new Error(reason))
    return false
  }
}

function isTop ({ path, type }: Entry) {
  return type === 'Directory' && plainName(path) === ''
}

/** Checks entries one after the other. */
export function createJudge (limits: Limits) {
  /** also those that only occur in the names of others */
  const folders: Set<string> = new Set()
  /** files and links */
  const others: Set<string> = new Set()
  let entries = 0
  let bytes = 0
  return { count: countEntry,
    whyNot (name: string, { type, size, linkpath }: Pick<Entry, 'type' | 'size' | 'linkpath'>): string | null {
      return whyNoName(name, limits) ?? countEntry() ?? whyNoEntry(name, { type, linkpath }) ?? whyTooLarge(size) ??
        whyNoPlace(name, type === 'Directory')
    } }

  function countEntry () {
    return ++entries > limits.maxEntries ? `there are more than ${limits.maxEntries} files and folders` : null
  }

  function whyTooLarge (size: number) {
    bytes += size
    return bytes <= limits.maxUnpackedBytes ? null : `it makes the archive larger than ${limits.maxUnpackedBytes} bytes`
  }

  function whyNoPlace (name: string, isFolder: boolean) {
    if (others.has(name) || (!isFolder && folders.has(name))) return 'it occurs twice'
    for (let above = path.dirname(name); above !== '.' && !folders.has(above); above = path.dirname(above)) {
      if (others.has(above)) return `${quoteText(above)} is not a folder`
      folders.add(above)
      const reason = countEntry()
      if (reason) return reason
    }
    const kind = isFolder ? folders : others
    kind.add(name)
    return null
  }
}

function whyNoEntry (name: string, { type, linkpath = '' }: Pick<Entry, 'type' | 'linkpath'>): string | null {
  if (FILES.has(type) || type === 'Directory') return null
  if (type !== 'SymbolicLink') return notAllowed(type)
  return leadsInside(name, linkpath) ? null : `it is a link that leaves the folder: ${quoteText(linkpath)}`
}

function notAllowed (type: string) {
  return `it is not a file, a folder or a symbolic link (${type})`
}

function countBytes (max: number) {
  let bytes = 0
  let head = Buffer.alloc(0)
  return new Transform({ transform (chunk, _, done) {
    bytes += chunk.length
    if (head.length < 4) head = Buffer.concat([head, chunk.subarray(0, 4)])
    if (PACKED.some((magic) => head.subarray(0, magic.length).equals(magic)))
      return done(new Error('it is packed twice'))
    done(bytes > max ? new Error(`it is larger than ${max} bytes`) : null, chunk)
  } })
}

/** `parser`: which is not a stream of Node's */
function writableOf (parser: Unpack) {
  const stream = new Writable({ write (chunk, _, done) {
    if (parser.write(chunk)) done()
    else parser.once('drain', done)
  }, final (done) {
    parser.once('close', () => done())
    parser.end()
  } })
  parser.on('error', (error: Error) => stream.destroy(error))
  return stream
}

function quoteText (text: string) {
  return JSON.stringify(oneLine(text).slice(0, MAX_SHOWN_CHARS))
}
