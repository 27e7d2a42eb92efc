import type { ChildProcess } from 'node:child_process'

/** A connection that was refused before waits this long: nobody else can take it then. */
const AGAIN_MS = 10

/**
 * With round-robin the primary of node:cluster hands connections to every worker that listens. Until one is to have
 * any, what the primary would send to it is refused on its behalf, as a worker does that has just closed its server:
 * then another worker gets the connection, or it waits in the primary.
 * @param child a worker's process, as node:cluster has it
 * @param workers all that may get a connection, this one too
 * @returns lets connections through from now on
 */
export function refuseUntilReady (child: ChildProcess,
  workers: Iterable<{ process: ChildProcess, isConnected: () => boolean }>): () => void
{
  const { send } = child
  const refused: WeakSet<object> = new WeakSet()
  /** The numbers that the primary waits for. */
  const waiting: Set<number> = new Set()
  let isGone = false

  child.send = function (...args: [unknown, object?, ...unknown[]]) {
    const [message, handle] = args
    if (!handle || !isConnection(message)) return Reflect.apply(send, child, args)
    answerLater(message.seq, handle)
    return true
  }
  child.once('disconnect', onDisconnect)
  return acceptConnections

  function acceptConnections () {
    child.send = send
    child.off('disconnect', onDisconnect)
  }

  /** The primary has heard of it just before, and offers this worker nothing any more. */
  function onDisconnect () {
    isGone = true
    for (const seq of waiting) refuseConnection(seq)
  }

  function answerLater (seq: number, handle: object) {
    waiting.add(seq)
    if (refused.has(handle)) setTimeout(refuseConnection, AGAIN_MS, seq)
    else setImmediate(refuseConnection, seq)
    refused.add(handle)
  }

  function refuseConnection (seq: number) {
    // Between the end of the channel and the word of it the primary would offer it once more, and lose it.
    if (!waiting.has(seq) || (!child.connected && !isGone)) return
    waiting.delete(seq)
    // The primary has closed its socket with its last worker. Nobody would take what it still has, so this closes it.
    const isLost = isGone && [...workers].every((worker) => worker.process === child || !worker.isConnected())
    child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: isLost }, undefined)
  }
}

/** See lib/internal/cluster/round_robin_handle.js. */
function isConnection (message: unknown): message is { seq: number } {
  if (typeof message !== 'object' || message === null || !('cmd' in message && 'act' in message)) return false
  return message.cmd === 'NODE_CLUSTER' && message.act === 'newconn'
}
