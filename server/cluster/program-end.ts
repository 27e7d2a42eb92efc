import { constants } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { createConnectionCounts } from '../system/connection-counts.ts'
import { oneLine } from '../system/one-line.ts'
import { textIn } from '../system/proc.ts'
import { isAlive, signalProcess, type ProcessIdentity } from '../system/process-identity.ts'
import { treeOf, type TreeIdentity } from '../system/process-tree.ts'
import { loadSocketDiagnostics } from '../system/socket-diagnostics.ts'
import { pidsOf } from '../system/tree-usage.ts'
import type { ToMaster } from '../../workers/protocol.ts'

export type Stop = { signal: NodeJS.Signals, termGraceMs: number }

/** How long a client may take to finish a handshake that has begun. */
const HANDSHAKE_MS = 250
/** With it, an old Node has loaded workers/old-node.cjs. */
export const OLD_NODE_VARIABLE = 'CLUSTERDECK_IDLE_GRACE_MS'
const OF_OLD_NODE = new RegExp(`(^|\\0)${OLD_NODE_VARIABLE}=`)
/** A program that does not accept what waits for it is told to end after all. */
const ACCEPTS_WITHIN_MS = 2000
const LOOK_EVERY_MS = 10
/** Counting takes longer, the more there are, so it slows down. */
const COUNTING = { everyMs: 20, slowestMs: 400 }
/** How long the processes that a failed main process has left behind may take to finish their requests. */
const LEFT_GRACE_MS = 2000
const REST_POLL_MS = 50

/**
 * Ends a program of another language, with all that it has started. Its main process is told first, as it knows best
 * what the others have to do; those that it leaves behind get the signal then. A shell leaves all.
 */
export function createProgramEnd (main: TreeIdentity,
  { stop, queue = () => 0, countConnections = (pids) => openConnections(main.pid, pids), onMessage }: {
    stop: Stop,
    /** how many connections wait for it alone */
    queue?: () => number,
    /** begins to count those that are open; `pids`: of all its processes */
    countConnections?: (pids: () => number[]) => () => number,
    /** `crashing`: its main process has failed, and others of it still run */
    onMessage: (message: Extract<ToMaster, { type: 'draining' | 'crashing' }>) => void
  })
{
  let isTold = false
  let isKilled = false
  /** those that belonged to it by the last look */
  let known: ProcessIdentity[] = []

  return {
    /**
     * By now the kernel sends it no new connection. It is told to end once it has accepted those that it was sent
     * before, and they are closed: not every program finishes its requests then.
     * @param how how long open connections are waited for
     */
    async drain ({ idleGraceMs }: { idleGraceMs: number }) {
      onMessage({ type: 'draining' })
      await acceptRest()
      const count = countConnections(() => pidsOf(main.pid))
      const hearsIt = OF_OLD_NODE.test(textIn(`/proc/${main.pid}/environ`))
      if (hearsIt && isWaiting()) signalProcess(main, 'SIGURG')
      // Once it has heard that, it has the time of the lifecycle.
      await waitWhile(() => isWaiting() && count() > 0, { ...COUNTING, atMostMs: hearsIt ? Infinity : idleGraceMs })
      if (isWaiting()) tell()
    },

    /** It has had its time. */
    terminate () {
      if (isTold) signalAll(stop.signal)
      else tell()
    },

    kill () {
      isKilled = true
      signalAll('SIGKILL')
    },

    /** Its main process has ended. Returns once all others have. */
    async ended (
      { code, signal }: { code: number | null, signal: string | null }
    ): Promise<{ isAsTold: boolean, hint?: string }> {
      const wasTold = isTold
      const isUnasked = !isToEnd()
      const [other] = look()
      const name = other && textIn(`/proc/${other.pid}/comm`).trim()
      if (other) {
        if (isUnasked && code !== 0) {
          onMessage({ type: 'crashing', errorName: 'Error',
            errorMessage: `${howEnded({ code, signal })}, and others that it had started still ran` })
          await finishRequests()
        }
        await endRest()
      }
      const hint = other && isUnasked && code === 0 &&
        `it has gone to the background, and left ${
          oneLine(name)
        } (pid ${other.pid}), which is ended: let it run in the foreground, without --daemon and the like (nginx: daemon off)`
      return { ...(hint && { hint }),
        isAsTold: wasTold && (signal === stop.signal || code === 128 + constants.signals[stop.signal]) }
    }
  }

  function isToEnd (): boolean {
    return isTold || isKilled
  }

  /** Tells whether it has not been told to end, and has not ended by itself */
  function isWaiting (): boolean {
    return !isToEnd() && isAlive(main)
  }

  function tell () {
    isTold = true
    // Whoever leaves the tree with a session of its own is found as long as its parent lives.
    look()
    signalProcess(main, stop.signal)
  }

  /** The kernel sends the program no new connection by now. Returns once it has accepted the connections that wait. */
  async function acceptRest () {
    await setTimeout(HANDSHAKE_MS)
    await waitWhile(() => !isToEnd() && queue() > 0, { atMostMs: ACCEPTS_WITHIN_MS, everyMs: LOOK_EVERY_MS })
  }

  /** The main process has gone, and the server, its child, does not know it yet. */
  async function finishRequests () {
    await acceptRest()
    const count = countConnections(() => look().map(({ pid }) => pid))
    await waitWhile(() => !isToEnd() && count() > 0, { ...COUNTING, atMostMs: LEFT_GRACE_MS })
  }

  async function endRest () {
    const killAt = performance.now() + stop.termGraceMs
    // One that is draining has its time from the lifecycle.
    const hasOwnTime = isTold
    const told = new Set()
    do {
      const isLate = isKilled || (!hasOwnTime && performance.now() >= killAt)
      for (const each of known) {
        if (isLate) signalProcess(each, 'SIGKILL')
        else if (!told.has(each.pid)) signalProcess(each, stop.signal)
        told.add(each.pid)
      }
      await setTimeout(REST_POLL_MS)
    } while (known.some(isAlive) || look().length > 0)
  }

  function look () {
    known = treeOf(main, known)
    return known
  }

  function signalAll (signal: NodeJS.Signals) {
    for (const each of look()) signalProcess(each, signal)
  }
}

/** `everyMs`: the first pause between two looks; the next ones are twice as long each, up to `slowestMs` */
async function waitWhile (isSo: () => boolean,
  { atMostMs, everyMs, slowestMs = everyMs }: { atMostMs: number, everyMs: number, slowestMs?: number })
{
  for (let left = atMostMs, ms = everyMs; left > 0 && isSo(); left -= ms, ms = Math.min(2 * ms, slowestMs))
    await setTimeout(Math.min(ms, left))
}

function howEnded ({ code, signal }: { code: number | null, signal: string | null }) {
  return signal !== null ? `its main process was ended by ${signal}` : `its main process ended with code ${code}`
}

/** `pids`: of all its processes. Returns what counts the connections that they have open. */
function openConnections (pid: number, pids: () => number[]): () => number {
  const diagnostics = loadSocketDiagnostics()
  if (!diagnostics) return () => 0
  const count = createConnectionCounts(diagnostics)
  const look = () => count(new Map([[pid, pids()]])).get(pid) ?? 0
  // The first look finds out on which ports it listens.
  look()
  return look
}
