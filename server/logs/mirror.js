import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { stripVTControlCharacters, styleText } from 'node:util'
import { STREAMS } from './log-files.js'

/** @typedef {import('./log-files.js').Stream} Stream */
/** @typedef {ReturnType<typeof import('./reader.js').createCursor>} Cursor */

const POLL_MS = 50
const READ_BYTES = 256 * 1024
const COLOURS = /** @type {const} */ (['cyan', 'green', 'yellow', 'magenta', 'blue'])

/**
 * Repeats what the workers write on the master's own output, in whole lines: on a terminal with the slot in front and
 * nothing that moves its cursor, elsewhere as they are. Reads the files, as fast as its reader takes it.
 * @param {object} parts
 * @param {string} parts.folder
 * @param {{ stdout: NodeJS.WritableStream & { isTTY?: boolean }, stderr: NodeJS.WritableStream }} parts.streams
 * @param {(slot: number, stream: Stream, position: number) => Cursor} parts.cursor
 * @param {() => Map<number, Record<Stream, number>>} parts.slots  and from where on
 */
export function createMirror ({ folder, streams, cursor, slots }) {
  const positionsFile = path.join(folder, 'mirror.json')
  const isTerminal = Boolean(streams.stdout.isTTY)
  /** @type {Map<string, { slot: number, stream: Stream, cursor: Cursor }>} */
  const cursors = new Map()
  /** @type {Record<string, number>} */
  let left = {}
  let isStopped = false
  /** when the last of it has to be out */
  let stopBy = Infinity
  /** @type {(() => void) | null} */
  let wake = null
  /** @type {Promise<void> | undefined} */
  let running

  return {
    start () {
      left = takePositions()
      running = run()
    },

    /** Repeats what is there, and ends. @param {{ handsOver: boolean }} how the next master goes on where this one ends */
    async stop ({ handsOver }) {
      isStopped = true
      stopBy = performance.now() + END_PATIENCE_MS
      wake?.()
      await running
      if (handsOver) writeFileSync(positionsFile, JSON.stringify(Object.fromEntries([...cursors].map(([key, one]) => [key, one.cursor.position]))), { mode: 0o600 })
      else for (const one of cursors.values()) await write(one, one.cursor.flush())
    }
  }

  async function run () {
    for (;;) {
      const isLast = isStopped
      const hasRead = await round()
      if ((isLast && !hasRead) || performance.now() > stopBy) return
      if (!hasRead) await pause()
    }
  }

  async function round () {
    let hasRead = false
    for (const one of all()) {
      if (one.cursor.lag() === 0) continue
      hasRead = true
      await write(one, await readFrom(one))
    }
    return hasRead
  }

  /** @param {{ slot: number, cursor: Cursor }} one */
  async function readFrom ({ cursor }) {
    try {
      const { lines, lost } = await cursor.read(READ_BYTES)
      return lost === 0 ? lines : [`[${lost} bytes were removed before they could be shown]`, ...lines]
    } catch (/** @type {any} */ error) {
      cursor.skipTo(0)
      return [`[the log cannot be read: ${error.code}]`]
    }
  }

  function all () {
    for (const [slot, from] of slots()) {
      for (const stream of STREAMS) {
        const key = `${slot}.${stream}`
        if (!cursors.has(key)) cursors.set(key, { slot, stream, cursor: cursor(slot, stream, left[key] ?? from[stream]) })
      }
    }
    return cursors.values()
  }

  /** @param {{ slot: number, stream: Stream }} log @param {string[]} lines */
  async function write ({ slot, stream }, lines) {
    if (lines.length === 0) return
    const target = /** @type {NodeJS.WritableStream & { destroyed?: boolean }} */ (streams[stream])
    const text = lines.map((line) => `${isTerminal ? decorate(slot, stream, line) : line}\n`).join('')
    if (target.write(text) || target.destroyed) return
    // Nobody may read any more, and the end does not wait for long.
    await new Promise((resolve) => {
      const done = () => {
        target.off('drain', done).off('close', done).off('error', done)
        wake = null
        resolve(undefined)
      }
      wake = done
      target.once('drain', done).once('close', done).once('error', done)
      if (isStopped) setTimeout(done, stopBy - performance.now())
    })
  }

  function pause () {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        wake = null
        resolve(undefined)
      }
      const timer = setTimeout(done, POLL_MS)
      wake = done
    })
  }

  function takePositions () {
    try {
      const positions = JSON.parse(readFileSync(positionsFile, 'utf8'))
      rmSync(positionsFile, { force: true })
      return Object(positions)
    } catch {
      // ENOENT: the master before did not mirror, or has not handed over.
      return {}
    }
  }
}

const END_PATIENCE_MS = 1000

/** @param {number} slot @param {Stream} stream @param {string} line */
function decorate (slot, stream, line) {
  const bar = stream === 'stderr' ? styleText('red', '┃') : '│'
  // eslint-disable-next-line no-control-regex
  const text = stripVTControlCharacters(line).replace(/\t/g, '  ').replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
  return `${styleText(COLOURS[(slot - 1) % COLOURS.length], String(slot))} ${bar} ${text}`
}
