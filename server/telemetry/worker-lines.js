import { lineRecord } from './log-record.js'

/** @typedef {'stdout' | 'stderr'} Stream */
/** @typedef {{ lag: () => number, read: (maxBytes: number) => Promise<{ lines: string[] }> }} Cursor */
/**
 * What is needed of the logs.
 * @typedef {{ slots: () => number[], begin: (slot: number) => Record<Stream, number>, cursor: (slot: number, stream: Stream, position: number) => Cursor }} Logs
 */

const STREAMS = /** @type {const} */ (['stdout', 'stderr'])
const EVERY_MS = 1000
const READ_BYTES = 64 * 1024

/**
 * Reads what the workers write from their log files, as fast as it is taken: what is not taken yet stays in the files.
 * @param {Logs} logs
 * @param {{ push: (record: import('./log-record.js').LogRecord) => void, hasRoom: () => boolean, now?: () => number, setTimer?: (work: () => void, ms: number) => { unref: () => unknown } }} parts `now`: wall, ms
 */
export function followWorkerLines (logs, { push, hasRoom, now = Date.now, setTimer = setTimeout }) {
  /** @type {Map<string, Cursor>} */
  const cursors = new Map()
  let isStopped = false
  /** @type {Promise<void>} */
  let reading = Promise.resolve()
  waitForMore()

  return {
    /** Reads what is there once more. */
    async stop () {
      isStopped = true
      await reading
      await readAll()
    }
  }

  function waitForMore () {
    setTimer(() => {
      if (isStopped) return
      reading = readAll().then(waitForMore)
    }, EVERY_MS).unref()
  }

  async function readAll () {
    for (const slot of logs.slots()) for (const stream of STREAMS) await readStream(slot, stream)
  }

  /** @param {number} slot @param {Stream} stream */
  async function readStream (slot, stream) {
    const cursor = cursorOf(slot, stream)
    try {
      while (hasRoom() && cursor.lag() > 0) {
        const { lines } = await cursor.read(READ_BYTES)
        const at = now()
        for (const text of lines) if (text !== '') push(lineRecord({ slot, stream, text, at }))
      }
    } catch {
      // ENOENT, EACCES: the logs tell of it themselves.
    }
  }

  /** @param {number} slot @param {Stream} stream */
  function cursorOf (slot, stream) {
    const key = `${slot}.${stream}`
    const cursor = cursors.get(key) ?? logs.cursor(slot, stream, logs.begin(slot)[stream])
    cursors.set(key, cursor)
    return cursor
  }
}
