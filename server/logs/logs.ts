import { closeSync, constants, existsSync, fchmodSync, fstatSync, mkdirSync, openSync, readSync,
  writeSync } from 'node:fs'
import { endOf as endOfLog, liveFile, listLogs, STREAMS, type Log, type Stream } from './log-files.ts'
import { createSemaphore } from '../system/semaphore.ts'
import { createGrowth } from './growth.ts'
import { createMirror, type Streams } from './mirror.ts'
import { createCursor, readTail, tailSync } from './reader.ts'
import { createRotation } from './rotation.ts'
import { createSearch, type Found, type Wanted } from './search.ts'
import { createStamps } from './stamps.ts'
import { attempt, errorText } from '../errors.ts'
import type { Config } from '../config/config.ts'

export type Logs = ReturnType<typeof createLogs>
/** what a worker may have written; `to` is null while it lives */
type Mark = { slot: number, from: Record<Stream, number>, to: Record<Stream, number> | null }

const MAX_TAIL_BYTES = 64 * 1024
const MAX_MARKS = 1000
const LINE_END = 10
/** So many may read many lines at a time, over all apps of this process. */
const READERS = createSemaphore(4)
const FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW

/** The output of the workers: a file per slot and stream, which they inherit and write to themselves. */
export function createLogs ({ folder, options, streams, onError = () => {} }: {
  folder: string,
  options: Config['logs'],
  /** the master's own */
  streams: Streams,
  onError?: (reason: string) => void
}) {
  /** by worker, oldest first */
  const marks: Map<number, Mark> = new Map()
  /** where a slot's output of this master begins */
  const slots: Map<number, Record<Stream, number>> = new Map()
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
     * @param worker `slot`: whose log it writes for as long as it lives
     * @returns descriptors, to be closed after the fork
     * @throws where a file cannot be opened
     */
    open ({ worker, slot }: { worker: number, slot: number }): { stdout: number, stderr: number, close: () => void } {
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
      return { stdout, stderr, close () {
        closeSync(stdout)
        closeSync(stderr)
      } }
    },

    /** `worker`: one that has ended: what comes now is its successor's */
    ended (worker: number) {
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

    async close ({ handsOver = false }: { handsOver?: boolean } = {}) {
      growth.stop()
      await Promise.all([rotation.stop(), search.stop(), mirror?.stop({ handsOver })])
    },

    slots: (): number[] => [...slots.keys()].sort((a, b) => a - b),

    /**
     * The last lines, read at once and from the last 64 KiB alone. Where two workers of a slot run at the same time, as
     * in a restart, lines of both may be among them.
     * @param which `worker`: only what was written in its time, after all others that had ended by then, also where its
     * log is another slot's
     * @returns oldest first; none where they cannot be read
     */
    tail (
      { slot: own, stream, lines, worker }: { slot: number | null, stream: Stream, lines: number, worker?: number }
    ): string[] {
      const mark = worker === undefined ? undefined : marks.get(worker)
      const slot = mark?.slot ?? own
      if (slot === null) return []
      const to = mark?.to?.[stream] ?? endOf(slot)[stream]
      try {
        return tailSync(folder, { slot, stream }, { lines, from: mark ? startOf(mark, stream, to) : 0, to,
          maxBytes: MAX_TAIL_BYTES })
      } catch (error) {
        onError(`the log of slot ${slot} could not be read: ${errorText(error)}`)
        return []
      }
    },

    /** Does what needs many lines in memory for one caller at a time. */
    inTurn: <T>(work: () => Promise<T>): Promise<T> => readers.run(() => READERS.run(work)),

    /**
     * The last lines, without waiting for the disk.
     * @returns `arrivedAt`: of each line, ms since the epoch, null where nobody knows; `starts`: where each begins;
     * `end`: where a cursor goes on; `hasOpenLine`: the last one has no end yet, and will be read again by it
     */
    async page (
      { slot, stream, lines, maxBytes }: { slot: number, stream: Stream, lines: number, maxBytes: number }
    ): Promise<{ lines: string[], arrivedAt: (number | null)[], starts: number[], hasOpenLine: boolean, end: number }> {
      const { ends, start, ...page } = await readTail(folder, { slot, stream }, { lines, from: 0,
        to: endOf(slot)[stream], maxBytes })
      const times = await stamps.times({ slot, stream }, start)
      return { ...page, arrivedAt: ends.map(times.at), starts: [start, ...ends].slice(0, ends.length) }
    },

    /**
     * Lines of the files that match, or that are around a time, without a load on this thread.
     * @throws {import('../errors.ts').DeckError} `rate-limited`, `timed-out`
     */
    async find (wanted: Wanted): Promise<Found> {
      wanted.logs.forEach(stamps.look)
      return await search.find(wanted)
    },

    /** `ends`: of lines that were read. Returns when each of them has arrived. */
    async arrivals (log: Log, ends: number[]): Promise<(number | null)[]> {
      if (ends.length === 0) return []
      const times = await stamps.times(log, ends[0] - 1)
      return ends.map(times.at)
    },

    /** @returns a child of this process that node waits for */
    isArchiver: rotation.isArchiver,

    cursor: cursorOf,

    /** @returns where its output of this master begins */
    begin: (slot: number): Record<Stream, number> => slots.get(slot) ?? endOf(slot)
  }

  /** `logs`: those that may have grown */
  function lookAt (logs: Log[]) {
    rotation.look(logs)
    logs.forEach(stamps.look)
  }

  function beginSlot (slot: number, from: Record<Stream, number>) {
    if (slots.has(slot)) return
    slots.set(slot, from)
    for (const stream of STREAMS) growth.add({ slot, stream })
  }

  function cursorOf (slot: number, stream: Stream, position: number) {
    return createCursor(folder, { slot, stream }, position)
  }

  /**
   * Where the output of a worker begins in the log of its slot: behind that of others, such as one that was tried out
   * in the meantime and has failed.
   */
  function startOf (own: Mark, stream: Stream, to: number): number {
    const ends = [...marks.values()].flatMap((mark) =>
      mark !== own && mark.slot === own.slot && mark.to !== null ? [mark.to[stream]] : []
    )
    return Math.max(own.from[stream], ...ends.filter((end) => end <= to))
  }

  function endOf (slot: number): Record<Stream, number> {
    return { stdout: endOfLog(folder, { slot, stream: 'stdout' }),
      stderr: endOfLog(folder, { slot, stream: 'stderr' }) }
  }

  function forgetOne () {
    const [worker] = [...marks].find(([, { to }]) => to) ?? [...marks.keys()]
    marks.delete(worker)
  }
}

function openOr (undo: () => void, file: string) {
  try {
    return openSync(file, FLAGS, 0o600)
  } catch (error) {
    undo()
    throw error
  }
}

/**
 * Unless somebody is just writing the rest, as a worker that has outlived its master: what is written grows page by
 * page.
 */
function endLine (fd: number) {
  const { size } = fstatSync(fd)
  if (!endsHalf(fd, size)) return
  writesDone(fd)
  if (fstatSync(fd).size === size) writeSync(fd, '\n')
}

/** Waits until every write to a file that has begun is over: the kernel lets them and this in one by one. */
function writesDone (fd: number) {
  // Of somebody else, who is waited for all the same before it is refused.
  attempt(() => fchmodSync(fd, fstatSync(fd).mode & 0o7777))
}

function endsHalf (fd: number, size: number) {
  const last = Buffer.alloc(1, LINE_END)
  if (size > 0) readSync(fd, last, 0, 1, size - 1)
  return last[0] !== LINE_END && last[0] !== 0
}
