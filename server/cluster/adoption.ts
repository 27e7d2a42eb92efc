import { rmSync } from 'node:fs'
import { takeCrashNote } from '../crashes/note.ts'
import { removeNotifySocket } from '../programs/notify-socket.ts'
import { controlGroups } from '../system/control-groups.ts'
import { holdsFileOf } from '../../workers/protocol.ts'
import { isAlive } from '../system/process-identity.ts'
import { createOrphanHandle, type OrphanIdentity } from './orphan-handle.ts'
import { createProgramOrphan, isProgram, processesOfProgram } from './program-orphan.ts'
import type { LifecycleOptions, Orphan } from '../lifecycle/state.ts'
import type { KeeperLink } from '../keeper/link.ts'
import type { ToMaster } from '../../workers/protocol.ts'
import type { createExitEvidence } from './exit-evidence.ts'
import type { ToldExit } from '../lifecycle/loss.ts'

export type SavedWorker =
  & Omit<Orphan, 'exit'>
  & { identity: OrphanIdentity | null | undefined }

/** Takes over the workers that another master has left. */
export function createAdoption ({ keeper, options, queueOf, exitEvidence, onMessage, onExit, onAdopted }: {
  /** tells how they end */
  keeper?: Pick<KeeperLink, 'exits' | 'reaps'>,
  options: () => Pick<LifecycleOptions, 'stop'>,
  /** how many connections wait for it alone */
  queueOf: (worker: number) => number,
  onMessage: (worker: number, message: ToMaster) => void,
  exitEvidence: ReturnType<typeof createExitEvidence>,
  onExit: (worker: number, exit: ToldExit) => void,
  onAdopted: (worker: number,
    handle: ReturnType<typeof createOrphanHandle> | ReturnType<typeof createProgramOrphan>) => void
}): (saved: SavedWorker) => Orphan {
  return function adopt ({ identity, ...worker }) {
    const told = keeper?.exits.findLast(({ pid }) => pid === worker.pid)
    const isTold = keeper?.reaps
    const isGone = !identity || (!isAlive(identity) && (told || !isTold))
    const { code = null, signal = null } = told ?? {}
    // Others of a program may run on without its main process.
    if (isGone && processesOfProgram(identity).length === 0) {
      for (const file of identity ? [identity.orderFile, holdsFileOf(identity.orderFile)] : [])
        rmSync(file, { force: true })
      if (identity && isProgram(identity) && identity.notifyFile !== null) removeNotifySocket(identity.notifyFile)
      return { ...worker,
        exit: exitEvidence.examine(worker, { code, signal,
          error: identity ? takeCrashNote(identity.crashFile, code) : null }) }
    }
    const handle = handleOf(worker, identity as OrphanIdentity)
    onAdopted(worker.id, handle)
    if (isGone) setImmediate(() => handle.leave({ code, signal }))
    return { ...worker, exit: null }
  }

  function handleOf ({ id: worker, state }: Pick<SavedWorker, 'id' | 'state'>, identity: OrphanIdentity) {
    const { stop: { termGraceMs } } = options()
    const limited = controlGroups.groupOf(identity.pid)
    const common = { isTold: keeper?.reaps, onMessage: (message: ToMaster) => onMessage(worker, message),
      onExit: (exit: ToldExit) => onExit(worker, { ...exit, isOutOfMemory: limited?.end() }) }
    if (!isProgram(identity)) return createOrphanHandle(identity, common)
    return createProgramOrphan(identity, { ...common, termGraceMs, wasStarting: state === 'starting',
      queue: () => queueOf(worker) })
  }
}
