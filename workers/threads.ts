import { subscribe } from 'node:diagnostics_channel'
import { errorMonitor } from 'node:events'
import { privateField } from './private-field.ts'
import type { Worker as Thread } from 'node:worker_threads'
import type { Channel } from './channel.ts'

/**
 * The threads that the app starts. Node names none of them among the active resources of a process, and a server in one
 * is no server of this process: node:cluster knows nothing of it.
 */
export function watchThreads (channel: Channel) {
  const threads: Set<Thread> = new Set()
  subscribe('worker_threads', ({ worker: thread }) => {
    threads.add(thread)
    thread.once('exit', () => threads.delete(thread))
    // This listener changes nothing about whether the app handles the error.
    thread.on(errorMonitor, (error) => {
      if (error?.code === 'EADDRINUSE' && error.syscall === 'listen')
        channel.send({ type: 'thread-port-taken', message: String(error.message) })
    })
  })

  return {
    /** Tells whether the process lives on for one of them; for an idle pool, which is unref()ed, it does not */
    areHolding: (): boolean => [...threads].some(isHolding)
  }
}

/** Node has no public name for it. Returns true where it cannot be known. */
function isHolding (thread: Thread): boolean {
  const handle: { hasRef?: () => boolean } | null | undefined = privateField(thread, 'kHandle')
  // It has ended.
  if (handle === null) return false
  return handle?.hasRef?.() ?? true
}
