import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks'
import { lookAtTurnOfSecond } from './look-together.ts'
import type { Channel } from './channel.ts'
import type { watchRequests } from './requests.ts'

// Each look wakes the process: 50 in a second would be most of what a worker costs that rests.
const RESOLUTION_MS = 20

const NS_PER_MS = 1e6
/** A loop rests once it has been busy for less than that between so many reports in a row. */
const RESTS_BELOW_MS = RESOLUTION_MS

const RESTS_AFTER = 3

/**
 * Reports once a second how this worker feels. All workers report at the turn of the wall clock's second, so that their
 * reports cover the same time.
 */
export function sendVitals ({ channel, requests, servers }: {
  channel: Channel,
  requests: ReturnType<typeof watchRequests>,
  /** those that listen */
  servers: () => Iterable<{ getConnections: (callback: (error: Error | null, count: number) => void) => unknown }>
}) {
  const loopDelay = createLoopDelay()
  let lastCpu = process.cpuUsage()
  let lastLoop = performance.eventLoopUtilization()
  let lastAt = performance.now()
  let openConnections = 0
  lookAtTurnOfSecond(countConnections)

  return { send: sendReport }

  /** A server answers in the same turn, but by callback; the report goes out with the last answer. */
  function countConnections () {
    let sum = 0
    let waiting = 1
    const onCounted = (_error: Error | null, count: number) => {
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
    const { active, utilization } = performance.eventLoopUtilization(loop, lastLoop)
    channel.send({ type: 'vitals', intervalMs: roundTo(intervalMs, 10), rssBytes: memory.rss,
      heapUsedBytes: memory.heapUsed, heapTotalBytes: memory.heapTotal, externalBytes: memory.external,
      cpuPercent: roundTo((cpu.user + cpu.system - lastCpu.user - lastCpu.system) / 10 / intervalMs, 10),
      eventLoopUtilization: roundTo(utilization, 1000), ...loopDelay.take(active), ...requests.take(),
      inFlight: requests.count(), openConnections })
    lastCpu = cpu
    lastLoop = loop
    lastAt = at
  }
}

/** `parts`: of a whole */
function roundTo (value: number, parts: number) {
  return Math.round(value * parts) / parts
}

/**
 * How late timers are. A loop that rests is not looked at: no timer was later there than the loop was busy in all, if
 * the process had its CPU.
 */
export function createLoopDelay (
  monitor: (options: { resolution: number }) => IntervalHistogram = monitorEventLoopDelay
) {
  const looks = monitor({ resolution: RESOLUTION_MS })
  let isLooking = looks.enable()
  let reportsAtRest = 0

  return {
    /** `busyMs`: of the loop, since it was asked the last time. Returns since then. */
    take (busyMs: number): { loopDelayP50Ms: number, loopDelayP99Ms: number, loopDelayMaxMs: number } {
      const [p50, p99, max] = isLooking
        ? [looks.percentile(50), looks.percentile(99), looks.max].map(latenessMs)
        : [0, busyMs, busyMs].map(toMicroseconds)
      reportsAtRest = busyMs < RESTS_BELOW_MS ? reportsAtRest + 1 : 0
      isLooking = reportsAtRest < RESTS_AFTER
      if (isLooking) looks.enable()
      else looks.disable()
      looks.reset()
      return { loopDelayP50Ms: p50, loopDelayP99Ms: p99, loopDelayMaxMs: max }
    }
  }
}

/** Node measures from one look to the next, which takes the resolution where nothing is late. */
function latenessMs (ns: number) {
  return toMicroseconds(Math.max(0, ns / NS_PER_MS - RESOLUTION_MS))
}

function toMicroseconds (ms: number) {
  return Math.round(ms * 1000) / 1000
}
