import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { styleText } from 'node:util'
import { oneLine } from '../system/one-line.ts'
import { STREAMS, type Stream } from './log-files.ts'
import { attempt, errorCode } from '../errors.ts'
import type { createCursor } from './reader.ts'

type Cursor = ReturnType<typeof createCursor>
/** `prefix`: before each line, where several apps have the same output */
export type Streams = { stdout: NodeJS.WritableStream & { isTTY?: boolean }, stderr: NodeJS.WritableStream,
  prefix?: string }

const POLL_MS = 50
const READ_BYTES = 64 * 1024
/** How long the end waits for a reader that takes nothing. */
const END_PATIENCE_MS = 1000
const COLOURS = ['cyan', 'green', 'yellow', 'magenta', 'blue'] as const

/**
 * Repeats what the workers write on the master's own output, in whole lines: on a terminal with the slot in front and
 * nothing that moves its cursor, elsewhere as they are. Reads the files, as fast as its reader takes it.
 */
export function createMirror ({ folder, streams, cursor, slots }: {
  folder: string,
  streams: Streams,
  cursor: (slot: number, stream: Stream, position: number) => Cursor,
  /** and from where on */
  slots: () => Map<number, Record<Stream, number>>
}) {
  const positionsFile = path.join(folder, 'mirror.json')
  const isTerminal = Boolean(streams.stdout.isTTY)
  /** `shown`: up to where it has left this process. */
  const cursors: Map<string, { slot: number, stream: Stream, cursor: Cursor, shown: number }> = new Map()
  let left: Record<string, number> = {}
  let isStopped = false
  let handsOver = false
  let wake: (() => void) | null = null
  let running: Promise<void> | undefined

  return {
    start () {
      left = takePositions()
      running = runMirror()
    },

    /** Repeats what is there, and ends. `how`: the next master goes on where this one ends. */
    async stop (how: { handsOver: boolean }) {
      handsOver = how.handsOver
      isStopped = true
      wake?.()
      await running
      if (handsOver)
        writeFileSync(positionsFile,
          JSON.stringify(Object.fromEntries([...cursors].map(([key, { shown }]) => [key, shown]))), { mode: 0o600 })
      else for (const one of cursors.values()) await writeLines(one, one.cursor.flush())
    }
  }

  async function runMirror () {
    for (;;) {
      const isLast = isStopped
      const outcome = await mirrorRound()
      // What the next master finds, it repeats.
      if (outcome === 'stuck' || (isStopped && handsOver) || (isLast && outcome === 'nothing')) return
      if (outcome === 'nothing') await pauseMirror()
    }
  }

  /** @returns stuck: it is to end, and nobody takes what it has */
  async function mirrorRound (): Promise<'nothing' | 'some' | 'stuck'> {
    let outcome: 'nothing' | 'some' = 'nothing'
    for (const one of allLogs()) {
      if (isStopped && handsOver) break
      if (one.cursor.lag() === 0) continue
      outcome = 'some'
      if (!await writeLines(one, await readFrom(one))) return 'stuck'
      one.shown = one.cursor.position
    }
    return outcome
  }

  async function readFrom ({ cursor }: { slot: number, cursor: Cursor }) {
    try {
      const { lines, lost } = await cursor.read(READ_BYTES)
      return lost === 0 ? lines : [`[${lost} bytes were removed before they could be shown]`, ...lines]
    } catch (error) {
      cursor.skipTo(0)
      return [`[the log cannot be read: ${errorCode(error)}]`]
    }
  }

  function allLogs () {
    for (const [slot, from] of slots()) {
      for (const stream of STREAMS) {
        const key = `${slot}.${stream}`
        const position = left[key] ?? from[stream]
        if (!cursors.has(key))
          cursors.set(key, { slot, stream, cursor: cursor(slot, stream, position), shown: position })
      }
    }
    return cursors.values()
  }

  /**
   * Returns once it has left this process, so that no other one writes into the middle of it; false where that takes
   * too long at the end.
   */
  function writeLines ({ slot, stream }: { slot: number, stream: Stream }, lines: string[]): Promise<boolean> {
    if (lines.length === 0) return Promise.resolve(true)
    const target = streams[stream]
    const { prefix = '' } = streams
    const text = lines.map((line) => `${prefix}${isTerminal ? decorateLine(slot, stream, line) : line}\n`).join('')
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined
      const endWrite = (isOut: boolean) => {
        clearTimeout(timer)
        wake = null
        resolve(isOut)
      }
      wake = () => {
        timer = setTimeout(endWrite, END_PATIENCE_MS, false)
      }
      if (isStopped) wake()
      // An error means that nobody reads any more; the lines are dropped then.
      target.write(text, () => endWrite(true))
    })
  }

  function pauseMirror () {
    return new Promise((resolve) => {
      const endPause = () => {
        clearTimeout(timer)
        wake = null
        resolve(undefined)
      }
      const timer = setTimeout(endPause, POLL_MS)
      wake = endPause
    })
  }

  function takePositions () {
    // ENOENT: the master before did not mirror, or has not handed over.
    return attempt(() => {
      const positions = JSON.parse(readFileSync(positionsFile, 'utf8'))
      rmSync(positionsFile, { force: true })
      return Object(positions)
    }, {})
  }
}

function decorateLine (slot: number, stream: Stream, line: string) {
  const bar = stream === 'stderr' ? styleText('red', '┃') : '│'
  return `${styleText(COLOURS[(slot + COLOURS.length - 1) % COLOURS.length], String(slot))} ${bar} ${
    oneLine(line.replaceAll('\t', '  '))
  }`
}
