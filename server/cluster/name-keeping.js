import { Worker } from 'node:worker_threads'

const THREAD = new URL('name-keeping-thread.js', import.meta.url)
const MAX_HEAP_MB = 8

/** @type {Worker | null} */
let thread = null
const kept = new Set()
let lastId = 0

/**
 * Lets a thread restore the name of a socket whenever that is removed.
 * @param {import('./socket-names.js').SocketNames & { place: string }} socket `place`: of the socket itself
 * @returns {() => void} ends it
 */
export function keepName (socket) {
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
  one.on('error', () => { if (thread === one) thread = null })
  one.unref()
  return one
}
