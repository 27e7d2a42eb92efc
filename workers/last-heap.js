import { chmodSync, rmSync, statfsSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** V8 needs about so much memory beside the heap that it writes, and so much room on the disk. */
const ROOM = 2.5
/** The others of this machine come first. */
const NICE = 10

/**
 * Writes the heap of a worker that is about to end as it uses too much memory, once it has nothing open any more: nobody waits
 * while it is written, which stops the process.
 * @param {import('./channel.js').Channel} channel
 */
export function createLastHeap (channel) {
  /** @type {string | null} */
  let wanted = null
  channel.on('keep-heap', ({ file }) => { wanted = file })
  return {
    /** @param {number} requests  that the worker has begun in its life */
    async write (requests) {
      if (wanted === null) return
      const file = wanted
      wanted = null
      const error = await writeHeap(file).then(() => null, (/** @type {Error} */ { message }) => message.slice(0, 500))
      if (error !== null) rmSync(file, { force: true })
      channel.send({ type: 'heap-kept', requests, rssBytes: process.memoryUsage.rss(), error })
    }
  }
}

/** @param {string} file @throws {Error} where there is no room for it */
async function writeHeap (file) {
  const { getHeapStatistics, writeHeapSnapshot } = await import('node:v8')
  const needed = ROOM * getHeapStatistics().used_heap_size
  const { bavail, bsize } = statfsSync(path.dirname(file))
  for (const [what, bytes] of /** @type {const} */ ([['memory', process.availableMemory?.() ?? os.freemem()], ['disk', bavail * bsize]])) {
    if (bytes < needed) throw new Error(`expected ${inMegabytes(needed)} of free ${what} for its heap, found ${inMegabytes(bytes)}`)
  }
  os.setPriority(NICE)
  writeHeapSnapshot(file)
  chmodSync(file, 0o600)
}

/** @param {number} bytes */
function inMegabytes (bytes) {
  return `${Math.round(bytes / 1024 ** 2)} MB`
}
