import { chmodSync, rmSync, statfsSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { freeMemory } from './free-memory.ts'
import type { Channel } from './channel.ts'

/**
 * It begins where so many times the heap is free: the file takes up to 2.3 times, and the master looks at the memory
 * from then on.
 */
const ROOM = 2.5
/** The others of this machine come first. */
const NICE = 10

/**
 * Writes the heap of a worker that is about to end as it uses too much memory, once it has nothing open any more:
 * nobody waits while it is written, which stops the process.
 * @param parts `requests`: that the worker has begun in its life
 */
export function createLastHeap (channel: Channel,
  { requests, onDone }: { requests: () => number, onDone: () => void })
{
  let wanted: string | null = null
  channel.on('keep-heap', ({ file }) => {
    wanted = file
  })
  channel.on('write-heap', () => {
    write().then(onDone)
  })
  return {
    /** @returns of the heap that is wanted; 0: none */
    bytes: (): number => wanted === null ? 0 : process.memoryUsage().heapUsed
  }

  async function write () {
    if (wanted === null) return
    const file = wanted
    wanted = null
    const rssBytes = process.memoryUsage.rss()
    const beganAt = performance.now()
    const error = await writeHeap(file).then(() => null, ({ message }: Error) => message.slice(0, 500))
    if (error !== null) rmSync(file, { force: true })
    channel.send({ type: 'heap-kept', requests: requests(), rssBytes, ms: Math.round(performance.now() - beganAt),
      error })
  }
}

/** @throws {Error} where there is no room for it */
async function writeHeap (file: string) {
  const { getHeapStatistics, writeHeapSnapshot } = await import('node:v8')
  const needed = ROOM * getHeapStatistics().used_heap_size
  const { bavail, bsize } = statfsSync(path.dirname(file))
  for (const [what, bytes] of [['memory', freeMemory()], ['disk', bavail * bsize]] as const) {
    if (bytes < needed)
      throw new Error(`expected ${inMegabytes(needed)} of free ${what} for its heap, found ${inMegabytes(bytes)}`)
  }
  os.setPriority(NICE)
  writeHeapSnapshot(file)
  chmodSync(file, 0o600)
}

function inMegabytes (bytes: number) {
  return `${Math.round(bytes / 1024 ** 2)} MB`
}
