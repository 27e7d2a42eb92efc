import { appendFileSync, readFileSync, renameSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { endOf, listParts, liveFile, stampsFile, type Log } from './log-files.ts'
import { unless } from '../errors.ts'

/**
 * When the bytes of a log have arrived: workers write without a time, so the master notes now and then how long a log
 * was at the time of its last write. A line has arrived when its end has.
 */
export type Times = ReturnType<typeof timesOf>
/**
 * `size`: noted so far; `count`: records in the file; `recent`: the last of them, those of the bytes from `before` on
 */
type Known = { size: number, count: number, recent: number[], before: number }

/** Two numbers: when, as ms since the epoch, 0 where nobody knows; and how many bytes had arrived by then. */
const RECORD_BYTES = 16
const MAX_RECORDS = 32 * 1024
const MAX_RECENT = 512

export function createStamps ({ folder, maxRecords = MAX_RECORDS }: {
  folder: string,
  /** of a log; then older ones become coarser */
  maxRecords?: number
}) {
  /** by file */
  const all: Map<string, Known> = new Map()

  return {
    /** Notes how far a log has grown by now. */
    look,

    /** `from`: what came before is not asked for @returns of all that was there before */
    async times (log: Log, from: number): Promise<Times> {
      look(log)
      const known = all.get(stampsFile(folder, log))
      return known && known.before <= from ? timesOf(known.recent) : readTimes(folder, log)
    }
  }

  function look (log: Log) {
    try {
      const live = statSync(liveFile(folder, log), { throwIfNoEntry: false })
      if (live) noteGrowth(log, { size: endOf(folder, log), mtimeMs: live.mtimeMs })
    } catch {
      // ENOSPC, EACCES: a log without times is better than none, and the next look makes up for this one.
    }
  }

  function noteGrowth (log: Log, { size, mtimeMs }: { size: number, mtimeMs: number }) {
    const file = stampsFile(folder, log)
    let known = all.get(file)
    if (!known) all.set(file, known = openFile(file, size))
    if (size === known.size) return
    if (size < known.size) all.set(file, known = createFile(file))
    appendStamp(file, known, mtimeMs, size)
    if (known.count > maxRecords) known.count = thinStamps(file, listParts(folder, log)[0]?.from ?? 0)
  }

  function appendStamp (file: string, known: Known, ms: number, size: number) {
    appendFileSync(file, toBytes([ms, size]), { mode: 0o600 })
    known.size = size
    known.count++
    known.recent.push(ms, size)
    if (known.recent.length > 4 * MAX_RECENT) {
      known.before = known.recent[2 * MAX_RECENT - 1]
      known.recent = known.recent.slice(2 * MAX_RECENT)
    }
  }

  /** What earlier masters have noted. `size`: of the log. */
  function openFile (file: string, size: number): Known {
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

function createFile (file: string): Known {
  writeFileSync(file, '', { mode: 0o600 })
  return { size: 0, count: 0, recent: [], before: 0 }
}

/**
 * Leaves out what is said of bytes that are gone, and every second record of the older half: what a log costs has an
 * end, and of older lines the time need not be as exact. Returns how many are left.
 */
function thinStamps (file: string, firstByte: number): number {
  const records = readRecords(file) ?? []
  const pairs = Array.from({ length: records.length / 2 }, (_, index) => [records[2 * index], records[2 * index + 1]])
  const kept = pairs.filter(([, size], index) => size > firstByte && (index % 2 === 1 || index >= pairs.length / 2))
  writeFileSync(`${file}.new`, toBytes(kept.flat()), { mode: 0o600 })
  renameSync(`${file}.new`, file)
  return kept.length
}

async function readTimes (folder: string, log: Log): Promise<Times> {
  return timesOf(toNumbers(await readFile(stampsFile(folder, log)).catch(() => Buffer.alloc(0))))
}

/** For threads that may wait for the disk. */
export function readTimesSync (folder: string, log: Log): Times {
  return timesOf(readRecords(stampsFile(folder, log)) ?? [])
}

function timesOf (records: ArrayLike<number>) {
  const count = records.length / 2

  return {
    /** `end`: of a line. Returns when it had arrived, ms since the epoch; null: nobody knows. */
    at: (end: number): number | null => {
      const ms = orderOf(end)
      return ms > 0 && ms < Infinity ? ms : null
    },

    orderOf,

    /** @returns how many bytes had arrived before that */
    sizeBefore (ms: number): number {
      let size = 0
      // Clocks are set back now and then: what counts is the last record that is earlier.
      for (let index = 0; index < count; index++) if (records[2 * index] < ms) size = records[2 * index + 1]
      return size
    }
  }

  /** @returns the same, or what it is sorted by: 0 before the first time that is known, Infinity after the last */
  function orderOf (end: number): number {
    let [low, high] = [0, count]
    while (low < high) {
      const middle = (low + high) >> 1
      if (records[2 * middle + 1] < end) low = middle + 1
      else high = middle
    }
    return low < count ? records[2 * low] : Infinity
  }
}

/** Null: it is not there */
function readRecords (file: string): Float64Array | null {
  return unless('ENOENT', () => toNumbers(readFileSync(file)))
}

function toNumbers (bytes: Buffer) {
  return new Float64Array(new Uint8Array(bytes.subarray(0, bytes.length - bytes.length % RECORD_BYTES)).buffer)
}

function toBytes (numbers: number[]) {
  return Buffer.from(Float64Array.from(numbers).buffer)
}
