import { clearTimeout, setTimeout } from 'node:timers'

const MAX_INTERVAL_MS = 1000
const MAX_FAILURES_TOLD = 3
/** The progress of the warm-up is told this often. */
const TELL_EVERY_MS = 250

/**
 * Asks the app over HTTP until it answers as it should, then warms it up, before it gets one connection of others.
 * The first of its HTTP servers that listens is asked.
 * @template {{ listening: boolean }} Server
 * @param {import('./protocol.js').ProbeSettings} settings
 * @param {object} parts
 * @param {(server: Server, line: { address: string, timeoutMs: number }) => import('./probe-client.js').ProbeClient} parts.createClient
 * @param {(text: string) => void} parts.onSeen  why it is not ready yet, each time that changes
 * @param {(report: { probe: string, warmupFailed: string | null }) => void} parts.onReady
 */
export function createReadiness (settings, { createClient, onSeen, onReady }) {
  const { path, status, intervalMs, timeoutMs, warmup, warmupRounds } = settings
  /** @type {Map<Server, string>} the URLs of those that have listened, in their order */
  const servers = new Map()
  let lastSeen = ''
  let hasBegun = false
  let isStopped = false
  let isRunning = false
  /** @type {import('./probe-client.js').ProbeClient | null} */
  let client = null
  /** @type {Server | null} whom it asks */
  let target = null
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  return {
    /** @param {Server} server  of HTTP @param {string} address  it listens, or believes so */
    listening (server, address) {
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

  /** @param {string} what a path @param {number} number of this try @param {number} delayMs before the next one */
  async function probePath (what, number, delayMs) {
    const { isWanted, text } = await tryOnce(what, status)
    if (isStopped) return
    if (isWanted) return warmUp([number > 1 ? `${text.head} at try ${number}` : text.head])
    tellSeen(text.whole)
    timer = setTimeout(probePath, delayMs, what, number + 1, Math.min(delayMs * 2, Math.max(intervalMs, MAX_INTERVAL_MS)))
  }

  /** @param {string[]} done */
  async function warmUp (done) {
    const total = warmup.length * warmupRounds
    const startedAt = performance.now()
    let tellAt = startedAt
    /** @type {string[]} */
    const failures = []
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
    if (total > 0) done.push(`${total} warm-up request${total === 1 ? '' : 's'} took ${Math.round(performance.now() - startedAt)} ms`)
    onReady({
      probe: done.join('; '),
      warmupFailed: failures.length === 0 ? null : `${failures.length} of ${total} warm-up requests failed: ${shortenFailures(failures).join('; ')}`
    })
  }

  /** @param {string} what a path @param {string[]} wanted */
  async function tryOnce (what, wanted) {
    try {
      const answer = await mustFindClient().ask(what)
      const head = `GET ${what} answered ${answer.status}`
      return { isWanted: isWithin(answer.status, wanted), text: { head, whole: answer.excerpt ? `${head} (${answer.excerpt})` : head } }
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

  function tellSeen (/** @type {string} */ text) {
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

/** @param {number} status @param {string[]} ranges such as `200` and `200-399` */
function isWithin (status, ranges) {
  return ranges.some((range) => {
    const [from, to = from] = range.split('-').map(Number)
    return status >= from && status <= to
  })
}

/** @param {string[]} failures each one once */
function shortenFailures (failures) {
  return [...new Set(failures)].slice(0, MAX_FAILURES_TOLD)
}
