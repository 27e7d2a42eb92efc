import { addToHelper } from '../programs/helper-link.ts'
import { openNotifySocketAt, type Said } from '../programs/notify-socket.ts'
import { treeOf } from '../system/process-tree.ts'
import { watchOrphan } from './orphan-watch.ts'
import { createProgramEnd } from './program-end.ts'
import { createProgramSockets } from './program-sockets.ts'
import type { OrphanIdentity } from './orphan-handle.ts'
import type { ToldExit } from '../lifecycle/loss.ts'
import type { ToMaster, ToWorker } from '../../workers/protocol.ts'
import type { Handle } from './worker-handle.ts'

type ProgramIdentity =
  & OrphanIdentity
  & { mark: string, notifyFile: string | null, stopSignal: NodeJS.Signals }

/** Tells whether it is another program than Node */
export function isProgram (identity: OrphanIdentity): identity is ProgramIdentity {
  return 'mark' in identity
}

/**
 * A program of another language that a dead master has left behind, with the methods of a worker handle: what it binds
 * from now on is heard here.
 */
export function createProgramOrphan (identity: ProgramIdentity,
  { onExit, onMessage, queue, termGraceMs, wasStarting, isTold = false }: {
    onExit: (exit: ToldExit) => void,
    onMessage: (message: ToMaster) => void,
    /** how many connections wait for it alone */
    queue: () => number,
    termGraceMs: number,
    /** it has served nobody, and may wait for ever for an answer of the dead master */
    wasStarting: boolean,
    /** whether a keeper tells how it ends */
    isTold?: boolean
  })
{
  const sockets = createProgramSockets({ onMessage })
  const helper = addToHelper({ ...sockets.hooks, onSaid: hearSaid })
  if (helper) sockets.answeredBy(helper)
  helper?.isOf(identity)
  helper?.find()
  const notify = identity.notifyFile === null ? null : openNotifySocketAt(identity.notifyFile)
  if (typeof notify?.fd === 'number') helper?.hearNotify(notify.fd)
  const end = createProgramEnd(identity, { stop: { signal: identity.stopSignal, termGraceMs }, queue, onMessage })
  let isGone = false
  let killTimer: NodeJS.Timeout | undefined
  const stopWatching = watchOrphan(identity, { isTold, onGone: () => handle.leave({ code: null, signal: null }) })

  const handle = {
    identity,

    tell (message: ToWorker, own?: Handle) {
      if (message.type === 'socket') sockets.answer(message, own)
      else if (message.type === 'drain' && wasStarting) endSoon()
      else if (message.type === 'drain') end.drain(message)
    },
    terminate: end.terminate,
    kill: end.kill,

    /** Nothing more is heard of it here. */
    letGo () {
      isGone = true
      stopWatching()
      clearTimeout(killTimer)
      notify?.close()
      sockets.close()
    },

    /** `exit`: as the keeper has seen it */
    async leave ({ code, signal }: { code: number | null, signal: string | null }) {
      if (isGone) return
      isGone = true
      stopWatching()
      sockets.close()
      // Those that it has started may not have heard the signal either.
      const { isAsTold } = await end.ended({ code, signal })
      clearTimeout(killTimer)
      notify?.remove()
      onExit({ code, signal, isAsTold, error: null })
    }
  }
  return handle

  function hearSaid ({ isStopping, status }: Said) {
    if (status !== undefined) onMessage({ type: 'status-text', text: status })
    if (isStopping) onMessage({ type: 'stopping' })
  }

  function endSoon () {
    end.terminate()
    killTimer = setTimeout(end.kill, termGraceMs)
  }
}

export function processesOfProgram (identity: OrphanIdentity | null | undefined): number[] {
  return identity && isProgram(identity) ? treeOf(identity).map(({ pid }) => pid) : []
}
