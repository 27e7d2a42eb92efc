// Moves the older bytes of large logs into files of their own, and ends. A process of its own, so that the copying is
// not the master's; whoever is killed in the middle of it, the next one goes on: what is in a finished part is freed
// in the live file, what is not is copied again. Two at once do not harm each other, and copy the same.
import { closeSync, constants, fdatasyncSync, fstatSync, ftruncateSync, linkSync, openSync, readdirSync, readSync, renameSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { loadPosix } from '../system/posix.js'
import { listParts, liveFile, partFile, previousFile } from './log-files.js'

/** @typedef {{ folder: string, maxBytes: number, maxFiles: number, logs: import('./log-files.js').Log[] }} Order */

const CHUNK_BYTES = 1024 * 1024
const LINE_END = 10
const FAR_BYTES = 2 ** 30
/** A line without an end is waited for until it is this many times as long as a file may be. */
const MAX_LINE_FILES = 4
const posix = loadPosix()

/** @type {Order} */
const order = JSON.parse(process.argv[2])
removeUnfinished(order.folder)
const results = order.logs.map((log) => {
  try {
    return { ...log, start: archive(log, order), error: null }
  } catch (/** @type {any} */ error) {
    return { ...log, start: 0, error: String(error.message) }
  }
})
process.stdout.write(JSON.stringify(results))

/**
 * @param {import('./log-files.js').Log} log @param {Order} options
 * @returns {number} where the live file now begins
 */
function archive (log, { folder, maxBytes, maxFiles }) {
  const fd = openSync(liveFile(folder, log), constants.O_RDWR | constants.O_NOFOLLOW)
  try {
    // In this order: a part never ends behind what the file has by then.
    const parts = listParts(folder, log)
    const { size } = fstatSync(fd)
    for (const part of parts.filter(({ to }) => to > size)) rmSync(part.file, { force: true })
    const start = Math.max(firstByte(fd, size), ...parts.filter(({ to }) => to <= size).map(({ to }) => to))
    // Far behind the end there is nothing to lose by asking whether it can be done.
    if (!posix?.punchHole(fd, size + FAR_BYTES, size + FAR_BYTES + 1)) return copyAndTruncate(fd, log, folder, maxBytes)
    if (start > 0) posix.punchHole(fd, 0, start)
    return moveOut(fd, log, start, { folder, maxBytes, maxFiles })
  } finally {
    closeSync(fd)
  }
}

/** @param {number} fd @param {import('./log-files.js').Log} log @param {number} start @param {Omit<Order, 'logs'>} options */
function moveOut (fd, log, start, { folder, maxBytes, maxFiles }) {
  while (fstatSync(fd).size - start >= maxBytes) {
    const end = lineEnd(fd, start, start + maxBytes, start + maxBytes * MAX_LINE_FILES)
    if (end === null) break
    if (maxFiles > 1 && !keep(fd, partFile(folder, log, start), start, end)) break
    posix?.punchHole(fd, 0, end)
    for (const { file } of listParts(folder, log).slice(0, -(maxFiles - 1) || undefined)) rmSync(file, { force: true })
    start = end
  }
  return start
}

/** @param {number} fd @param {string} file @param {number} start @param {number} end @returns {boolean} false: another archiver was faster */
function keep (fd, file, start, end) {
  const unfinished = `${file}.${process.pid}.new`
  copy(fd, unfinished, start, end)
  // A hole could have come under the copying hand only from one that has finished this part before.
  const isWhole = firstData(fd) <= start
  try {
    // Not renamed: what is there already is whole, and must not be replaced.
    if (isWhole) linkSync(unfinished, file)
    return isWhole
  } catch (/** @type {any} */ error) {
    if (error.code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(unfinished, { force: true })
  }
}

/**
 * Without holes there is only this way, and a line that is written between its last two calls is lost.
 * @param {number} fd @param {import('./log-files.js').Log} log @param {string} folder @param {number} maxBytes
 */
function copyAndTruncate (fd, log, folder, maxBytes) {
  if (fstatSync(fd).size < maxBytes) return 0
  const file = previousFile(folder, log)
  copy(fd, `${file}.new`, 0, Infinity)
  ftruncateSync(fd, 0)
  renameSync(`${file}.new`, file)
  return 0
}

/** @param {number} fd @param {string} file @param {number} position @param {number} end */
function copy (fd, file, position, end) {
  const target = openSync(file, 'w', 0o600)
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  try {
    while (position < end) {
      const count = readSync(fd, buffer, 0, Math.min(CHUNK_BYTES, end - position), position)
      if (count === 0) break
      for (let written = 0; written < count;) written += writeSync(target, buffer, written, count - written)
      position += count
    }
    // It has to outlast a power failure before the original goes.
    if (end !== Infinity) fdatasyncSync(target)
  } finally {
    closeSync(target)
  }
}

/**
 * @param {number} fd @param {number} start @param {number} limit @param {number} patience
 * @returns {number | null} the last end of a line up to `limit`, else the first one behind it. Null: it is still to come;
 *   but no line is waited for that is as long as `patience`
 */
function lineEnd (fd, start, limit, patience) {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  for (let to = limit; to > start; to -= CHUNK_BYTES) {
    const from = Math.max(start, to - CHUNK_BYTES)
    const index = buffer.subarray(0, readSync(fd, buffer, 0, to - from, from)).lastIndexOf(LINE_END)
    if (index >= 0) return from + index + 1
  }
  for (let from = limit; ;) {
    const count = readSync(fd, buffer, 0, CHUNK_BYTES, from)
    if (count === 0) return from >= patience ? limit : null
    const index = buffer.subarray(0, count).indexOf(LINE_END)
    if (index >= 0) return from + index + 1
    from += count
  }
}

/** @param {number} fd @param {number} size @returns {number} where what was freed ends, to the byte */
function firstByte (fd, size) {
  const from = firstData(fd)
  if (from === 0) return 0
  const buffer = Buffer.alloc(CHUNK_BYTES)
  const count = readSync(fd, buffer, 0, CHUNK_BYTES, from)
  const index = buffer.subarray(0, count).findIndex((byte) => byte !== 0)
  return index < 0 ? Math.min(size, from + count) : from + index
}

/** @param {number} fd @returns {number} */
function firstData (fd) {
  return posix?.firstData(fd) ?? 0
}

/** Of archivers that were killed: they are gone, or are about to copy again. @param {string} folder */
function removeUnfinished (folder) {
  for (const name of readdirSync(folder)) {
    const [, pid] = /^slot-.*\.log\.(\d+)\.new$/.exec(name) ?? []
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(path.join(folder, name), { force: true })
  }
}

/** @param {number} pid */
function isAlive (pid) {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
