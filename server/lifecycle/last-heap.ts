import { recycledGone } from './recycling.ts'
import { stopsFirst } from './slot.ts'
import { terminateWorker } from './worker.ts'
import type { Transition } from './transition.ts'
import type { PoolState, Worker } from './state.ts'

/**
 * V8 needs 5 to 140 ms of CPU for each MB, the more the smaller the objects are, and all others of the machine come
 * first.
 */
const MS_PER_MB = 3000
const LEAST_MS = 60_000
const LONGEST_MS = 600_000
/** Enough for a heap that is nearly written, and for an app that ends at once then. */
const STOP_WITHIN_MS = 1000

/**
 * Lets a worker write its heap that has drained and was recycled for its memory. It has a time of its own for it, as
 * nothing waits for its end: another worker serves in its place. `heapBytes`: as it says; 0: it is not to write it.
 * Returns false: it is to end now.
 */
export function writeHeap (transition: Transition, worker: Worker, heapBytes: number): boolean {
  if (!(heapBytes > 0) || worker.intent?.cause !== 'memory-limit' || isInTheWay(transition.state)) return false
  worker.writesHeap = true
  transition.command({ type: 'write-heap', worker: worker.id })
  const ms = Math.min(LONGEST_MS, Math.max(LEAST_MS, Math.ceil(heapBytes / 1024 ** 2) * MS_PER_MB))
  transition.command({ type: 'set-deadline', deadline: 'drain', id: worker.id, ms })
  recycledGone(transition, worker)
  return true
}

/** `worker`: what V8 needs to write its heap is more than may be taken from others */
export function heapTooLarge (transition: Transition, worker: Worker) {
  if (!worker.writesHeap || worker.state !== 'draining') return
  worker.state = 'stopping'
  worker.killedFor = 'writing its heap took half of the free memory'
  transition.command({ type: 'kill', worker: worker.id })
}

/** Ends at once what still writes, if something waits for its end by now. */
export function endHeaps (transition: Transition) {
  if (!isInTheWay(transition.state)) return
  for (const worker of Object.values(transition.state.workers)) {
    if (worker.writesHeap && worker.state === 'draining')
      terminateWorker(transition, worker, { withinMs: STOP_WITHIN_MS })
  }
}

/** Tells whether the end of a worker is waited for */
function isInTheWay (state: PoolState): boolean {
  return state.phase === 'stopping' || stopsFirst(state)
}
