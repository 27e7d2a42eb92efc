import { rmSync } from 'node:fs'
import { takeCrashNote } from '../crashes/note.js'
import { isAlive } from '../system/process-identity.js'
import { createOrphanHandle } from './orphan-handle.js'

/** @typedef {Omit<import('../lifecycle/state.js').Orphan, 'exit'> & { identity: import('./orphan-handle.js').OrphanIdentity | null | undefined }} SavedWorker */

/**
 * Takes over the workers that another master has left.
 * @param {object} parts
 * @param {Pick<import('../keeper/link.js').KeeperLink, 'exits' | 'reaps'>} [parts.keeper]  tells how they end
 * @param {() => number} parts.deadlineMs  how long each may drain
 * @param {ReturnType<typeof import('./exit-evidence.js').createExitEvidence>} parts.exitEvidence
 * @param {(worker: number, exit: import('../lifecycle/loss.js').ToldExit) => void} parts.onExit
 * @param {(worker: number, handle: import('./orphan-handle.js').OrphanHandle) => void} parts.onAdopted
 * @returns {(saved: SavedWorker) => import('../lifecycle/state.js').Orphan}
 */
export function createAdoption ({ keeper, deadlineMs, exitEvidence, onExit, onAdopted }) {
  return function adopt ({ identity, ...worker }) {
    const told = keeper?.exits.findLast(({ pid }) => pid === worker.pid)
    const isTold = keeper?.reaps
    const isGone = !identity || (!isAlive(identity) && (told || !isTold))
    if (isGone) {
      const { code = null, signal = null } = told ?? {}
      if (identity) rmSync(identity.orderFile, { force: true })
      return { ...worker, exit: exitEvidence.examine(worker, { code, signal, error: identity ? takeCrashNote(identity.crashFile, code) : null }) }
    }
    onAdopted(worker.id, createOrphanHandle(identity, { deadlineMs: deadlineMs(), isTold, onExit: (exit) => onExit(worker.id, exit) }))
    return { ...worker, exit: null }
  }
}
