import { CLOSE_MS } from './endings.ts'
import type { DrainLimits, Holds } from './protocol.ts'
import type { createOpenWork } from './open-work.ts'

/** What is held is told when it changes, but not more often than this, and after so long again, as a sign of life. */
const TELL_EVERY_MS = 1000
const TELL_AGAIN_MS = 2000

/**
 * Holds a draining worker to its limits: requests go on until the deadline, transfers and long-lived connections for
 * longer.
 */
export function createDrainLimits ({ limits, work, onEnd, onHolds, onOverdue, now = () => performance.now() }: {
  limits: DrainLimits,
  work: Pick<ReturnType<typeof createOpenWork>, 'look' | 'cutIdle' | 'cutRequests' | 'cutConnections' | 'longLived'>,
  /** the time of sessions is over */
  onEnd: () => void,
  onHolds: (holds: Holds) => void,
  /** called again and again: the deadline has passed, and nothing that is left may stay */
  onOverdue: () => void,
  now?: () => number
}) {
  const { longLived } = work
  const { deadlineMs, longLivedMs, isLast } = limits
  const areKept = longLivedMs > 0
  // What may not stay ends by itself in half of the time, if it can: an answer can come as a stream of events too.
  const endsAfterMs = areKept || isLast ? longLivedMs : deadlineMs / 2
  // The last of their clients is to have time to answer before the deadline.
  const spreadMs = areKept
    ? limits.spreadMs
    : Math.min(limits.spreadMs, deadlineMs - endsAfterMs - Math.min(CLOSE_MS, deadlineMs / 5))
  const beganAt = now()
  let isEnding = false
  let haveSessionsEnded = false
  let transfersUntilMs = Infinity
  /**
   * Something could stay at the deadline, so from then on what may not is cut on its own, and the worker is never
   * overdue.
   */
  let hasKept = false
  let told = ''
  let toldAt = -Infinity

  return {
    endLongLived,

    /** Called again and again. `sessions`: of this worker, which still gets their connections. */
    look (sessions: number) {
      const found = work.look()
      if (now() - beganAt >= longLivedMs) endSessions()
      if (!isEnding && now() - beganAt >= endsAfterMs) endLongLived({ spreadMs, isLast })
      work.cutIdle()
      if (now() - beganAt >= deadlineMs) endOverdue(found, sessions)
      tellHolds({ requests: found.waiting.length, transfers: found.transfers.length, ...longLived.counts, sessions })
    }
  }

  function endLongLived (how: { spreadMs: number, isLast: boolean }) {
    isEnding = true
    transfersUntilMs = Math.max(deadlineMs, now() - beganAt + how.spreadMs)
    longLived.end(how)
    endSessions()
  }

  function endSessions () {
    if (haveSessionsEnded) return
    haveSessionsEnded = true
    onEnd()
  }

  /** Where others may stay, only what has had its time is cut. */
  function endOverdue ({ waiting, transfers }: ReturnType<typeof work.look>, sessions: number) {
    const mayMove = now() - beganAt < transfersUntilMs
    if (!hasKept && (!mayMove || transfers.length === 0) && longLived.count() + sessions === 0) return onOverdue()
    hasKept = true
    work.cutRequests(waiting, deadlineMs)
    if (!mayMove) work.cutRequests(transfers, deadlineMs, { areMoving: true })
    work.cutConnections(deadlineMs)
  }

  function tellHolds (holds: Holds) {
    const text = JSON.stringify(holds)
    if (now() - toldAt < (text === told ? TELL_AGAIN_MS : TELL_EVERY_MS)) return
    told = text
    toldAt = now()
    onHolds(holds)
  }
}
