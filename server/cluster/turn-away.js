import cluster from 'node:cluster'

/** Before a connection is offered again that has been refused already; nobody else can take it then. */
const AGAIN_MS = 10

/**
 * With round-robin the primary of node:cluster hands connections to every worker that listens. Until one is to have
 * any, what the primary would send to it is refused on its behalf, as a worker does that has just closed its server:
 * then another worker gets the connection, or it waits in the primary.
 * @param {any} child a worker's process, as node:cluster has it
 * @returns {() => void} lets connections through from now on
 */
export function turnAway (child) {
  const { send } = child
  /** @type {WeakSet<object>} */
  const refused = new WeakSet()
  /** @type {Map<number, { handle: any, cancel: () => void }>} by the number that the primary waits for */
  const waiting = new Map()
  let isGone = false

  child.send = function (/** @type {any} */ message, /** @type {any} */ handle) {
    if (!isConnection(message)) return send.apply(child, arguments)
    later(message.seq, handle)
    return true
  }
  // Before node:cluster hears of it, which forgets the worker then and with it what it was offered.
  child.prependOnceListener('disconnect', leave)
  child.prependOnceListener('exit', leave)
  return open

  function open () {
    child.send = send
    child.off('disconnect', leave)
    child.off('exit', leave)
  }

  function leave () {
    isGone = true
    for (const [seq, { cancel }] of [...waiting]) {
      cancel()
      refuse(seq)
    }
  }

  function later (/** @type {number} */ seq, /** @type {any} */ handle) {
    const again = refused.has(handle) && !isGone
    refused.add(handle)
    const timer = again ? setTimeout(refuse, AGAIN_MS, seq) : setImmediate(refuse, seq)
    waiting.set(seq, { handle, cancel: () => again ? clearTimeout(/** @type {any} */ (timer)) : clearImmediate(/** @type {any} */ (timer)) })
  }

  function refuse (/** @type {number} */ seq) {
    const { handle } = waiting.get(seq) ?? {}
    waiting.delete(seq)
    // With its last worker the primary closes the socket, and nobody would ever take it.
    const isLost = isGone && Object.values(cluster.workers ?? {}).every((worker) => worker?.process === child || !worker?.isConnected())
    if (isLost) handle?.close()
    child.emit('internalMessage', { cmd: 'NODE_CLUSTER', ack: seq, accepted: isLost }, undefined)
  }
}

/** @param {any} message one of node:cluster's own, see lib/internal/cluster/round_robin_handle.js */
function isConnection (message) {
  return message?.cmd === 'NODE_CLUSTER' && message.act === 'newconn'
}
