import { mkdirSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { holdsFileOf, orderText } from '../../workers/protocol.js'
import { takeCrashNote } from '../crashes/note.js'
import { writeJson } from '../system/json-file.js'
import { signalProcess } from '../system/process-identity.js'
import { createOrphanHolds } from './orphan-holds.js'
import { watchOrphan } from './orphan-watch.js'

/** @typedef {ReturnType<typeof createOrphanHandle>} OrphanHandle */
/** @typedef {import('../system/process-identity.js').ProcessIdentity & import('./worker-handle.js').WorkerFiles} OrphanIdentity */

/**
 * A worker that a dead master has left behind, with the methods of a worker handle. It has no channel: orders reach it by a
 * file, or by SIGTERM if none can be written, and the process table tells whether it lives.
 * @param {OrphanIdentity} identity
 * @param {Pick<Parameters<typeof import('./worker-handle.js').createWorkerHandle>[1], 'onMessage' | 'onExit'> & { isTold?: boolean }} options  `isTold`: whether a keeper tells how it ends
 */
export function createOrphanHandle (identity, { onMessage, onExit, isTold = false }) {
  const { pid, crashFile, orderFile } = identity
  const stopWatching = watchOrphan(identity, { isTold, onGone: () => handle.leave({ code: null, signal: null }) })
  const holds = createOrphanHolds(identity, onMessage)
  /** @type {import('../../workers/protocol.js').OrphanOrder['drain']} */
  let limits = null
  writeOrder(null)

  const handle = {
    identity,

    /** @param {import('../../workers/protocol.js').ToWorker} message what cannot be said by a file is not for orphans */
    tell (message) {
      if (message.type === 'drain') limits = toLimits(message)
      else if (message.type === 'end-connections' && limits) limits = { ...limits, longLivedMs: 0, spreadMs: message.spreadMs, isLast: message.isLast }
      else return
      holds.begin()
      if (!writeOrder(limits)) handle.terminate()
    },

    terminate () { signalProcess(identity, 'SIGTERM') },
    kill () { signalProcess(identity, 'SIGKILL') },

    /** Nothing more is heard of it here. */
    letGo () {
      stopWatching()
      holds.stop()
    },

    /** @param {{ code: number | null, signal: string | null }} exit as the keeper has seen it */
    leave ({ code, signal }) {
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

  /** @param {import('../../workers/protocol.js').OrphanOrder['drain']} drain @returns {boolean} false: it could not be written */
  function writeOrder (drain) {
    /** @type {import('../../workers/protocol.js').OrphanOrder} */
    const content = { pid, claimedBy: process.pid, drain }
    try {
      mkdirSync(path.dirname(orderFile), { recursive: true, mode: 0o700 })
      writeJson(orderFile, content)
      return true
    } catch {
      return linkOrder(content)
    }
  }

  /** A full disk takes no content, but a link, which has its content in its name. @param {import('../../workers/protocol.js').OrphanOrder} order */
  function linkOrder (order) {
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

/** @param {{ type: 'drain' } & import('../../workers/protocol.js').DrainLimits} message @returns {import('../../workers/protocol.js').DrainLimits} */
function toLimits ({ type: _, ...limits }) {
  return limits
}
