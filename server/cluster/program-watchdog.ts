import { createHeartbeat, queuedMs } from '../system/heartbeat.ts'

const TICK_MS = 500
/** A heartbeat knows several; here it is one. */
const PROGRAM = 1

/**
 * Finds out when a program that says now and then that it lives does so no more. One that has never said so is not
 * watched.
 */
export function createProgramWatchdog ({ pid, timeoutMs, onSilent, onAnswered, now = () => performance.now() }: {
  pid: () => number,
  /** 0: nobody watches */
  timeoutMs: number,
  onSilent: (silentMs: number) => void,
  /** it has been silent before */
  onAnswered: () => void,
  /** monotonic, ms */
  now?: () => number
}) {
  const heartbeat = createHeartbeat({ timeoutMs, tickMs: TICK_MS, queuedMs: () => queuedMs(pid()) })
  let isOver = timeoutMs === 0
  let timer: NodeJS.Timeout | undefined

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
