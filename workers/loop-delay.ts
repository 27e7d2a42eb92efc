import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks'

// Each look wakes the process: 50 in a second would be most of what a worker costs that rests.
const RESOLUTION_MS = 20
const NS_PER_MS = 1e6
/** A loop rests once it has been busy for less than that between so many reports in a row. */
const RESTS_BELOW_MS = RESOLUTION_MS
const RESTS_AFTER = 3

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
