import { addToHelper } from '../programs/helper-link.js'
import { openNotifySocketAt } from '../programs/notify-socket.js'
import { treeOf } from '../system/process-tree.js'
import { watchOrphan } from './orphan-watch.js'
import { createProgramEnd } from './program-end.js'
import { createProgramSockets } from './program-sockets.js'

/** @typedef {import('./orphan-handle.js').OrphanIdentity & { mark: string, notifyFile: string | null, stopSignal: NodeJS.Signals }} ProgramIdentity */

/** @param {import('./orphan-handle.js').OrphanIdentity} identity @returns {identity is ProgramIdentity} whether it is another program than Node */
export function isProgram (identity) {
  return 'mark' in identity
}

/**
 * A program of another language that a dead master has left behind, with the methods of a worker handle: what it binds from
 * now on is heard here.
 * @param {ProgramIdentity} identity
 * @param {object} parts
 * @param {(exit: import('../lifecycle/loss.js').ToldExit) => void} parts.onExit
 * @param {(message: import('../../workers/protocol.js').ToMaster) => void} parts.onMessage
 * @param {() => number} parts.queue  how many connections wait for it alone
 * @param {number} parts.termGraceMs
 * @param {boolean} parts.wasStarting  it has served nobody, and may wait for ever for an answer of the dead master
 * @param {boolean} [parts.isTold]  whether a keeper tells how it ends
 */
export function createProgramOrphan (identity, { onExit, onMessage, queue, termGraceMs, wasStarting, isTold = false }) {
  const sockets = createProgramSockets({ onMessage })
  const helper = addToHelper({ ...sockets.hooks, onSaid: hearSaid })
  if (helper) sockets.answeredBy(helper)
  helper?.isOf(identity)
  helper?.find()
  const notify = identity.notifyFile === null ? null : openNotifySocketAt(identity.notifyFile)
  if (typeof notify?.fd === 'number') helper?.hearNotify(notify.fd)
  const end = createProgramEnd(identity, { stop: { signal: identity.stopSignal, termGraceMs }, queue, onMessage })
  let isGone = false
  /** @type {NodeJS.Timeout | undefined} */
  let killTimer
  const stopWatching = watchOrphan(identity, { isTold, onGone: () => handle.leave({ code: null, signal: null }) })

  const handle = {
    identity,

    /** @param {import('../../workers/protocol.js').ToWorker} message @param {import('./worker-handle.js').Handle} [own] */
    tell (message, own) {
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

    /** @param {{ code: number | null, signal: string | null }} exit as the keeper has seen it */
    async leave ({ code, signal }) {
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

  /** @param {import('../programs/notify-socket.js').Said} said */
  function hearSaid ({ isStopping, status }) {
    if (status !== undefined) onMessage({ type: 'status-text', text: status })
    if (isStopping) onMessage({ type: 'stopping' })
  }

  function endSoon () {
    end.terminate()
    killTimer = setTimeout(end.kill, termGraceMs)
  }
}

/** @param {import('./orphan-handle.js').OrphanIdentity | null | undefined} identity @returns {number[]} */
export function processesOfProgram (identity) {
  return identity && isProgram(identity) ? treeOf(identity).map(({ pid }) => pid) : []
}
