import { closeSync, constants, existsSync, fchmodSync, fstatSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs'
import { endOf as endOfLog, liveFile, listLogs, STREAMS } from './log-files.js'
import { createSemaphore } from '../system/semaphore.js'
import { createGrowth } from './growth.js'
import { createMirror } from './mirror.js'
import { createCursor, readTail, tailSync } from './reader.js'
import { createRotation } from './rotation.js'
import { createSearch } from './search.js'
import { createStamps } from './stamps.js'

/** @typedef {ReturnType<typeof createLogs>} Logs */
/** @typedef {import('./log-files.js').Stream} Stream */
/** @typedef {{ slot: number, from: Record<Stream, number>, to: Record<Stream, number> | null }} Mark what a worker may have written; `to` is null while it lives */

const MAX_TAIL_BYTES = 64 * 1024
const MAX_MARKS = 1000
const LINE_END = 10
/** So many may read many lines at a time, over all apps of this process. */
const READERS = createSemaphore(4)
const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW

/**
 * The output of the workers: a file per slot and stream, which they inherit and write to themselves.
 * @param {object} parts
 * @param {string} parts.folder
 * @param {import('../config/config.js').Config['logs']} parts.options
 * @param {import('./mirror.js').Streams} parts.streams  the master's own
 * @param {(reason: string) => void} [parts.onError]
 */
export function createLogs ({ folder, options, streams, onError = () => {} }) {
  /** @type {Map<number, Mark>} by worker, oldest first */
  const marks = new Map()
  /** @type {Map<number, Record<Stream, number>>} where a slot's output of this master begins */
  const slots = new Map()
  const growth = createGrowth({ folder, onAwake: (log) => stamps.look(log), onLook: lookAt })
  const rotation = createRotation({ folder, options, onError })
  const stamps = createStamps({ folder })
  const search = createSearch({ folder })
  const readers = createSemaphore(1)
  const isMirrored = options.mirror === 'on' || (options.mirror === 'auto' && Boolean(streams.stdout.isTTY))
  const mirror = isMirrored ? createMirror({ folder, streams, cursor: cursorOf, slots: () => slots }) : null

  return {
    /**
     * For the worker that is about to be forked.
     * @param {{ worker: number, slot: number }} worker `slot`: whose log it writes for as long as it lives
     * @returns {{ stdout: number, stderr: number, close: () => void }} descriptors, to be closed after the fork
     * @throws where a file cannot be opened
     */
    open ({ worker, slot }) {
      if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 })
      const stdout = openSync(liveFile(folder, { slot, stream: 'stdout' }), FLAGS, 0o600)
      const stderr = openOr(() => closeSync(stdout), liveFile(folder, { slot, stream: 'stderr' }))
      // A last line without an end would run into the first one of this worker.
      if (![...marks.values()].some((mark) => mark.slot === slot && mark.to === null)) [stdout, stderr].forEach(endLine)
      const from = endOf(slot)
      marks.set(worker, { slot, from, to: null })
      if (marks.size > MAX_MARKS) forgetOne()
      beginSlot(slot, from)
      STREAMS.forEach((stream) => stamps.look({ slot, stream }))
      return {
        stdout,
        stderr,
        close () {
          closeSync(stdout)
          closeSync(stderr)
        }
      }
    },

    /** @param {number} worker one that has ended: what comes now is its successor's */
    ended (worker) {
      const mark = marks.get(worker)
      if (!mark || mark.to) return
      mark.to = endOf(mark.slot)
      // Its last words are from before its end, however soon others follow them.
      STREAMS.forEach((stream) => stamps.look({ slot: mark.slot, stream }))
    },

    /** From now on this master has the folder: it rotates, and mirrors. */
    start () {
      for (const { slot } of listLogs(folder)) beginSlot(slot, endOf(slot))
      rotation.start()
      growth.start()
      mirror?.start()
    },

    configure: rotation.configure,

    /** @param {{ handsOver?: boolean }} [how] */
    async close ({ handsOver = false } = {}) {
      growth.stop()
      await Promise.all([rotation.stop(), search.stop(), mirror?.stop({ handsOver })])
    },

    /** @returns {number[]} slots that have written */
    slots: () => [...slots.keys()].sort((a, b) => a - b),

    /**
     * The last lines, read at once and from the last 64 KiB alone. Where two workers of a slot run at the same time, as in a
     * restart, lines of both may be among them.
     * @param {{ slot: number | null, stream: Stream, lines: number, worker?: number }} which `worker`: only what was written in its time, after all others that had ended by then, also where its log is another slot's
     * @returns {string[]} oldest first; none where they cannot be read
     */
    tail ({ slot: own, stream, lines, worker }) {
      const mark = worker === undefined ? undefined : marks.get(worker)
      const slot = mark?.slot ?? own
      if (slot === null) return []
      const to = mark?.to?.[stream] ?? endOf(slot)[stream]
      try {
        return tailSync(folder, { slot, stream }, { lines, from: mark ? startOf(mark, stream, to) : 0, to, maxBytes: MAX_TAIL_BYTES })
      } catch (/** @type {any} */ error) {
        onError(`the log of slot ${slot} could not be read: ${error.message}`)
        return []
      }
    },

    /**
     * Does what needs many lines in memory for one caller at a time.
     * @template T @param {() => Promise<T>} work @returns {Promise<T>}
     */
    inTurn: (work) => readers.run(() => READERS.run(work)),

    /**
     * The last lines, without waiting for the disk.
     * @param {{ slot: number, stream: Stream, lines: number, maxBytes: number }} which
     * @returns {Promise<{ lines: string[], arrivedAt: (number | null)[], starts: number[], hasOpenLine: boolean, end: number }>}
     *   `arrivedAt`: of each line, ms since the epoch, null where nobody knows; `starts`: where each begins; `end`: where a
     *   cursor goes on; `hasOpenLine`: the last one has no end yet, and will be read again by it
     */
    async page ({ slot, stream, lines, maxBytes }) {
      const { ends, start, ...page } = await readTail(folder, { slot, stream }, { lines, from: 0, to: endOf(slot)[stream], maxBytes })
      const times = await stamps.times({ slot, stream }, start)
      return { ...page, arrivedAt: ends.map(times.at), starts: [start, ...ends].slice(0, ends.length) }
    },

    /**
     * Lines of the files that match, or that are around a time, without a load on this thread.
     * @param {import('./search.js').Wanted} wanted
     * @returns {Promise<import('./search.js').Found>}
     * @throws {import('../errors.js').DeckError} `rate-limited`, `timed-out`
     */
    async find (wanted) {
      wanted.logs.forEach(stamps.look)
      return await search.find(wanted)
    },

    /**
     * @param {import('./log-files.js').Log} log @param {number[]} ends of lines that were read
     * @returns {Promise<(number | null)[]>} when each of them has arrived
     */
    async arrivals (log, ends) {
      if (ends.length === 0) return []
      const times = await stamps.times(log, ends[0] - 1)
      return ends.map(times.at)
    },

    /** @param {number} pid @returns {boolean} a child of this process that node waits for */
    isArchiver: rotation.isArchiver,

    cursor: cursorOf,

    /** @param {number} slot @returns {Record<Stream, number>} where its output of this master begins */
    begin: (slot) => slots.get(slot) ?? endOf(slot)
  }

  /** @param {import('./log-files.js').Log[]} logs  those that may have grown */
  function lookAt (logs) {
    rotation.look(logs)
    logs.forEach(stamps.look)
  }

  /** @param {number} slot @param {Record<Stream, number>} from */
  function beginSlot (slot, from) {
    if (slots.has(slot)) return
    slots.set(slot, from)
    for (const stream of STREAMS) growth.add({ slot, stream })
  }

  /** @param {number} slot @param {Stream} stream @param {number} position */
  function cursorOf (slot, stream, position) {
    return createCursor(folder, { slot, stream }, position)
  }

  /**
   * Where the output of a worker begins in the log of its slot: behind that of others, such as one that was tried out in the
   * meantime and has failed.
   * @param {Mark} own @param {Stream} stream @param {number} to @returns {number}
   */
  function startOf (own, stream, to) {
    const ends = [...marks.values()].flatMap((mark) => mark !== own && mark.slot === own.slot && mark.to !== null ? [mark.to[stream]] : [])
    return Math.max(own.from[stream], ...ends.filter((end) => end <= to))
  }

  /** @param {number} slot @returns {Record<Stream, number>} */
  function endOf (slot) {
    return { stdout: endOfLog(folder, { slot, stream: 'stdout' }), stderr: endOfLog(folder, { slot, stream: 'stderr' }) }
  }

  function forgetOne () {
    const [worker] = [...marks].find(([, { to }]) => to) ?? [...marks.keys()]
    marks.delete(/** @type {number} */ (worker))
  }
}

/** @param {() => void} undo @param {string} file */
function openOr (undo, file) {
  try {
    return openSync(file, FLAGS, 0o600)
  } catch (error) {
    undo()
    throw error
  }
}

/**
 * Unless somebody is just writing the rest, as a worker that has outlived its master: what is written grows page by page.
 * @param {number} fd
 */
function endLine (fd) {
  const { size } = fstatSync(fd)
  if (!endsHalf(fd, size)) return
  writesDone(fd)
  if (fstatSync(fd).size === size) writeSync(fd, '\n')
}

/**
 * Waits until every write to a file that has begun is over: the kernel lets them and this in one by one.
 * @param {number} fd
 */
function writesDone (fd) {
  try {
    fchmodSync(fd, fstatSync(fd).mode & 0o7777)
  } catch {
    // Of somebody else, who is waited for all the same before it is refused.
  }
}

/** @param {number} fd @param {number} size */
function endsHalf (fd, size) {
  const last = Buffer.alloc(1, LINE_END)
  if (size > 0) readSync(fd, last, 0, 1, size - 1)
  return last[0] !== LINE_END && last[0] !== 0
}
