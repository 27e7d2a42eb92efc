import { appendFileSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { endOf, listParts, liveFile, stampsFile } from './log-files.js'

/**
 * When the bytes of a log have arrived: workers write without a time, so the master notes now and then how long a log
 * was at the time of its last write. A line has arrived when its end has.
 * @typedef {import('./log-files.js').Log} Log
 * @typedef {ReturnType<typeof timesOf>} Times
 * @typedef {{ size: number, count: number, recent: number[], before: number }} Known
 *   `size`: noted so far; `count`: records in the file; `recent`: the last of them, those of the bytes from `before` on
 */

/** Two numbers: when, as ms since the epoch, 0 where nobody knows; and how many bytes had arrived by then. */
const RECORD_BYTES = 16
const MAX_RECORDS = 32 * 1024
const MAX_RECENT = 512

/**
 * @param {object} parts
 * @param {string} parts.folder
 * @param {number} [parts.maxRecords]  of a log; then older ones become coarser
 */
export function createStamps ({ folder, maxRecords = MAX_RECORDS }) {
  /** @type {Map<string, Known>} by file */
  const all = new Map()

  return {
    /** Notes how far a log has grown by now. */
    look,

    /**
     * @param {Log} log @param {number} from  what came before is not asked for
     * @returns {Promise<Times>} of all that was there before
     */
    async times (log, from) {
      look(log)
      const known = all.get(stampsFile(folder, log))
      return known && known.before <= from ? timesOf(known.recent) : readTimes(folder, log)
    }
  }

  /** @param {Log} log */
  function look (log) {
    try {
      const live = statSync(liveFile(folder, log), { throwIfNoEntry: false })
      if (live) noteGrowth(log, { size: endOf(folder, log), mtimeMs: live.mtimeMs })
    } catch {
      // ENOSPC, EACCES: a log without times is better than none, and the next look makes up for this one.
    }
  }

  /** @param {Log} log @param {{ size: number, mtimeMs: number }} live */
  function noteGrowth (log, { size, mtimeMs }) {
    const file = stampsFile(folder, log)
    let known = all.get(file)
    if (!known) all.set(file, known = openFile(file, size))
    if (size === known.size) return
    if (size < known.size) all.set(file, known = createFile(file))
    appendStamp(file, known, mtimeMs, size)
    if (known.count > maxRecords) known.count = thinStamps(file, listParts(folder, log)[0]?.from ?? 0)
  }

  /** @param {string} file @param {Known} known @param {number} ms @param {number} size */
  function appendStamp (file, known, ms, size) {
    appendFileSync(file, toBytes([ms, size]), { mode: 0o600 })
    known.size = size
    known.count++
    known.recent.push(ms, size)
    if (known.recent.length > 4 * MAX_RECENT) {
      known.before = known.recent[2 * MAX_RECENT - 1]
      known.recent = known.recent.slice(2 * MAX_RECENT)
    }
  }

  /** What earlier masters have noted. @param {string} file @param {number} size of the log @returns {Known} */
  function openFile (file, size) {
    const records = readRecords(file)
    if (records) {
      const count = records.length / 2
      const noted = records.at(-1) ?? 0
      // A record that was cut short would shift all that follow.
      truncateSync(file, count * RECORD_BYTES)
      return { size: noted, count, recent: [], before: noted }
    }
    const known = createFile(file)
    if (size > 0) appendStamp(file, known, 0, size)
    return known
  }
}

/** @param {string} file @returns {Known} */
function createFile (file) {
  writeFileSync(file, '', { mode: 0o600 })
  return { size: 0, count: 0, recent: [], before: 0 }
}

/**
 * Leaves out what is said of bytes that are gone, and every second record of the older half: what a log costs has an end,
 * and of older lines the time need not be as exact.
 * @param {string} file @param {number} firstByte @returns {number} how many are left
 */
function thinStamps (file, firstByte) {
  const records = readRecords(file) ?? []
  const pairs = Array.from({ length: records.length / 2 }, (_, index) => [records[2 * index], records[2 * index + 1]])
  const kept = pairs.filter(([, size], index) => size > firstByte && (index % 2 === 1 || index >= pairs.length / 2))
  writeFileSync(`${file}.new`, toBytes(kept.flat()), { mode: 0o600 })
  renameSync(`${file}.new`, file)
  return kept.length
}

/** @param {string} folder @param {Log} log @returns {Promise<Times>} */
async function readTimes (folder, log) {
  return timesOf(toNumbers(await readFile(stampsFile(folder, log)).catch(() => Buffer.alloc(0))))
}

/** For threads that may wait for the disk. @param {string} folder @param {Log} log @returns {Times} */
export function readTimesSync (folder, log) {
  return timesOf(readRecords(stampsFile(folder, log)) ?? [])
}

/** @param {ArrayLike<number>} records */
function timesOf (records) {
  const count = records.length / 2

  return {
    /** @param {number} end of a line @returns {number | null} when it had arrived, ms since the epoch; null: nobody knows */
    at: (end) => {
      const ms = orderOf(end)
      return ms > 0 && ms < Infinity ? ms : null
    },

    orderOf,

    /** @param {number} ms @returns {number} how many bytes had arrived before that */
    sizeBefore (ms) {
      let size = 0
      // Clocks are set back now and then: what counts is the last record that is earlier.
      for (let index = 0; index < count; index++) if (records[2 * index] < ms) size = records[2 * index + 1]
      return size
    }
  }

  /** @param {number} end @returns {number} the same, or what it is sorted by: 0 before the first time that is known, Infinity after the last */
  function orderOf (end) {
    let [low, high] = [0, count]
    while (low < high) {
      const middle = (low + high) >> 1
      if (records[2 * middle + 1] < end) low = middle + 1
      else high = middle
    }
    return low < count ? records[2 * low] : Infinity
  }
}

/** @param {string} file @returns {Float64Array | null} null: it is not there */
function readRecords (file) {
  try {
    return toNumbers(readFileSync(file))
  } catch (/** @type {any} */ error) {
    if (error.code === 'ENOENT') return null
    throw error
  }
}

/** @param {Buffer} bytes */
function toNumbers (bytes) {
  return new Float64Array(new Uint8Array(bytes.subarray(0, bytes.length - bytes.length % RECORD_BYTES)).buffer)
}

/** @param {number[]} numbers */
function toBytes (numbers) {
  return Buffer.from(Float64Array.from(numbers).buffer)
}
