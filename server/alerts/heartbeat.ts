import { sendRequest } from './http-post.ts'
import type { EventStream } from '../events/stream.ts'

export type Options = { url?: string, everyMs: number }
type Status = { state: 'starting' | 'running' | 'stopping', readyWorkers: number }

const PATIENCE_MS = 10_000
/** One try that fails is no reason to wake somebody. */
const RETRY_MS = 10_000
/** How soon the service hears that an app is served again. */
const LOOK_MS = 1000

/**
 * Requests an address again and again while the app is served. A host that is gone can tell nobody: the service behind
 * the address calls when it hears nothing. Nobody waits for a try, and its answer is not read.
 */
export function startHeartbeat ({ options, status, events }: {
  /** as they are now */
  options: () => Options,
  status: () => Status,
  events: Pick<EventStream, 'publish'>
},
  { fetch, timers = globalThis }: { fetch?: typeof globalThis.fetch,
    timers?: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'> } = {})
{
  const closing = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  /** the address that did not take the last one */
  let failing: string | null = null
  plan(0)

  return {
    /** The options may have changed. */
    configure: () => plan(0),

    close () {
      closing.abort()
      timers.clearTimeout(timer)
    }
  }

  function plan (ms: number) {
    timers.clearTimeout(timer)
    timer = timers.setTimeout(beat, ms)
  }

  async function beat () {
    const { url, everyMs } = options()
    if (url === undefined) return
    if (!isServed(status())) return plan(LOOK_MS)
    plan(everyMs)
    const { error, canRetry } = await sendRequest({ url, method: 'GET' }, { patienceMs: PATIENCE_MS,
      signal: closing.signal }, fetch)
    if (closing.signal.aborted) return
    tellOutcome(url, error)
    // Else the next one comes about as soon.
    if (error !== null && canRetry && everyMs > PATIENCE_MS + RETRY_MS) plan(RETRY_MS)
  }

  /** The first failure, and the first success after it. */
  function tellOutcome (url: string, error: string | null) {
    const hadFailed = failing === url
    failing = error === null ? null : url
    // All that follows the host may be the key to the check.
    const { origin } = new URL(url)
    if (error !== null && !hadFailed)
      events.publish({ type: 'heartbeat.failed', actor: 'system',
        message: `${origin} did not take the heartbeat: ${error}` })
    if (error === null && hadFailed)
      events.publish({ type: 'heartbeat.recovered', actor: 'system', message: `${origin} takes the heartbeat again` })
  }
}

/** Whoever is woken wants to know that nobody serves. One worker of several that has crashed has alerts of its own. */
function isServed ({ state, readyWorkers }: Status) {
  return state !== 'stopping' && readyWorkers > 0
}
