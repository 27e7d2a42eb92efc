import { subscribe } from 'node:diagnostics_channel'
import { errorMonitor } from 'node:events'
import { clearTimeout, setTimeout } from 'node:timers'
import { privateField } from './private-field.ts'
import type { Worker as Thread } from 'node:worker_threads'
import type { Channel } from './channel.ts'

const FIRST_LOOK_MS = 250
const LOOK_EVERY_MS = 1000
/** After so long without work a process loads nothing any more. */
const IDLE_MS = 5000
/** Above this share of the time between two checks the process counts as working. */
const IDLE_UTILIZATION = 0.3
/** Resources that a starting program waits for: files, names, connections that open, a child such as a migration. */
const STARTS = /^(FS|GetAddrInfo|GetNameInfo|Query|Connect|TCPConnect|PipeConnect|Process|Zlib|Random|Scrypt|PBKDF2)/
/** Modules of Node that only servers and their clients need; clusterdeck loads none of them before the app does. */
const SERVERS = ['NativeModule _http_server', 'NativeModule internal/http2/core']

/**
 * Tells what keeps this process running for as long as it does not listen: an app that is no server, a bot say, has
 * timers, connections or children all the same. `isIdle`: it has done nothing but wait for a while, and holds no code
 * of an HTTP server, so it is not one that is slow to start.
 * @param how `onIdle`: it has bound a port of UDP, and nothing comes after that
 */
export function tellActivity (channel: Channel,
  { servesDatagrams, onIdle }: { servesDatagrams: () => boolean, onIdle: () => void })
{
  const threads = watchThreads(channel)
  let told = ''
  let before = performance.eventLoopUtilization()
  let idleSince = performance.now()
  let timer = setTimeout(lookAtResources, FIRST_LOOK_MS).unref()

  return { stop () {
    clearTimeout(timer)
  } }

  function lookAtResources () {
    const now = performance.eventLoopUtilization()
    // Node would wait for these. Each kind is named once.
    const resources = [...new Set([...process.getActiveResourcesInfo(), ...(threads.areHolding() ? ['Thread'] : [])])]
      .sort()
    const { utilization } = performance.eventLoopUtilization(now, before)
    if (utilization > IDLE_UTILIZATION || resources.some((each) => STARTS.test(each)) ||
      (holdsServer() && !servesDatagrams())) idleSince = performance.now()
    const isIdle = performance.now() - idleSince >= IDLE_MS
    if (isIdle && servesDatagrams()) return onIdle()
    const text = `${resources} ${isIdle}`
    if (text !== told) channel.send({ type: 'active', resources, isIdle })
    told = text
    before = now
    timer = setTimeout(lookAtResources, LOOK_EVERY_MS).unref()
  }
}

/** Tells whether the code of a server of HTTP is loaded */
export function holdsServer (): boolean {
  const { moduleLoadList } = process
  return moduleLoadList === undefined || SERVERS.some((name) => moduleLoadList.includes(name))
}

/**
 * The threads that the app starts. Node names none of them among the active resources of a process, and a server in one
 * is no server of this process: node:cluster knows nothing of it.
 */
function watchThreads (channel: Channel) {
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
