import { createLoopDelay } from './loop-delay.ts'
import { lookAtTurnOfSecond } from './look-together.ts'
import type { Channel } from './channel.ts'
import type { watchRequests } from './requests.ts'

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
