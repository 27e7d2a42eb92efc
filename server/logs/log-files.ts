import { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import path from 'node:path'
import { attempt, errorCode, unless } from '../errors.ts'

/**
 * Where the output of the workers lies, and how it is told apart.
 *
 * `slot-1.stdout.log` is the file that the workers of slot 1 write into: they inherit its descriptor, opened to append.
 * `slot-1.stdout.000000010485760.log` is what was moved out of it: the bytes from that offset on. An offset means the
 * same byte for ever. What was moved out is cut off the live file (fallocate(2), FALLOC_FL_COLLAPSE_RANGE), and the
 * writers never notice. Blocks are cut off, so a line of ours takes the place of the rest: it says at which offset the
 * next one begins. Where a file system cannot do that, a hole is left (FALLOC_FL_PUNCH_HOLE).
 *
 * Why so: Node cannot give a running process another fd 1 or 2, so renaming leaves it writing into the old file, and
 * copying and truncating loses what is written in between. A pipe to a process that writes the files loses
 * what Node has not sent when the app calls process.exit(), and blocks the app when that process dies. Here
 * every line is in the file once write(2) returns, whoever is killed next.
 */
export type Stream = 'stdout' | 'stderr'
export type Log = { slot: number, stream: Stream }
/** `from`, `to`: bytes since the log began */
type Part = { file: string, from: number, to: number }

export const STREAMS: readonly Stream[] = Object.freeze(['stdout', 'stderr'])

const OFFSET_DIGITS = 15
/** As `firstLine` writes it. */
const FIRST_LINE = /^\[clusterdeck: (\d{15}) bytes before this, .*; (\d{6})\]/
const FIRST_LINE_BYTES = 160
const LIVE = /^slot-(\d{1,3})\.(stdout|stderr)\.log$/

export function liveFile (folder: string, { slot, stream }: Log) {
  return path.join(folder, `slot-${slot}.${stream}.log`)
}

export function partFile (folder: string, { slot, stream }: Log, from: number) {
  return path.join(folder, `slot-${slot}.${stream}.${digitsOf(from)}.log`)
}

/** Where offsets are not kept: the one older file, on file systems without holes. */
export function previousFile (folder: string, { slot, stream }: Log) {
  return path.join(folder, `slot-${slot}.${stream}.previous.log`)
}

/** An offset as names of files and first lines have it. */
export function digitsOf (offset: number) {
  return String(offset).padStart(OFFSET_DIGITS, '0')
}

/**
 * The file that notes where a log has begun since something was cut off: a first line that the app itself has written
 * is not believed.
 */
export function startsFile (folder: string, { slot, stream }: Log) {
  return path.join(folder, `slot-${slot}.${stream}.starts`)
}

/** `from`: the offset of what comes next. Returns what a live file begins with. */
export function firstLine ({ slot, stream }: Log, from: number, bytes: number): Buffer {
  const text = `[clusterdeck: ${digitsOf(from)} bytes before this, the last of them in slot-${slot}.${stream}.*.log; ${
    String(bytes).padStart(6, '0')
  }]`
  return Buffer.from(`${text.padEnd(bytes - 1)}\n`)
}

/**
 * @param fd of its live file
 * @returns `base`: the offset at which the file would begin; `start`: where in it the log goes on
 */
export function headOf (folder: string, log: Log, fd: number): { base: number, start: number } {
  const buffer = Buffer.alloc(FIRST_LINE_BYTES)
  const text = buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0))
  const [, from, bytes] = FIRST_LINE.exec(text) ?? []
  if (from === undefined || !startsOf(folder, log).includes(from)) return NO_HEAD
  return { base: Number(from) - Number(bytes), start: Number(bytes) }
}

export function startsOf (folder: string, log: Log): string[] {
  // ENOENT: nothing was cut off.
  return attempt(() => readFileSync(startsFile(folder, log), 'utf8').split('\n'), [])
}

/** Of each live file, as it was seen last. */
const heads: Map<string, ReturnType<typeof headOf>> = new Map()

/** @returns as of headOf(); `end`: the offset behind its last byte */
function liveRange (folder: string, log: Log): { base: number, start: number, end: number } {
  const file = liveFile(folder, log)
  try {
    // Whatever an app has put there, nobody waits for it.
    const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      for (let before = headOf(folder, log, fd);; before = headOf(folder, log, fd)) {
        const { size } = fstatSync(fd)
        const head = headOf(folder, log, fd)
        heads.set(file, head)
        // Nothing was cut off between the two.
        if (before.base === head.base) return { ...head, end: head.base + size }
      }
    } finally {
      closeSync(fd)
    }
  } catch (error) {
    // EMFILE: it is as it was. ENOENT: it begins anew.
    const { base, start } = errorCode(error) === 'ENOENT' ? NO_HEAD : heads.get(file) ?? NO_HEAD
    return { base, start, end: base + (sizeOf(file) ?? 0) }
  }
}

const NO_HEAD = Object.freeze({ base: 0, start: 0 })

export function endOf (folder: string, log: Log): number {
  return liveRange(folder, log).end
}

/** When its bytes have arrived. */
export function stampsFile (folder: string, { slot, stream }: Log) {
  return path.join(folder, `slot-${slot}.${stream}.times`)
}

export function listLogs (folder: string): Log[] {
  return namesIn(folder).flatMap((name) => {
    const [, slot, stream] = LIVE.exec(name) ?? []
    return slot === undefined ? [] : [{ slot: Number(slot), stream: stream as Stream }]
  })
}

/** @returns what was moved out, oldest first */
export function listParts (folder: string, { slot, stream }: Log): Part[] {
  const prefix = `slot-${slot}.${stream}.`
  return namesIn(folder).filter((name) => name.startsWith(prefix)).sort().flatMap((name) => {
    const [, from] = /^(\d{15})\.log$/.exec(name.slice(prefix.length)) ?? []
    if (from === undefined) return []
    const file = path.join(folder, name)
    const size = sizeOf(file)
    return size === null ? [] : [{ file, from: Number(from), to: Number(from) + size }]
  })
}

/** `folder`: which somebody may have removed; the next worker makes it anew */
function namesIn (folder: string) {
  return unless('ENOENT', () => readdirSync(folder), [])
}

/** Null: it is not there */
export function sizeOf (file: string): number | null {
  return statSync(file, { throwIfNoEntry: false })?.size ?? null
}

/** Which files hold these bytes of a log, in order. @returns of these bytes; `start`: where the file itself begins */
export function locateRange (folder: string, log: Log,
  { from, to }: { from: number, to: number }): (Part & { start: number, isLive: boolean })[]
{
  const file = liveFile(folder, log)
  // In this order: a part never ends behind what the file has by then.
  const listed = listParts(folder, log)
  const { base, start, end } = liveRange(folder, log)
  // Somebody has emptied the file by hand: what was moved out of it before is another story.
  const parts = listed.filter((part) => part.to <= end)
  const live = { file, from: Math.max(base + start, parts.at(-1)?.to ?? 0), to: end, start: base, isLive: true }
  return [...parts.map((part) => ({ ...part, start: part.from, isLive: false })), live].map((part) => ({ ...part,
    from: Math.max(part.from, from), to: Math.min(part.to, to) })
  ).filter((part) => part.from < part.to)
}
