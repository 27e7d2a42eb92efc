import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { holdsFileOf, orderText, type DrainLimits, type OrphanOrder, type ToWorker } from '../../workers/protocol.ts'
import { takeCrashNote } from '../crashes/note.ts'
import { writeJson } from '../system/json-file.ts'
import { signalProcess, type ProcessIdentity } from '../system/process-identity.ts'
import { createOrphanHolds } from './orphan-holds.ts'
import { watchOrphan } from './orphan-watch.ts'
import type { WorkerFiles, createWorkerHandle } from './worker-handle.ts'

export type OrphanHandle = ReturnType<typeof createOrphanHandle>
export type OrphanIdentity =
  & ProcessIdentity
  & WorkerFiles

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
    try {
      mkdirSync(path.dirname(orderFile), { recursive: true, mode: 0o700 })
      writeJson(orderFile, content)
      return true
    } catch {
      return linkOrder(content)
    }
  }

  /** A full disk takes no content, but a link, which has its content in its name. */
  function linkOrder (order: OrphanOrder) {
    try {
      rmSync(`${orderFile}.new`, { force: true })
      symlinkSync(orderText(order), `${orderFile}.new`)
      renameSync(`${orderFile}.new`, orderFile)
      return true
    } catch {
      // EROFS and the like.
      return false
    }
  }
}

function toLimits ({ type: _, ...limits }: { type: 'drain' } & DrainLimits): DrainLimits {
  return limits
}
