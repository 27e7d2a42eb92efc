import cluster from 'node:cluster'
import { readFileSync, readlinkSync, renameSync, writeFileSync } from 'node:fs'
import { clearInterval, setInterval, setTimeout } from 'node:timers'
import { holdsFileOf, parseOrderText, shutdownMessage } from './protocol.ts'
import type { DrainLimits, Holds, OrphanHolds, OrphanOrder, OrphanSettings } from './protocol.ts'
import type { createDrain } from './drain.ts'

const POLL_MS = 100
const HEAR_END_EVERY_MS = 1000
/** The kernel closes the channel a little before the children of a dead process get a new parent. */
const PARENT_CHANGES_WITHIN_MS = 1000
const PARENT_POLL_MS = 5

/**
 * Lets this worker outlive its master: it goes on serving on its own socket until the next master, which has started a
 * replacement by then, tells it to drain by a file, or until none has come for too long.
 * Without it node:cluster ends a worker at once when its primary is gone.
 */
export function outliveMaster (settings: OrphanSettings, { drain, isOfUse }: {
  drain: ReturnType<typeof createDrain>,
  /** one that is still starting ends with its master */
  isOfUse: () => boolean
}) {
  const { worker } = cluster
  const master = process.ppid
  let isOrphan = false
  let isLetGo = false
  let isEnding = false
  /** The last order, as text. */
  let obeyed = ''
  let waiting: NodeJS.Timeout | undefined
  let outlives = settings.outlives
  let keeper = settings.keeper ?? null
  worker?.once('disconnect', () => {
    // The app itself has asked for this worker's end.
    if (worker.exitedAfterDisconnect || !isOfUse()) return
    worker.exitedAfterDisconnect = true
    afterMaster()
  })

  return {
    outlive () {
      outlives = true
    },

    /** The channel ends next, although the process of the master goes on. */
    expectEnd () {
      isLetGo = true
    },

    /** Tells whether there is no master that would end this process now */
    endAlone (): boolean {
      if (isOrphan) endWorker()
      return isOrphan
    },

    /** Writes down what it holds, as nobody hears it. Returns false: its master does. */
    note (holds: Holds): boolean {
      if (isOrphan) writeHolds(holdsFileOf(settings.orderFile), { pid: process.pid, ...holds })
      return isOrphan
    },

    /** Tells whether a SIGTERM that comes is its own */
    isEnding: (): boolean => isEnding,

    /** Drains this worker and ends it. Returns false: its master does that. */
    leave (): boolean {
      if (isOrphan) leaveDraining()
      return isOrphan
    }
  }

  function afterMaster () {
    if (isLetGo) return goOn()
    const until = performance.now() + PARENT_CHANGES_WITHIN_MS
    const timer = setInterval(() => {
      if (process.ppid !== master) {
        clearInterval(timer)
        goOn()
      } else if (performance.now() > until) {
        // The master lives: the app has called process.disconnect(), which ends a worker of node:cluster.
        process.exit()
      }
    }, PARENT_POLL_MS)
  }

  function goOn () {
    isOrphan = true
    // EPIPE: the reader of the output may have ended with the master.
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
    if (drain.isDrained()) return endWorker()
    if (!outlives) leaveDraining()
    let aloneSince = performance.now()
    waitFor(() => {
      const order = readOrder(settings.orderFile)
      if (order?.drain) return obey(order.drain)
      if ((order && isAlive(order.claimedBy)) || hasKeeper()) aloneSince = performance.now()
      if (performance.now() - aloneSince >= settings.afterMs) leaveDraining()
    })
  }

  /** `look`: called until it drains */
  function waitFor (look: () => void) {
    if (isEnding) return
    waiting = setInterval(() => {
      if (!drain.isDraining()) return look()
      clearInterval(waiting)
      waiting = setInterval(hearEnd, HEAR_END_EVERY_MS).unref()
    }, POLL_MS)
  }

  function obey (limits: DrainLimits) {
    obeyed = JSON.stringify(limits)
    drain.start(limits)
  }

  /** The order to drain may have changed: the time of its long-lived connections is over. */
  function hearEnd () {
    const limits = readOrder(settings.orderFile)?.drain
    if (!limits || limits.longLivedMs > 0 || obeyed === JSON.stringify(limits)) return
    obeyed = JSON.stringify(limits)
    drain.endConnections(limits)
  }

  /** A living keeper will start the next master. Once it is gone, its pid may belong to another process. */
  function hasKeeper () {
    if (keeper && process.ppid !== keeper && !isAlive(keeper)) keeper = null
    return keeper !== null
  }

  function leaveDraining () {
    drain.start({ ...settings, isLast: false })
  }

  /** Ends a drained worker as a master would. */
  function endWorker () {
    if (isEnding) return
    isEnding = true
    clearInterval(waiting)
    setTimeout(() => process.kill(process.pid, 'SIGKILL'), settings.termGraceMs).unref()
    process.emit('message', shutdownMessage(settings.message), undefined)
    process.kill(process.pid, 'SIGTERM')
  }
}

function readOrder (file: string): OrphanOrder | null {
  const order = readOr(() => JSON.parse(readFileSync(file, 'utf8'))) ?? readOr(() => parseOrderText(readlinkSync(file)))
  return order?.pid === process.pid ? order : null
}

function writeHolds (file: string, holds: OrphanHolds) {
  try {
    writeFileSync(`${file}.new`, JSON.stringify(holds))
    renameSync(`${file}.new`, file)
  } catch {
    // ENOSPC, or there is no folder, as no master has claimed this worker.
  }
}

function readOr (read: () => OrphanOrder) {
  try {
    return read()
  } catch {
    // ENOENT: no master has claimed this worker. The file is renamed into place, so it is never half written.
    return null
  }
}

function isAlive (pid: number) {
  try {
    return process.kill(pid, 0)
  } catch {
    // ESRCH; EPERM: the pid belongs to another user's process by now.
    return false
  }
}
