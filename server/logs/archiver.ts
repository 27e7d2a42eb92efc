// Moves the older bytes of large logs into files of their own, and ends. A process of its own, so that the copying is
// not the master's; whoever is killed in the middle of it, the next one goes on: what is in a finished part is freed
// in the live file, what is not is copied again. Two at once do not harm each other, and copy the same.
//
// No copying is waited for where a log grows faster than that: what is beyond `maxBytes` x `maxFiles` is removed,
// oldest first, whether it has been copied or not. Reports are lines of JSON on stdout.
import { closeSync, constants, fstatSync, ftruncateSync, linkSync, openSync, read, readdirSync, readSync, renameSync,
  rmSync, writeFileSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { loadPosix } from '../system/posix.ts'
import { digitsOf, firstLine, headOf, listLogs, listParts, liveFile, partFile, previousFile, sizeOf, startsFile,
  startsOf } from './log-files.ts'
import { errorCode, errorText } from '../errors.ts'
import type { Log } from './log-files.ts'

export type Order = { folder: string, maxBytes: number, maxFiles: number }
/** `start`: where the live file begins; `dropped`: bytes since the last report */
export type Report = Log & { start: number, dropped: number, error: string | null }
type One = Report & { base: number, hasHoles: boolean, droppedAt: number, isDone: boolean }

const CHUNK_BYTES = 1024 * 1024
const LINE_END = 10
const FAR_BYTES = 2 ** 30
/** What is cut off leaves room for a first line. */
const FIRST_LINE_BYTES = 200
/** A line without an end is waited for until it is this many times as long as a file may be. */
const MAX_LINE_FILES = 4
/** How often the logs are measured while others are copied. */
const LOOK_MS = 20
/**
 * Nothing is copied of a log that has outrun the copying so lately: it would be beyond the bound before it is copied.
 */
const CALM_MS = 250
const REPORT_MS = 10_000
const posix = loadPosix()
const readFrom = promisify(read)

const { folder, maxBytes, maxFiles }: Order = JSON.parse(process.argv[2])
/** Of a log with all its files. One file has to fit in beside the one that is written. */
const bound = maxBytes * Math.max(2, maxFiles)
/** What is left of a log that has grown beyond it: all its files, and half of the live one. */
const trimmed = bound - Math.floor(maxBytes / 2)
/** by live file */
const all: Map<string, One> = new Map()

const over = new AbortController()
// The master has ended, and the next one starts its own.
process.stdin.on('close', () => over.abort()).on('error', () => {}).resume()
removeUnfinished()
checkLogs()
const looks = setInterval(checkLogs, LOOK_MS)
const reports = setInterval(() => {
  if ([...all.values()].some(({ dropped }) => dropped > 0)) reportState()
}, REPORT_MS)
for (let large = findLarge(); large.length > 0 && !over.signal.aborted; large = findLarge()) {
  const one = large.find(({ droppedAt }) => performance.now() - droppedAt > CALM_MS)
  if (!one) await wait(LOOK_MS)
  else await withError(one, () => moveOut(one))
}
clearInterval(looks)
clearInterval(reports)
if (!over.signal.aborted) reportState()
process.stdin.destroy()

function findLarge () {
  return [...all.values()].filter((one) => !one.isDone && (sizeOf(liveFile(folder, one)) ?? 0) - one.start >= maxBytes)
}

function reportState () {
  const told: Report[] = [...all.values()].map(({ slot, stream, start, dropped, error }) => ({ slot, stream, start,
    dropped, error })
  )
  // At once, since the process may end right after it.
  writeSync(1, `${JSON.stringify(told)}\n`)
  for (const one of all.values()) one.dropped = 0
}

function checkLogs () {
  for (const log of listLogs(folder)) {
    const file = liveFile(folder, log)
    const size = sizeOf(file) ?? 0
    const known = all.get(file)
    const one = known ??
      { ...log, base: 0, start: 0, dropped: 0, error: null, hasHoles: true, droppedAt: -Infinity, isDone: false }
    all.set(file, one)
    // Emptied by hand, or by another archiver.
    const isAnew = size < one.start
    if (!known || isAnew) withErrorSync(one, (fd) => findStart(one, fd))
    if (size - one.start > maxBytes) withErrorSync(one, (fd) => trimToBound(one, fd))
  }
}

function withErrorSync (one: One, work: (fd: number) => void) {
  try {
    const fd = openLive(one)
    try {
      work(fd)
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    failLog(one, error)
  }
}

async function withError (one: One, work: () => Promise<void>) {
  try {
    await work()
  } catch (error) {
    failLog(one, error)
  }
}

function failLog (one: One, error: unknown) {
  one.isDone = true
  one.error = errorText(error)
}

function openLive (log: Log) {
  return openSync(liveFile(folder, log), constants.O_RDWR | constants.O_NOFOLLOW)
}

/** Frees what others have copied, and finds where the live file now begins. */
function findStart (one: One, fd: number) {
  // In this order: a part never ends behind what the file has by then.
  const parts = listParts(folder, one)
  const { base, start } = headOf(folder, one, fd)
  const { size } = fstatSync(fd)
  for (const part of parts.filter(({ to }) => to > base + size)) rmSync(part.file, { force: true })
  one.base = base
  one.start = Math.max(start, base > 0 ? 0 : firstByte(fd, size),
    ...parts.filter(({ to }) => to <= base + size).map(({ to }) => to - base))
  // Far behind the end there is nothing to lose by asking whether it can be done.
  one.hasHoles = posix?.punchHole(fd, size + FAR_BYTES, size + FAR_BYTES + 1) ?? false
  if (!one.hasHoles) one.start = 0
  else if (one.start > start) free(one, fd, one.start)
}

/**
 * Takes away what comes before a place in the live file, or leaves a hole there.
 * @returns false: another archiver is at it, or was faster
 */
function free (one: One, fd: number, end: number): boolean {
  // Not the log itself, which the app has too.
  const lock = openSync(folder, 'r')
  try {
    return Boolean(posix?.lock(lock)) && headOf(folder, one, fd).base === one.base && freeAlone(one, fd, end)
  } finally {
    closeSync(lock)
  }
}

function freeAlone (one: One, fd: number, end: number): true {
  const { blksize } = fstatSync(fd)
  const cut = Math.floor((end - FIRST_LINE_BYTES) / blksize) * blksize
  if (cut > 0) {
    const line = firstLine(one, one.base + end, end - cut)
    const starts = startsFile(folder, one)
    // The first line that the file has, and the one that it is about to have.
    writeFileSync(`${starts}.new`, `${startsOf(folder, one).slice(-2).join('\n')}\n${digitsOf(one.base + end)}`.trim(),
      { mode: 0o600 })
    renameSync(`${starts}.new`, starts)
    writeSync(fd, line, 0, line.length, cut)
    if (posix?.cutOff(fd, cut)) {
      one.base += cut
      one.start = end - cut
      return true
    }
  }
  if (one.base === 0) posix?.punchHole(fd, 0, end)
  one.start = Math.max(end, one.start)
  return true
}

function trimToBound (one: One, fd: number) {
  const { size } = fstatSync(fd)
  const parts = listParts(folder, one)
  let excess = size - one.start - bound + parts.reduce((sum, { from, to }) => sum + to - from, 0)
  for (const { from, to, file } of parts) {
    if (excess <= 0) return
    rmSync(file, { force: true })
    excess -= to - from
  }
  if (excess <= 0) return
  if (one.hasHoles) {
    const end = nextLine(fd, size - trimmed)
    const dropped = end - one.start
    if (free(one, fd, end)) countDropped(one, dropped)
    else findStart(one, fd)
  } else if (excess > bound) {
    // Without holes all goes, or nothing.
    ftruncateSync(fd, 0)
    countDropped(one, size)
  }
}

function countDropped (one: One, bytes: number) {
  one.dropped += bytes
  one.droppedAt = performance.now()
}

async function moveOut (one: One) {
  const fd = openLive(one)
  try {
    if (!one.hasHoles) return await copyAndTruncate(one, fd)
    const { start } = one
    const end = lineEnd(fd, start, start + maxBytes, start + maxBytes * MAX_LINE_FILES)
    if (end === null) one.isDone = true
    else if ((maxFiles === 1 || await storePart(one, fd, end)) && one.start === start && free(one, fd, end)) {
      for (const { file } of listParts(folder, one).slice(0, -(maxFiles - 1) || undefined))
        rmSync(file, { force: true })
    } else {
      // Another archiver was faster.
      if (one.start === start) findStart(one, fd)
      one.isDone = one.start === start
    }
  } finally {
    closeSync(fd)
  }
}

/** False: it was removed meanwhile, or another archiver has it */
async function storePart (one: One, fd: number, end: number): Promise<boolean> {
  const { base, start } = one
  const file = partFile(folder, one, base + start)
  const unfinished = `${file}.${process.pid}.new`
  try {
    await copyRange(fd, unfinished, start, end, () => one.start === start && one.base === base)
    // Something could have been taken away under the copying hand only by one that has finished this part before, or
    // has trimmed the log.
    const isWhole = !over.signal.aborted && one.start === start && one.base === base && firstData(fd) <= start &&
      headOf(folder, one, fd).base === base
    // Not renamed: what is there already is whole, and must not be replaced.
    if (isWhole) linkSync(unfinished, file)
    return isWhole
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw error
  } finally {
    rmSync(unfinished, { force: true })
  }
}

/** Without holes there is only this way, and a line that is written between its last two calls is lost. */
async function copyAndTruncate (one: One, fd: number) {
  const { size } = fstatSync(fd)
  const from = size > bound ? nextLine(fd, size - trimmed) : 0
  const file = previousFile(folder, one)
  const unfinished = `${file}.${process.pid}.new`
  try {
    const to = await copyRange(fd, unfinished, from, Infinity, () => one.dropped === 0)
    // Somebody else has emptied it.
    if (over.signal.aborted || fstatSync(fd).size < to) return
    // In this order: an archiver that ends in between loses nothing.
    renameSync(unfinished, file)
    ftruncateSync(fd, 0)
    if (from > 0) countDropped(one, from)
  } finally {
    rmSync(unfinished, { force: true })
  }
}

/** @returns where it has ended */
async function copyRange (fd: number, file: string, position: number, end: number,
  isWanted: () => boolean): Promise<number>
{
  const target = await open(file, 'w', 0o600)
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  try {
    while (position < end && isWanted() && !over.signal.aborted) {
      const { bytesRead } = await readFrom(fd, buffer, 0, Math.min(CHUNK_BYTES, end - position), position)
      if (bytesRead === 0) break
      for (let written = 0; written < bytesRead;)
        written += (await target.write(buffer, written, bytesRead - written)).bytesWritten
      position += bytesRead
    }
    // It has to outlast a power failure before the original goes.
    if (isWanted() && !over.signal.aborted) await target.datasync()
    return position
  } finally {
    await target.close()
  }
}

/** @returns where the next line begins, or the same place where that is far away */
function nextLine (fd: number, position: number): number {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, maxBytes))
  return position + buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, position)).indexOf(LINE_END) + 1
}

/**
 * Returns the last end of a line up to `limit`, else the first one behind it. Null: it is still to come; but no line is
 * waited for that is as long as `patience`.
 */
function lineEnd (fd: number, start: number, limit: number, patience: number): number | null {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  for (let to = limit; to > start; to -= CHUNK_BYTES) {
    const from = Math.max(start, to - CHUNK_BYTES)
    const index = buffer.subarray(0, readSync(fd, buffer, 0, to - from, from)).lastIndexOf(LINE_END)
    if (index >= 0) return from + index + 1
  }
  for (let from = limit;;) {
    const count = readSync(fd, buffer, 0, CHUNK_BYTES, from)
    if (count === 0) return from >= patience ? limit : null
    const index = buffer.subarray(0, count).indexOf(LINE_END)
    if (index >= 0) return from + index + 1
    from += count
  }
}

/** @returns where what was freed ends, to the byte */
function firstByte (fd: number, size: number): number {
  const from = firstData(fd)
  if (from === 0) return 0
  const buffer = Buffer.alloc(CHUNK_BYTES)
  const count = readSync(fd, buffer, 0, CHUNK_BYTES, from)
  const index = buffer.subarray(0, count).findIndex((byte) => byte !== 0)
  return index < 0 ? Math.min(size, from + count) : from + index
}

function firstData (fd: number): number {
  return posix?.firstData(fd) ?? 0
}

/** Of archivers that were killed: they are gone, or are about to copy again. */
function removeUnfinished () {
  for (const name of readdirSync(folder)) {
    const [, pid] = /^slot-.*\.log\.(\d+)\.new$/.exec(name) ?? []
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(path.join(folder, name), { force: true })
  }
}

function isAlive (pid: number) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
