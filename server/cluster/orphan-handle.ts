import { mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { succeeds } from '../errors.ts'
import { holdsFileOf, orderText, type DrainLimits, type Holds, type OrphanOrder,
  type ToWorker } from '../../workers/protocol.ts'
import { takeCrashNote } from '../crashes/note.ts'
import { writeJson } from '../system/json-file.ts'
import { signalProcess, type ProcessIdentity } from '../system/process-identity.ts'
import { watchOrphan } from './orphan-watch.ts'
import { toHolds } from './told-counts.ts'
import type { WorkerFiles, createWorkerHandle } from './worker-handle.ts'

export type OrphanHandle = ReturnType<typeof createOrphanHandle>
export type OrphanIdentity =
  & ProcessIdentity
  & WorkerFiles

const READ_EVERY_MS = 2000

/**
 * A worker that a dead master has left behind, with the methods of a worker handle. It has no channel: orders reach it
 * by a file, or by SIGTERM if none can be written, and the process table tells whether it lives.
 * @param options `isTold`: whether a keeper tells how it ends
 */
export function createOrphanHandle (identity: OrphanIdentity,
  { onMessage, onExit, isTold = false }: Pick<Parameters<typeof createWorkerHandle>[1], 'onMessage' | 'onExit'> & {
    isTold?: boolean
  })
{
  const { pid, crashFile, orderFile } = identity
  const stopWatching = watchOrphan(identity, { isTold, onGone: () => handle.leave({ code: null, signal: null }) })
  const holds = createOrphanHolds(identity, onMessage)
  let limits: OrphanOrder['drain'] = null
  writeOrder(null)

  const handle = {
    identity,

    /** `message`: what cannot be said by a file is not for orphans */
    tell (message: ToWorker) {
      if (message.type === 'drain') limits = toLimits(message)
      else if (message.type === 'end-connections' && limits)
        limits = { ...limits, longLivedMs: 0, spreadMs: message.spreadMs, isLast: message.isLast }
      else return
      holds.begin()
      if (!writeOrder(limits)) handle.terminate()
    },

    terminate () {
      signalProcess(identity, 'SIGTERM')
    },
    kill () {
      signalProcess(identity, 'SIGKILL')
    },

    /** Nothing more is heard of it here. */
    letGo () {
      stopWatching()
      holds.stop()
    },

    /** `exit`: as the keeper has seen it */
    leave ({ code, signal }: { code: number | null, signal: string | null }) {
      stopWatching()
      holds.stop()
      withdrawOrder()
      onExit({ code, signal, error: takeCrashNote(crashFile, code) })
    }
  }
  return handle

  function withdrawOrder () {
    try {
      rmSync(orderFile, { force: true })
      rmSync(holdsFileOf(orderFile), { force: true })
    } catch {
      // EROFS and the like: it names a pid that has ended, so nobody obeys it.
    }
  }

  /** False: it could not be written */
  function writeOrder (drain: OrphanOrder['drain']): boolean {
    const content: OrphanOrder = { pid, claimedBy: process.pid, drain }
    return succeeds(() => {
      mkdirSync(path.dirname(orderFile), { recursive: true, mode: 0o700 })
      writeJson(orderFile, content)
    }) || linkOrder(content)
  }

  /** A full disk takes no content, but a link, which has its content in its name. */
  function linkOrder (order: OrphanOrder) {
    // EROFS and the like.
    return succeeds(() => {
      rmSync(`${orderFile}.new`, { force: true })
      symlinkSync(orderText(order), `${orderFile}.new`)
      renameSync(`${orderFile}.new`, orderFile)
    })
  }
}

function toLimits ({ type: _, ...limits }: { type: 'drain' } & DrainLimits): DrainLimits {
  return limits
}

/** Reads what a draining worker without a channel still has. It writes that again and again as a sign of life. */
function createOrphanHolds ({ pid, orderFile }: { pid: number, orderFile: string },
  onHolds: (report: { type: 'holds' } & Holds) => void)
{
  const file = holdsFileOf(orderFile)
  let timer: NodeJS.Timeout | undefined
  let readAtMs = 0

  return { begin () {
    timer ??= setInterval(readFile, READ_EVERY_MS)
  }, stop () {
    clearInterval(timer)
  } }

  function readFile () {
    try {
      const { mtimeMs } = statSync(file)
      if (mtimeMs === readAtMs) return
      readAtMs = mtimeMs
      const report = JSON.parse(readFileSync(file, 'utf8'))
      if (report.pid === pid) onHolds({ type: 'holds', ...toHolds(report) })
    } catch {
      // ENOENT: it has not written yet. It may be half written, too.
    }
  }
}
