import { createHash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync, statSync, type BigIntStats } from 'node:fs'
import path from 'node:path'
import { attempt } from '../errors.ts'

export type Drift = ReturnType<typeof createDrift>

/** A worker may name so many files; more are ignored. */
const MAX_FILES = 10_000
const MAX_PATH_CHARS = 4096
/** The files of so many releases are known; the one that was asked for longest ago is forgotten first. */
const MAX_RELEASES = 10
/** One answer may read files whose stamps differ for this long. The rest counts as changed until the next question. */
const READ_BUDGET_MS = 200
/** Contents are read for this long at a time, so that the master hears its workers in between. */
const SLICE_MS = 5
const MAX_NAMED = 5

/**
 * Finds out whether the files that the workers of a release have loaded have changed since. It compares size, times and
 * inode, and if those differ the content: a `touch` or a checkout of the same content is no change.
 *
 * `stamp`: of its metadata; null: the file was missing. `digest`: of its content; null: it is not read yet, or has
 * another stamp by now. `isLate`: it was written after the worker had been forked, so nobody knows which content was
 * loaded, and it counts as changed.
 */
type Mark = { stamp: string | null, digest: string | null, isLate: boolean }
/** `since`: the id of the first worker of the last deploy */
type Known = { since: number, marks: Map<string, Mark> }

/** Larger files are not read, and are compared by their stamps alone. */
const MAX_READ_BYTES = 32 * 1024 * 1024

/** `now`: monotonic ms; `time`: wall ms since the epoch */
export function createDrift (
  { now = () => performance.now(), time = Date.now, readBudgetMs = READ_BUDGET_MS }: { now?: () => number,
    time?: () => number, readBudgetMs?: number } = {}
) {
  /** the one that was asked for last comes last */
  const releases: Map<string, Known> = new Map()
  /** files whose content is not read yet */
  const unread: [string, Mark][] = []
  let waiting: (() => void)[] = []
  let isReading = false

  return {
    /**
     * Takes fingerprints of files that are not known yet; their contents are read in the next turns. `files`: absolute
     * paths; the app could have sent anything; `worker`: wall ms since the epoch.
     */
    noteLoaded (release: string, files: unknown, { id, forkedAt }: { id: number, forkedAt: number }) {
      const { since, marks } = knownOf(release)
      // This worker is older than the last deploy of this release, and may have loaded older files.
      if (id < since) return
      for (const file of pathsOf(files)) {
        if (marks.has(file) || marks.size >= MAX_FILES) continue
        const mark = toMark(file, forkedAt)
        marks.set(file, mark)
        if (mark.stamp !== null && !mark.isLate) unread.push([file, mark])
      }
      if (!isReading) readOn()
    },

    /** Tells whether it is known what its workers have loaded */
    knows: (release: string): boolean => (releases.get(release)?.marks.size ?? 0) > 0,

    /**
     * How the files of a release have changed since its workers loaded them. It is synchronous, and takes about 2 µs
     * for each unchanged file. Returns null: none has, as far as is known.
     */
    of (release: string): import('../lifecycle/state.ts').Drift | null {
      const files = changedFiles(release)
      return files.length === 0
        ? null
        : { count: files.length, files: files.slice(0, MAX_NAMED), since: firstWritten(files), by: null, kind: 'code' }
    },

    /**
     * This release is deployed (again): the files that its workers load from now on are the right ones. `since`: the id
     * of the first of these workers.
     */
    renew (release: string, since: number) {
      releases.delete(release)
      knownOf(release).since = since
    },

    /** @returns until every content has been read */
    settled: (): Promise<void> =>
      new Promise((resolve) => {
        unread.length === 0 ? resolve() : waiting.push(resolve)
      })
  }

  function knownOf (release: string): Known {
    const found = releases.get(release) ?? { since: 0, marks: new Map() }
    releases.delete(release)
    releases.set(release, found)
    const [oldest] = releases.keys()
    if (releases.size > MAX_RELEASES) releases.delete(oldest)
    return found
  }

  /** @returns the files that have changed since they were loaded */
  function changedFiles (release: string): string[] {
    if (!releases.has(release)) return []
    const endsAt = now() + readBudgetMs
    return [...knownOf(release).marks].filter(([file, mark]) => isChanged(file, mark, endsAt)).map(([file]) => file)
  }

  function isChanged (file: string, mark: Mark, endsAt: number) {
    if (mark.isLate) return true
    const stamp = stampOf(file)
    if (stamp === mark.stamp) return false
    if (stamp === null || mark.digest === null || now() > endsAt || digestOf(file, stamp) !== mark.digest) return true
    // The same content under another stamp is not read again.
    mark.stamp = stamp
    return false
  }

  function toMark (file: string, forkedAt: number): Mark {
    const stamp = stampOf(file)
    const writtenAtMs = stamp === null ? -Infinity : writtenAt(stamp)
    // A time in the future is from before the clock was set back, and says nothing. The clock has whole milliseconds.
    return { stamp, digest: null, isLate: writtenAtMs > forkedAt && Math.floor(writtenAtMs) <= time() }
  }

  function readOn () {
    isReading = unread.length > 0
    if (!isReading) {
      for (const resolve of waiting) resolve()
      waiting = []
      return
    }
    setImmediate(readSlice)
  }

  function readSlice () {
    const endsAt = now() + SLICE_MS
    while (now() < endsAt) {
      const next = unread.pop()
      if (!next) break
      const [file, mark] = next
      if (mark.stamp !== null) mark.digest ??= digestOf(file, mark.stamp)
    }
    readOn()
  }
}

/** `files`: that have changed. Returns when the first of them was written, ISO 8601; null: all are gone. */
function firstWritten (files: string[]): string | null {
  const times = files.flatMap((file) => stampOf(file) ?? []).map(writtenAt)
  return times.length === 0 ? null : new Date(Math.min(...times)).toISOString()
}

function pathsOf (files: unknown): string[] {
  if (!Array.isArray(files)) return []
  return files.slice(0, MAX_FILES).filter((file) =>
    typeof file === 'string' && file.length <= MAX_PATH_CHARS && path.isAbsolute(file) && !file.includes('\0')
  )
}

/**
 * Size, times and identity of a file as one text. It has ctime too, as tools can set mtime. `file`: absolute path.
 * Returns null: there is no such file.
 */
function stampOf (file: string): string | null {
  // EACCES, ENOTDIR, ELOOP: a worker would not find it either.
  return attempt(() => {
    const stat = statSync(file, { bigint: true, throwIfNoEntry: false })
    return stat?.isFile() ? toStamp(stat) : null
  })
}

/**
 * @param stamp the file is read only if it still has this one
 * @returns of its content; null: it has changed, is too large, or cannot be read
 */
function digestOf (file: string, stamp: string): string | null {
  let descriptor: number | undefined
  try {
    // O_NONBLOCK: a pipe may have taken the place of the file, and opening it would block the master.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const stat = fstatSync(descriptor, { bigint: true })
    if (!stat.isFile() || toStamp(stat) !== stamp || stat.size > MAX_READ_BYTES) return null
    const content = Buffer.allocUnsafe(Number(stat.size))
    for (let at = 0; at < content.length;) {
      const count = readSync(descriptor, content, at, content.length - at, at)
      if (count === 0) return null
      at += count
    }
    return toStamp(fstatSync(descriptor, { bigint: true })) === stamp
      ? createHash('sha256').update(content).digest('base64')
      : null
  } catch {
    return null
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/**
 * @returns ms since the epoch: the earlier of both times, as a tool can set mtime to the future, and every new link to
 * the file changes ctime
 */
function writtenAt (stamp: string): number {
  const [, mtimeNs, ctimeNs] = stamp.split(':').map(Number)
  return Math.min(mtimeNs, ctimeNs) / 1e6
}

function toStamp ({ size, mtimeNs, ctimeNs, ino, dev }: BigIntStats) {
  return `${size}:${mtimeNs}:${ctimeNs}:${dev}:${ino}`
}
