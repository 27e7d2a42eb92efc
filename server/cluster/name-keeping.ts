import { Worker } from 'node:worker_threads'
import { scriptPath } from '../system/built.ts'
import type { SocketNames } from './socket-names.ts'

const THREAD = scriptPath('name-keeping-thread.js')
const MAX_HEAP_MB = 8

let thread: Worker | null = null
const kept = new Set()
let lastId = 0

/**
 * Lets a thread restore the name of a socket whenever that is removed.
 * @param socket `place`: of the socket itself
 * @returns ends it
 */
export function keepName (socket: SocketNames & { place: string }): () => void {
  const id = ++lastId
  kept.add(id)
  thread ??= startThread()
  thread.postMessage({ id, socket })
  return () => {
    kept.delete(id)
    if (kept.size > 0) return thread?.postMessage({ id })
    thread?.terminate()
    thread = null
  }
}

function startThread () {
  const one = new Worker(THREAD, { execArgv: [], env: {}, resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
  // Without the thread a name is checked when a worker asks for it.
  one.on('error', () => {
    if (thread === one) thread = null
  })
  one.unref()
  return one
}
