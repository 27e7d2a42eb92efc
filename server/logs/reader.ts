import { closeSync, openSync, readSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { endOf, headOf, locateRange, type Log } from './log-files.ts'
import { errorCode } from '../errors.ts'

const LINE_END = 10
/**
 * A read that falls into what has just been cut off, or into a hole that has just come, is repeated, from the file that
 * holds the bytes now.
 */
const MAX_TRIES = 20

/**
 * The last lines of a log, over the borders of its files.
 * @returns oldest first; a line that is larger than `maxBytes` is left out but for its end
 */
export function tailSync (folder: string, log: Log,
  { lines, from, to, maxBytes }: { lines: number, from: number, to: number, maxBytes: number }): string[]
{
  const start = Math.max(from, to - maxBytes)
  // One byte more tells whether the first line is whole.
  const bytes = readRangeSync(folder, log, Math.max(0, start - 1), to)
  return lastLines(bytes, { lines, isCut: start > from && start > 0, hasOneMore: start > 0 }).lines
}

/**
 * The same without waiting for the disk; and whether the last line has no end yet, and where those end that have.
 * Returns `ends`: of each line; `start`: where the first one begins.
 */
export async function readTail (folder: string, log: Log,
  { lines, from, to, maxBytes }: { lines: number, from: number, to: number, maxBytes: number }
): Promise<{ lines: string[], ends: number[], hasOpenLine: boolean, start: number, end: number }> {
  const start = Math.max(from, to - maxBytes)
  const bytes = await readRange(folder, log, Math.max(0, start - 1), to)
  const found = lastLines(bytes, { lines, isCut: start > from && start > 0, hasOneMore: start > 0 })
  const openBytes = bytes.length - bytes.lastIndexOf(LINE_END) - 1
  const first = to - found.bytes.length
  const ends = lineEnds(found.bytes, first)
  const count = found.lines.length
  return { lines: found.lines, ends: ends.slice(ends.length - count), start: ends.at(-count - 1) ?? first,
    hasOpenLine: count > 0 && openBytes > 0, end: to - openBytes }
}

/** @returns where the line begins that this place is in */
export function lineStartSync (folder: string, log: Log, position: number): number {
  const bytes = readRangeSync(folder, log, Math.max(0, position - MAX_LINE_BYTES), position)
  const rest = bytes.length - bytes.lastIndexOf(LINE_END) - 1
  return rest < MAX_LINE_BYTES ? position - rest : position
}

/** Reads on from where it has come to, at the reader's own pace: the files are the buffer. */
export function createCursor (folder: string, log: Log, position: number) {
  let rest = Buffer.alloc(0)
  /** in the middle of a line whose beginning was left out */
  let isInside = false

  return {
    /** Where the next line begins. */
    get position () {
      return position - rest.length
    },

    /** @returns bytes that are there to be read */
    lag (): number {
      const size = endOf(folder, log)
      if (size < position) {
        // Emptied by hand, or on a file system without holes.
        position = 0
        rest = Buffer.alloc(0)
      }
      return size - position
    },

    /**
     * `maxBytes`: also of a line: a longer one comes in pieces. Returns `ends`: of each line; `start`: where the first
     * one begins; `lost`: bytes that were removed before they could be read.
     */
    async read (maxBytes: number): Promise<{ lines: string[], ends: () => number[], start: number, lost: number }> {
      const to = position + Math.min(this.lag(), maxBytes)
      const bytes = await readRange(folder, log, position, to)
      const lost = to - position - bytes.length
      position = to
      const whole = fromLineOn(bytes, lost > 0)
      const all = rest.length === 0 ? whole : Buffer.concat([rest, whole])
      const lines = splitLines(all)
      return { lines, ends: () => lineEnds(all, to - all.length).slice(0, lines.length), start: to - all.length,
        lost: lost + bytes.length - whole.length }
    },

    /** Leaves out all but the last so many bytes. Returns how many were left out. */
    skipTo (bytes: number): number {
      const skipped = Math.max(0, this.lag() - bytes)
      position += skipped
      if (skipped > 0) {
        rest = Buffer.alloc(0)
        isInside = true
      }
      return skipped
    },

    /** @returns what has no end of line yet */
    flush (): string[] {
      const lines = rest.length === 0 ? [] : [rest.toString()]
      rest = Buffer.alloc(0)
      return lines
    }
  }

  /** `hasLost`: what came before them */
  function fromLineOn (bytes: Buffer, hasLost: boolean) {
    if (hasLost) rest = Buffer.alloc(0)
    if (!isInside) return bytes
    const end = bytes.indexOf(LINE_END)
    isInside = end < 0
    return end < 0 ? Buffer.alloc(0) : bytes.subarray(end + 1)
  }

  function splitLines (all: Buffer): string[] {
    const end = all.lastIndexOf(LINE_END)
    const isTooLong = end < 0 && all.length >= MAX_LINE_BYTES
    rest = isTooLong ? Buffer.alloc(0) : Buffer.from(all.subarray(end + 1))
    return isTooLong ? [all.toString()] : end < 0 ? [] : toLines(all.subarray(0, end))
  }
}

const MAX_LINE_BYTES = 256 * 1024

/** `bytes`: without the last end of line */
export function toLines (bytes: Buffer) {
  return bytes.toString().split('\n').map((line) => line.endsWith('\r') ? line.slice(0, -1) : line)
}

/** `start`: where they begin. Returns where its lines end, the last one perhaps without an end of line. */
export function lineEnds (bytes: Buffer, start: number): number[] {
  const ends = []
  for (let end = bytes.indexOf(LINE_END); end >= 0; end = bytes.indexOf(LINE_END, end + 1)) ends.push(start + end + 1)
  if (bytes.length > 0 && bytes.at(-1) !== LINE_END) ends.push(start + bytes.length)
  return ends
}

export function withoutLastEnd (bytes: Buffer) {
  return bytes.at(-1) === LINE_END ? bytes.subarray(0, -1) : bytes
}

/** @returns `bytes`: from the first whole line on */
function lastLines (bytes: Buffer,
  { lines, isCut, hasOneMore }: { lines: number, isCut: boolean, hasOneMore: boolean }
): { lines: string[], bytes: Buffer } {
  const isWhole = !isCut || bytes[0] === LINE_END
  let text = hasOneMore && bytes.length > 0 ? bytes.subarray(1) : bytes
  if (!isWhole) {
    const end = text.indexOf(LINE_END)
    // One line alone, and its end is better than nothing.
    if (end >= 0 && end < text.length - 1) text = text.subarray(end + 1)
  }
  return { lines: text.length === 0 ? [] : toLines(withoutLastEnd(text)).slice(-lines), bytes: text }
}

export function readRangeSync (folder: string, log: Log, from: number, to: number) {
  for (let tries = 1;; tries++) {
    const pieces = locateRange(folder, log, { from, to }).map((part) => {
      try {
        const fd = openSync(part.file, 'r')
        try {
          const buffer = Buffer.allocUnsafe(part.to - part.from)
          return checkPiece(folder, log, part, fd,
            buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, part.from - part.start)))
        } finally {
          closeSync(fd)
        }
      } catch (error) {
        return passOver(error)
      }
    })
    if (tries === MAX_TRIES || !pieces.some(isHole)) return joinPieces(pieces)
  }
}

async function readRange (folder: string, log: Log, from: number, to: number) {
  for (let tries = 1;; tries++) {
    const pieces = await Promise.all(locateRange(folder, log, { from, to }).map(async (part) => {
      try {
        const handle = await open(part.file, 'r')
        try {
          const buffer = Buffer.allocUnsafe(part.to - part.from)
          const { bytesRead } = await handle.read(buffer, 0, buffer.length, part.from - part.start)
          return checkPiece(folder, log, part, handle.fd, buffer.subarray(0, bytesRead))
        } finally {
          await handle.close()
        }
      } catch (error) {
        return passOver(error)
      }
    }))
    if (tries === MAX_TRIES || !pieces.some(isHole)) return joinPieces(pieces)
  }
}

/** @returns like a hole where the file has changed meanwhile */
function checkPiece (folder: string, log: Log, { isLive, start }: ReturnType<typeof locateRange>[0], fd: number,
  piece: Buffer): Buffer
{
  return isLive && headOf(folder, log, fd).base !== start ? Buffer.alloc(1) : piece
}

function passOver (error: unknown) {
  // It was the oldest one, and is gone.
  if (errorCode(error) === 'ENOENT') return Buffer.alloc(0)
  throw error
}

function isHole (piece: Buffer) {
  return piece[0] === 0
}

function joinPieces (pieces: Buffer[]) {
  return Buffer.concat(pieces.map((piece) => {
    if (!isHole(piece)) return piece
    const start = piece.findIndex((byte) => byte !== 0)
    return start < 0 ? Buffer.alloc(0) : piece.subarray(start)
  }))
}
