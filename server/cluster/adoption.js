import { rmSync } from 'node:fs'
import { takeCrashNote } from '../crashes/note.js'
import { removeNotifySocket } from '../programs/notify-socket.js'
import { controlGroups } from '../system/control-groups.js'
import { isAlive } from '../system/process-identity.js'
import { createOrphanHandle } from './orphan-handle.js'
import { createProgramOrphan, isProgram, processesOfProgram } from './program-orphan.js'

/** @typedef {Omit<import('../lifecycle/state.js').Orphan, 'exit'> & { identity: import('./orphan-handle.js').OrphanIdentity | null | undefined }} SavedWorker */

/**
 * Takes over the workers that another master has left.
 * @param {object} parts
 * @param {Pick<import('../keeper/link.js').KeeperLink, 'exits' | 'reaps'>} [parts.keeper]  tells how they end
 * @param {() => Pick<import('../lifecycle/state.js').LifecycleOptions, 'stop'>} parts.options
 * @param {(worker: number) => number} parts.queueOf  how many connections wait for it alone
 * @param {(worker: number, message: import('../../workers/protocol.js').ToMaster) => void} parts.onMessage
 * @param {ReturnType<typeof import('./exit-evidence.js').createExitEvidence>} parts.exitEvidence
 * @param {(worker: number, exit: import('../lifecycle/loss.js').ToldExit) => void} parts.onExit
 * @param {(worker: number, handle: ReturnType<typeof createOrphanHandle> | ReturnType<typeof createProgramOrphan>) => void} parts.onAdopted
 * @returns {(saved: SavedWorker) => import('../lifecycle/state.js').Orphan}
 */
export function createAdoption ({ keeper, options, queueOf, exitEvidence, onMessage, onExit, onAdopted }) {
  return function adopt ({ identity, ...worker }) {
    const told = keeper?.exits.findLast(({ pid }) => pid === worker.pid)
    const isTold = keeper?.reaps
    const isGone = !identity || (!isAlive(identity) && (told || !isTold))
    const { code = null, signal = null } = told ?? {}
    // Others of a program may run on without its main process.
    if (isGone && processesOfProgram(identity).length === 0) {
      if (identity) rmSync(identity.orderFile, { force: true })
      if (identity && isProgram(identity) && identity.notifyFile !== null) removeNotifySocket(identity.notifyFile)
      return { ...worker, exit: exitEvidence.examine(worker, { code, signal, error: identity ? takeCrashNote(identity.crashFile, code) : null }) }
    }
    const handle = handleOf(worker, /** @type {import('./orphan-handle.js').OrphanIdentity} */ (identity))
    onAdopted(worker.id, handle)
    if (isGone) setImmediate(() => handle.leave({ code, signal }))
    return { ...worker, exit: null }
  }

  /** @param {Pick<SavedWorker, 'id' | 'state'>} worker @param {import('./orphan-handle.js').OrphanIdentity} identity */
  function handleOf ({ id: worker, state }, identity) {
    const { stop: { termGraceMs } } = options()
    const limited = controlGroups.groupOf(identity.pid)
    const common = {
      isTold: keeper?.reaps,
      onMessage: (/** @type {import('../../workers/protocol.js').ToMaster} */ message) => onMessage(worker, message),
      onExit: (/** @type {import('../lifecycle/loss.js').ToldExit} */ exit) => onExit(worker, { ...exit, isOutOfMemory: limited?.end() })
    }
    if (!isProgram(identity)) return createOrphanHandle(identity, common)
    return createProgramOrphan(identity, { ...common, termGraceMs, wasStarting: state === 'starting', queue: () => queueOf(worker) })
  }
}
