import { rmSync } from 'node:fs'
import { takeCrashNote } from '../crashes/note.ts'
import { removeNotifySocket } from '../programs/notify-socket.ts'
import { controlGroups } from '../system/control-groups.ts'
import { holdsFileOf } from '../../workers/protocol.ts'
import { isAlive } from '../system/process-identity.ts'
import { createOrphanHandle, type OrphanIdentity } from './orphan-handle.ts'
import { createProgramOrphan, isProgram, processesOfProgram } from './program-orphan.ts'
import type { Orphan } from '../lifecycle/state.ts'
import type { ToMaster } from '../../workers/protocol.ts'
import type { Cluster } from './cluster.ts'
import type { createExits } from './exits.ts'
import type { createMessages } from './messages.ts'
import type { PoolSockets } from './pool-sockets.ts'
import type { ToldExit } from '../lifecycle/loss.ts'

export type SavedWorker =
  & Omit<Orphan, 'exit'>
  & { identity: OrphanIdentity | null | undefined }

/** Takes over the workers that another master has left. */
export function createAdoption (cluster: Pick<Cluster, 'keeper' | 'state' | 'handles'>,
  { exits, messages, sockets }: { exits: Pick<ReturnType<typeof createExits>, 'hear' | 'examine'>,
    messages: Pick<ReturnType<typeof createMessages>, 'hear'>, sockets: Pick<PoolSockets, 'queueOf'> }
): (saved: SavedWorker) => Orphan {
  const { keeper } = cluster

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
        exit: exits.examine(worker, { code, signal,
          error: identity ? takeCrashNote(identity.crashFile, code) : null }) }
    }
    const handle = handleOf(worker, identity as OrphanIdentity)
    cluster.handles.set(worker.id, handle)
    if (isGone) setImmediate(() => handle.leave({ code, signal }))
    return { ...worker, exit: null }
  }

  function handleOf ({ id: worker, state }: Pick<SavedWorker, 'id' | 'state'>, identity: OrphanIdentity) {
    const { stop: { termGraceMs } } = cluster.state.options
    const limited = controlGroups.groupOf(identity.pid)
    const common = { isTold: keeper?.reaps, onMessage: (message: ToMaster) => messages.hear(worker, message),
      onExit: (exit: ToldExit) => exits.hear(worker, { ...exit, isOutOfMemory: limited?.end() }) }
    if (!isProgram(identity)) return createOrphanHandle(identity, common)
    return createProgramOrphan(identity, { ...common, termGraceMs, wasStarting: state === 'starting',
      queue: () => sockets.queueOf(worker) })
  }
}
