import { fstatSync, readSync } from 'node:fs'
import { stripVTControlCharacters } from 'node:util'
import { readyLineOf } from '../lifecycle/ready-line.ts'
import { textIn } from '../system/proc.ts'
import { identifyProcess, isAlive, type ProcessIdentity } from '../system/process-identity.ts'
import type { Output } from '../programs/running-program.ts'

/** `end`: where it ends in its file; `looks`: how often its writer was looked for */
type Line = { end: number, looks?: number }
/**
 * `file`: its inode; `at`: where the first line begins that was not looked at; `unclear`: whose writer is not known yet
 */
type Stream = { fd: number, file: number, at: number, unclear: Line[] }
type Writer = { streams: Stream[], close: () => void, identity: ProcessIdentity | null, isAwaited: boolean }

const LOOK_EVERY_MS = 20
/**
 * The kernel moves the position of a file a moment after the file has grown, or much later where the writer waits for a
 * CPU.
 */
const LOOKS_FOR_WRITER = 15
const MAX_UNCLEAR = 1000
const CHUNK_BYTES = 64 * 1024
const MAX_LINE_LENGTH = 4096
const LINE_END = 10

/**
 * All workers whose line was waited for. Their files stay open here: the position of each is that of the worker's last
 * write.
 */
const writers: Set<Writer> = new Set()

/**
 * Waits for the line of a worker's output that says that it is ready. Other workers may write into the same log
 * meanwhile. `output`: of the worker, which has written nothing yet; `wanted`: as of readyLineOf(). Returns `output`:
 * to start the worker with.
 */
export function awaitReadyLine (output: Output, wanted: string,
  { isAwaited, onFound }: { isAwaited: () => boolean, onFound: () => void }
): { output: Output, startedAs: (pid: number) => void } {
  const isWanted = readyLineOf(wanted)
  const streams = [output.stdout, output.stderr].flatMap((fd) => fd === 'inherit' ? [] : [streamOf(fd)])
  const own: Writer = { streams, close: output.close, identity: null, isAwaited: true }
  writers.add(own)
  lookLater()
  return { output: { ...output, close () {} }, startedAs (pid) {
    own.identity = identifyProcess(pid)
  } }

  function look () {
    const isFound = streams.some((stream) => hasWritten(stream, newLines(stream).filter(({ text }) => isWanted(text))))
    if (isAwaited() && !isFound) return lookLater()
    own.isAwaited = false
    forgetEnded()
    if (isAwaited()) onFound()
  }

  function lookLater () {
    setTimeout(look, LOOK_EVERY_MS).unref()
  }
}

function streamOf (fd: number): Stream {
  const { ino, size } = fstatSync(fd)
  return { fd, file: ino, at: size, unclear: [] }
}

/**
 * A worker that has opened its log anew, as `/dev/stderr`, remains unknown: that is taken for this one. `stream`: of a
 * worker; `lines`: that have come. Returns whether it has written one of them.
 */
function hasWritten (stream: Stream, lines: Line[]): boolean {
  const all = [...stream.unclear, ...lines].slice(-MAX_UNCLEAR)
  if (all.length === 0) return false
  const { fd, file } = stream
  const others = [...writers].flatMap(({ streams }) => streams).filter((other) =>
    other.file === file && other.fd !== fd
  ).map((other) => positionOf(other.fd))
  const own = positionOf(fd)
  const left = all.filter(({ end }) => !others.includes(end))
  stream.unclear = left.filter(({ end }) => Math.max(own, ...others) < end).map(({ end, looks = 0 }) => ({ end,
    looks: looks + 1 })
  )
  return others.length === 0
    ? left.length > 0
    : left.some(({ end }) => own >= end) || stream.unclear.some(({ looks }) => looks === LOOKS_FOR_WRITER)
}

/** @returns where its last write has ended, whoever has it: proc_pid_fdinfo(5); 0: the system does not tell */
function positionOf (fd: number): number {
  return Number(/^pos:\s*(\d+)$/m.exec(textIn(`/proc/self/fdinfo/${fd}`))?.[1] ?? 0)
}

/** The last words of one that has ended may still be met by whoever is awaited in the same log. */
function forgetEnded () {
  const awaited = new Set(
    [...writers].flatMap(({ isAwaited, streams }) => isAwaited ? streams.map(({ file }) => file) : [])
  )
  for (const writer of writers) {
    if (writer.isAwaited || writer.streams.some(({ file }) => awaited.has(file)) ||
      (writer.identity && isAlive(writer.identity))) continue
    writers.delete(writer)
    writer.close()
  }
}

/** @returns the lines that have an end */
function newLines (stream: Stream): { text: string, end: number }[] {
  const { size } = fstatSync(stream.fd)
  // Somebody has emptied it.
  if (size < stream.at) stream.at = 0
  const lines: { text: string, end: number }[] = []
  while (stream.at < size) {
    const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, size - stream.at))
    const bytes = chunk.subarray(0, readSync(stream.fd, chunk, 0, chunk.length, stream.at))
    const length = bytes.lastIndexOf(LINE_END) + 1
    // A line that has no end yet is read again, unless it is longer than anybody looks at.
    if (length === 0 && bytes.length < CHUNK_BYTES) break
    lines.push(...linesIn(bytes.subarray(0, length), stream.at))
    stream.at += length || bytes.length
  }
  return lines
}

/** `at`: of the first of them in the file */
function linesIn (bytes: Buffer, at: number) {
  const lines = []
  for (let from = 0; from < bytes.length;) {
    const end = bytes.indexOf(LINE_END, from) + 1
    lines.push({ text: stripVTControlCharacters(bytes.toString('utf8', from, end - 1).slice(0, MAX_LINE_LENGTH)),
      end: at + end })
    from = end
  }
  return lines
}
