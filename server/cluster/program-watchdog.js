import { createHeartbeat, queuedMs } from '../system/heartbeat.js'

const TICK_MS = 500
/** A heartbeat knows several; here it is one. */
const PROGRAM = 1

/**
 * Finds out when a program that says now and then that it lives does so no more. One that has never said so is not watched.
 * @param {object} parts
 * @param {() => number} parts.pid
 * @param {number} parts.timeoutMs  0: nobody watches
 * @param {(silentMs: number) => void} parts.onSilent
 * @param {() => void} parts.onAnswered  it has been silent before
 * @param {() => number} [parts.now] monotonic, ms
 */
export function createProgramWatchdog ({ pid, timeoutMs, onSilent, onAnswered, now = () => performance.now() }) {
  const heartbeat = createHeartbeat({ timeoutMs, tickMs: TICK_MS, queuedMs: () => queuedMs(pid()) })
  let isOver = timeoutMs === 0
  /** @type {NodeJS.Timeout | undefined} */
  let timer

  return {
    /** It has said so. */
    hears () {
      if (isOver) return
      timer ??= lookLater()
      if (heartbeat.heard(PROGRAM)) onAnswered()
    },

    /** It is told to end, or has ended. */
    stop () {
      isOver = true
      clearTimeout(timer)
    }
  }

  function lookLater () {
    return setTimeout(() => {
      for (const { silentMs } of heartbeat.tick(now(), [PROGRAM])) onSilent(silentMs)
      if (!isOver) timer = lookLater()
    }, TICK_MS).unref()
  }
}
