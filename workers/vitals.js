import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout } from 'node:timers'

const INTERVAL_MS = 1000
// Each look at the loop wakes the process: 20 ms cost an idle one 0.1 % of a CPU, 10 ms twice that.
const LOOP_RESOLUTION_MS = 20
const NS_PER_MS = 1e6

/**
 * Reports once a second how this worker feels. All workers report at the turn of the wall clock's second, so that their
 * reports cover the same time.
 * @param {object} parts
 * @param {import('./channel.js').Channel} parts.channel
 * @param {ReturnType<typeof import('./requests.js').watchRequests>} parts.requests
 * @param {() => Iterable<{ getConnections: (callback: (error: Error | null, count: number) => void) => unknown }>} parts.servers those that listen
 */
export function sendVitals ({ channel, requests, servers }) {
  const loopDelay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  loopDelay.enable()
  let lastCpu = process.cpuUsage()
  let lastLoop = performance.eventLoopUtilization()
  let lastAt = performance.now()
  let openConnections = 0
  scheduleReport()

  return { send: sendReport }

  function scheduleReport () {
    setTimeout(() => {
      scheduleReport()
      countConnections()
    }, INTERVAL_MS - Date.now() % INTERVAL_MS).unref()
  }

  /** A server answers in the same turn, but by callback; the report goes out with the last answer. */
  function countConnections () {
    let sum = 0
    let waiting = 1
    const onCounted = (/** @type {Error | null} */ _error, /** @type {number} */ count) => {
      sum += count || 0
      if (--waiting > 0) return
      openConnections = sum
      sendReport()
    }
    for (const server of servers()) {
      waiting++
      server.getConnections(onCounted)
    }
    onCounted(null, 0)
  }

  function sendReport () {
    const at = performance.now()
    const cpu = process.cpuUsage()
    const loop = performance.eventLoopUtilization()
    const intervalMs = at - lastAt
    if (intervalMs <= 0) return
    const memory = process.memoryUsage()
    channel.send({
      type: 'vitals',
      intervalMs: roundTo(intervalMs, 10),
      rssBytes: memory.rss,
      heapUsedBytes: memory.heapUsed,
      heapTotalBytes: memory.heapTotal,
      externalBytes: memory.external,
      cpuPercent: roundTo((cpu.user + cpu.system - lastCpu.user - lastCpu.system) / 10 / intervalMs, 10),
      eventLoopUtilization: roundTo(performance.eventLoopUtilization(loop, lastLoop).utilization, 1000),
      loopDelayP50Ms: latenessMs(loopDelay.percentile(50)),
      loopDelayP99Ms: latenessMs(loopDelay.percentile(99)),
      loopDelayMaxMs: latenessMs(loopDelay.max),
      ...requests.take(),
      inFlight: requests.count(),
      openConnections
    })
    loopDelay.reset()
    lastCpu = cpu
    lastLoop = loop
    lastAt = at
  }
}

/** Node measures from one look to the next, which takes the resolution where nothing is late. @param {number} ns */
function latenessMs (ns) {
  return roundTo(Math.max(0, ns / NS_PER_MS - LOOP_RESOLUTION_MS), 1000)
}

/** @param {number} value @param {number} parts of a whole */
function roundTo (value, parts) {
  return Math.round(value * parts) / parts
}
