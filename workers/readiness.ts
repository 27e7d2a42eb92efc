import { clearTimeout, setTimeout } from 'node:timers'
import type { ProbeSettings } from './protocol.ts'
import type { ProbeClient } from './http-client.ts'

const MAX_INTERVAL_MS = 1000
const MAX_FAILURES_TOLD = 3
/** The progress of the warm-up is told this often. */
const TELL_EVERY_MS = 250

/**
 * Asks the app over HTTP until it answers as it should, then warms it up, before it gets one connection of others.
 * The first of its HTTP servers that listens is asked.
 */
export function createReadiness<Server extends { listening: boolean }> (settings: ProbeSettings,
  { createClient, onSeen, onReady }: {
    createClient: (server: Server, line: { address: string, timeoutMs: number }) => ProbeClient,
    /** why it is not ready yet, each time that changes */
    onSeen: (text: string) => void,
    onReady: (report: { probe: string, warmupFailed: string | null }) => void
  })
{
  const { path, status, intervalMs, timeoutMs, warmup, warmupRounds } = settings
  /** the URLs of those that have listened, in their order */
  const servers: Map<Server, string> = new Map()
  let lastSeen = ''
  let hasBegun = false
  let isStopped = false
  let isRunning = false
  let client: ProbeClient | null = null
  /** whom it asks */
  let target: Server | null = null
  let timer: NodeJS.Timeout | undefined

  return {
    /** `server`: of HTTP; `address`: it listens, or believes so */
    listening (server: Server, address: string) {
      servers.set(server, address)
      runProbes()
    },

    /** A server may have opened that can be asked. */
    begin () {
      hasBegun = true
      runProbes()
    },

    /** Stops asking, as this worker will not serve. */
    stop () {
      isStopped = true
      endProbes()
    }
  }

  function runProbes () {
    if (isRunning || isStopped || !hasBegun || servers.size === 0) return
    isRunning = true
    if (path === null) warmUp([])
    else probePath(path, 1, intervalMs)
  }

  /** `what`: a path; `number`: of this try; `delayMs`: before the next one */
  async function probePath (what: string, number: number, delayMs: number) {
    const { isWanted, text } = await tryOnce(what, status)
    if (isStopped) return
    if (isWanted) return warmUp([number > 1 ? `${text.head} at try ${number}` : text.head])
    tellSeen(text.whole)
    timer = setTimeout(probePath, delayMs, what, number + 1,
      Math.min(delayMs * 2, Math.max(intervalMs, MAX_INTERVAL_MS)))
  }

  async function warmUp (done: string[]) {
    const total = warmup.length * warmupRounds
    const startedAt = performance.now()
    let tellAt = startedAt
    const failures: string[] = []
    for (let count = 0; count < total; count++) {
      const each = warmup[count % warmup.length]
      if (performance.now() >= tellAt) {
        tellSeen(`warm-up request ${count + 1} of ${total}: GET ${each}`)
        tellAt = performance.now() + TELL_EVERY_MS
      }
      const { isWanted, text } = await tryOnce(each, ['100-499'])
      if (isStopped) return
      if (!isWanted) failures.push(text.whole)
    }
    endProbes()
    if (total > 0)
      done.push(
        `${total} warm-up request${total === 1 ? '' : 's'} took ${Math.round(performance.now() - startedAt)} ms`
      )
    onReady({ probe: done.join('; '),
      warmupFailed: failures.length === 0
        ? null
        : `${failures.length} of ${total} warm-up requests failed: ${shortenFailures(failures).join('; ')}` })
  }

  /** `what`: a path */
  async function tryOnce (what: string, wanted: string[]) {
    try {
      const answer = await mustFindClient().ask(what)
      const head = `GET ${what} answered ${answer.status}`
      return { isWanted: isWithin(answer.status, wanted),
        text: { head, whole: answer.excerpt ? `${head} (${answer.excerpt})` : head } }
    } catch (error) {
      const whole = `GET ${what}: ${error instanceof Error ? error.message : error}`
      return { isWanted: false, text: { head: whole, whole } }
    }
  }

  /** Picks a server to ask: the app may have closed the last one. */
  function mustFindClient () {
    const [server, address] = [...servers].find(([each]) => each.listening) ?? []
    if (!server || address === undefined) throw new Error('no HTTP server listens any more')
    if (client && server === target) return client
    client?.close()
    target = server
    client = createClient(server, { address, timeoutMs })
    return client
  }

  function tellSeen (text: string) {
    if (text === lastSeen) return
    lastSeen = text
    onSeen(text)
  }

  function endProbes () {
    clearTimeout(timer)
    client?.close()
    client = null
    target = null
    servers.clear()
  }
}

/** `ranges`: such as `200` and `200-399` */
function isWithin (status: number, ranges: string[]) {
  return ranges.some((range) => {
    const [from, to = from] = range.split('-').map(Number)
    return status >= from && status <= to
  })
}

/** `failures`: each one once */
function shortenFailures (failures: string[]) {
  return [...new Set(failures)].slice(0, MAX_FAILURES_TOLD)
}
