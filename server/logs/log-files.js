import { readdirSync, statSync } from 'node:fs'
import path from 'node:path'

/**
 * Where the output of the workers lies, and how it is told apart.
 *
 * `slot-1.stdout.log` is the file that the workers of slot 1 write into: they inherit its descriptor, opened to append.
 * `slot-1.stdout.000000010485760.log` is what was moved out of it: the bytes from that offset on. An offset means the same
 * byte for ever, since what was moved out leaves a hole behind (fallocate(2), FALLOC_FL_PUNCH_HOLE) and the writers never notice.
 *
 * Why so: Node cannot give a running process another fd 1 or 2, so renaming leaves it writing into the old file, and
 * copying and truncating loses what is written in between. A pipe to a process that writes the files loses
 * what Node has not sent when the app calls process.exit(), and blocks the app when that process dies. Here
 * every line is in the file once write(2) returns, whoever is killed next.
 * @typedef {'stdout' | 'stderr'} Stream
 * @typedef {{ slot: number, stream: Stream }} Log
 * @typedef {{ file: string, from: number, to: number }} Part  `from`, `to`: bytes since the log began
 */

/** @type {readonly Stream[]} */
export const STREAMS = Object.freeze(['stdout', 'stderr'])

const OFFSET_DIGITS = 15
const LIVE = /^slot-(\d{1,3})\.(stdout|stderr)\.log$/

/** @param {string} folder @param {Log} log */
export function liveFile (folder, { slot, stream }) {
  return path.join(folder, `slot-${slot}.${stream}.log`)
}

/** @param {string} folder @param {Log} log @param {number} from */
export function partFile (folder, { slot, stream }, from) {
  return path.join(folder, `slot-${slot}.${stream}.${String(from).padStart(OFFSET_DIGITS, '0')}.log`)
}

/** Where offsets are not kept: the one older file, on file systems without holes. @param {string} folder @param {Log} log */
export function previousFile (folder, { slot, stream }) {
  return path.join(folder, `slot-${slot}.${stream}.previous.log`)
}

/** When its bytes have arrived. @param {string} folder @param {Log} log */
export function stampsFile (folder, { slot, stream }) {
  return path.join(folder, `slot-${slot}.${stream}.times`)
}

/** @param {string} folder @returns {Log[]} every log that is there */
export function listLogs (folder) {
  return namesIn(folder).flatMap((name) => {
    const [, slot, stream] = LIVE.exec(name) ?? []
    return slot === undefined ? [] : [{ slot: Number(slot), stream: /** @type {Stream} */ (stream) }]
  })
}

/** @param {string} folder @param {Log} log @returns {Part[]} what was moved out, oldest first */
export function listParts (folder, { slot, stream }) {
  const prefix = `slot-${slot}.${stream}.`
  return namesIn(folder).filter((name) => name.startsWith(prefix)).sort().flatMap((name) => {
    const [, from] = /^(\d{15})\.log$/.exec(name.slice(prefix.length)) ?? []
    if (from === undefined) return []
    const file = path.join(folder, name)
    const size = sizeOf(file)
    return size === null ? [] : [{ file, from: Number(from), to: Number(from) + size }]
  })
}

/** @param {string} folder which somebody may have removed; the next worker makes it anew */
function namesIn (folder) {
  try {
    return readdirSync(folder)
  } catch (/** @type {any} */ error) {
    if (error.code !== 'ENOENT') throw error
    return []
  }
}

/** @param {string} file @returns {number | null} null: it is not there */
export function sizeOf (file) {
  return statSync(file, { throwIfNoEntry: false })?.size ?? null
}

/**
 * Which files hold these bytes of a log, in order.
 * @param {string} folder @param {Log} log @param {{ from: number, to: number }} range
 * @returns {(Part & { start: number })[]} of these bytes; `start`: where the file itself begins
 */
export function locateRange (folder, log, { from, to }) {
  const file = liveFile(folder, log)
  // In this order: a part never ends behind what the file has by then.
  const listed = listParts(folder, log)
  const size = sizeOf(file) ?? 0
  // Somebody has emptied the file by hand: what was moved out of it before is another story.
  const parts = listed.filter((part) => part.to <= size)
  const live = { file, from: parts.at(-1)?.to ?? 0, to: size, start: 0 }
  return [...parts.map((part) => ({ ...part, start: part.from })), live]
    .map((part) => ({ ...part, from: Math.max(part.from, from), to: Math.min(part.to, to) }))
    .filter((part) => part.from < part.to)
}
