import { setTimeout } from 'node:timers/promises'
import { COMMAND, wrapMessage, shutdownMessage, unwrapMessage } from '../../workers/protocol.ts'
import { takeCrashNote } from '../crashes/note.ts'
import { guardChannel } from '../system/channel-guard.ts'
import { listChildren, type ChildProcess } from '../system/children.ts'
import { identifyProcess, isAlive } from '../system/process-identity.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { toUnfinished } from './told-counts.ts'
import type { Worker } from 'node:cluster'
import type { Socket } from 'node:net'
import type { Envelope, ShutdownMessage, ToMaster, ToWorker } from '../../workers/protocol.ts'
import type { ToldExit } from '../lifecycle/loss.ts'
import type { DatagramHandle, SocketHandle } from '../../workers/node-internals.d.ts'
import type { OperatorMessage } from './operator-messages.ts'
import type { Exit } from '../keeper/link.ts'

export type WorkerHandle = ReturnType<typeof createWorkerHandle>
export type Handle = SocketHandle | DatagramHandle

/** How long the channel of a process that has ended is read on, where a child of it keeps that open. */
const LAST_WORDS_MS = 200
/** How long what a worker has started gets to end with it. */
const CHILDREN_END_WITHIN_MS = 200
/** Messages of operators that wait in this process, for a worker that does not read its channel. */
const MAX_UNSENT = 100

/**
 * What the worker's side of node:cluster may say to its primary. Anything else would have that bind sockets of its own,
 * or throw: it shares no socket here, so its policy of scheduling does not matter.
 */
const CLUSTER_ACTS: readonly unknown[] = Object.freeze(['online', 'exitedAfterDisconnect'])

/**
 * The master's view of one worker process: what can be told to it, and what is heard from it.
 * Every send is guarded: the process may be gone, and its 'exit' says so.
 */
export function createWorkerHandle (worker: Worker, hooks: {
  onOnline: () => void,
  onMessage: (message: ToMaster) => void,
  /** one of the app's own */
  onAppMessage: (message: unknown) => void,
  /** of a message that was dropped */
  onInvalidMessage: (reason: string) => void,
  /** before anything is read of its end; `onExit` follows in the same turn */
  onEnded?: (exit: { code: number | null, signal: string | null }) => void,
  onExit: (exit: ToldExit) => void,
  /** how many connections wait for it alone */
  queue?: () => number,
  /** to this socket, whoever serves at its address; null: it is in no group */
  connect?: (inode: number) => Socket | null
}, { crashFile, orderFile }: WorkerFiles, { message = 'object' }: { message?: ShutdownMessage }) {
  const { onOnline, onMessage, onAppMessage, onInvalidMessage, onEnded = () => {}, onExit } = hooks
  const { process: child } = worker
  guardChannel(child, {
    isExpected: ({ cmd, act }) => cmd === COMMAND || (cmd === 'NODE_CLUSTER' && CLUSTER_ACTS.includes(act)),
    onInvalidMessage: (reason) => {
      if (!isLetGo) onInvalidMessage(reason)
    }
  })
  const identity = child.pid === undefined ? null : identifyProcess(child.pid)
  let isGone = false
  let isLetGo = false
  let unsent = 0
  let crashNote: unknown
  let isToGo = false
  /** What ends with it, as it has said itself. */
  let unfinished: ToldExit['unfinished'] = null
  /** What it had started when it was told to end. */
  let children: ChildProcess[] = []
  /** what waits until the worker can hear it; null: it can */
  let unheard: (() => void)[] | null = []

  worker.once('online', () => {
    if (!isLetGo) onOnline()
  })
  worker.on('message', (message) => {
    if (!isLetGo) onAppMessage(message)
  })
  child.on('internalMessage', (message: Envelope<ToMaster>) => {
    const body = isLetGo ? null : unwrapMessage(message)
    if (body?.type === 'hello') deliverUnheard()
    else if (body?.type === 'crash-note') crashNote = body.note
    else if (body?.type === 'unfinished') unfinished = toUnfinished(body)
    else if (body) onMessage(body)
  })
  child.once('exit', (code, signal) => {
    // What it has sent of its end may still be on its way: the kernel closes the channel before it tells of the end,
    // but a child may have it open.
    const mayHear = (code || (code === 0 && isToGo)) && child.connected
    const error = mayHear ? takeCrashNote(crashFile, code, crashNote) : null
    const waits = []
    if (mayHear && !error)
      waits.push(waitAtMost(new Promise((resolve) => child.once('disconnect', resolve)), LAST_WORDS_MS))
    if (children.some(isAlive)) waits.push(setTimeout(CHILDREN_END_WITHIN_MS))
    const reportExit = () => onGone({ code, signal, error: error ?? takeCrashNote(crashFile, code, crashNote) })
    if (waits.length > 0) return Promise.all(waits).then(reportExit)
    if (!isGone && !isLetGo) onEnded({ code, signal })
    reportExit()
  })
  // A process that could not be spawned has no 'exit'; a failed send is answered by the 'exit' to come.
  worker.on('error', (error) => {
    if (child.pid === undefined)
      onGone({ code: null, signal: null, error: { errorName: error.name, errorMessage: error.message, stack: null } })
  })

  return {
    /** What it takes for another master to look after it. */
    identity: identity && { ...identity, crashFile, orderFile },

    tell (message: ToWorker, handle?: Handle) {
      isToGo ||= message.type === 'drain'
      const sendEnvelope = () => sendToChild(wrapMessage(message), handle)
      if (unheard) unheard.push(sendEnvelope)
      else sendEnvelope()
    },

    /** `message`: for the app's own listeners. Returns whether it is on its way. */
    pass (message: OperatorMessage): boolean {
      if (unheard || !child.connected || unsent === MAX_UNSENT) return false
      unsent++
      child.send(message, undefined, undefined, () => {
        unsent--
      })
      return true
    },

    /** The app hears that its time has come, by message and by signal. */
    terminate () {
      noteChildren()
      sendToChild(shutdownMessage(message))
      sendToChild(wrapMessage({ type: 'terminate' }))
      child.kill('SIGTERM')
    },

    kill () {
      noteChildren()
      child.kill('SIGKILL')
    },

    /** It serves on by itself, and nothing more is heard of it here. Returns how it ends. */
    letGo (): Promise<Exit> {
      isLetGo = true
      if (child.connected)
        child.send(wrapMessage({ type: 'serve-alone' }), undefined, undefined, () => {
          if (child.connected) child.disconnect()
        })
      const pid = Number(child.pid)
      if (child.exitCode !== null || child.signalCode !== null)
        return Promise.resolve({ pid, code: child.exitCode, signal: child.signalCode })
      return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ pid, code, signal })))
    }
  }

  function deliverUnheard () {
    const waiting = unheard ?? []
    unheard = null
    for (const deliver of waiting) deliver()
  }

  function sendToChild (message: object | string, handle: Handle | undefined = undefined) {
    // ERR_IPC_CHANNEL_CLOSED, EPIPE: already dead.
    if (child.connected) child.send(message, handle, undefined, () => {})
  }

  function noteChildren () {
    const hasEnded = child.exitCode !== null || child.signalCode !== null
    if (child.pid !== undefined && !hasEnded) children = listChildren(child.pid)
  }

  function onGone (exit: Omit<ToldExit, 'unfinished' | 'left'>) {
    if (isGone || isLetGo) return
    isGone = true
    onExit({ ...exit, unfinished, left: children.filter(isAlive) })
  }
}

/** what it may leave behind, and where it is told to go once its master is dead */
export type WorkerFiles = { crashFile: string, orderFile: string }
