import { lineRecord, type LogRecord } from './log-record.ts'

type Stream = 'stdout' | 'stderr'
type Cursor = { lag: () => number, read: (maxBytes: number) => Promise<{ lines: string[] }> }
/** What is needed of the logs. */
export type Logs = { slots: () => number[], begin: (slot: number) => Record<Stream, number>,
  cursor: (slot: number, stream: Stream, position: number) => Cursor }

const STREAMS = ['stdout', 'stderr'] as const
const EVERY_MS = 1000
const READ_BYTES = 64 * 1024
/** With less room for records, so few bytes would be read at a time that it is better to wait. */
const MIN_ROOM = 32

/**
 * Reads what the workers write from their log files, as fast as it is taken: what is not taken yet stays in the files.
 * `room`: for how many records; `now`: wall, ms.
 */
export function followWorkerLines (logs: Logs,
  { push, room, now = Date.now, setTimer = setTimeout }: { push: (record: LogRecord) => void, room: () => number,
    now?: () => number, setTimer?: (work: () => void, ms: number) => { unref: () => unknown } })
{
  const cursors: Map<string, Cursor> = new Map()
  let isStopped = false
  let reading: Promise<void> = Promise.resolve()
  waitForMore()

  return {
    /** Reads once more what is there. */
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

  async function readStream (slot: number, stream: Stream) {
    try {
      const cursor = cursorOf(slot, stream)
      while (room() >= MIN_ROOM && cursor.lag() > 0) {
        // A line that is told has two bytes or more.
        const { lines } = await cursor.read(Math.min(READ_BYTES, 2 * room()))
        const at = now()
        for (const text of lines) if (text !== '') push(lineRecord({ slot, stream, text, at }))
      }
    } catch {
      // ENOENT, EACCES: the logs report it themselves.
    }
  }

  function cursorOf (slot: number, stream: Stream) {
    const key = `${slot}.${stream}`
    const cursor = cursors.get(key) ?? logs.cursor(slot, stream, logs.begin(slot)[stream])
    cursors.set(key, cursor)
    return cursor
  }
}
