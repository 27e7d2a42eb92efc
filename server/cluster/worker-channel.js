import { isDescriptor } from '../../workers/descriptor.js'
import { COMMAND } from '../../workers/protocol.js'
import { guardChannel } from '../system/channel-guard.js'

/** @typedef {import('../../workers/protocol.js').Dispatch} Dispatch */

/**
 * What the worker's side of node:cluster says to its primary, by how connections are dispatched.
 * @type {Readonly<Record<Dispatch, Set<unknown>>>}
 */
const CLUSTER_ACTS = Object.freeze({
  shared: new Set(['online', 'exitedAfterDisconnect']),
  sticky: new Set(['online', 'exitedAfterDisconnect']),
  // `undefined`: the answer to what the primary has said.
  'round-robin': new Set(['online', 'exitedAfterDisconnect', 'queryServer', 'listening', 'close', undefined])
})

/**
 * The app can send anything to its master. No worker has anything to hand over: what it sends along is closed.
 * @param {import('node:child_process').ChildProcess} child  a worker's process
 * @param {{ dispatch: Dispatch, group?: string, onInvalidMessage: (reason: string) => void }} options `group`: the name of those workers that share a socket
 */
export function guardWorkerChannel (child, { dispatch, group = 'one', onInvalidMessage }) {
  const acts = CLUSTER_ACTS[dispatch]
  guardChannel(child, {
    isExpected: ({ cmd, act, fd }) => cmd === COMMAND || (cmd === 'NODE_CLUSTER' && acts.has(act) && !isDescriptor({ fd })),
    onInvalidMessage
  })
  child.prependListener('internalMessage', partGroups)

  /**
   * The primary knows a socket by what its workers ask for: two apps that ask for the same, such as any free port, would be handed each
   * other's clients. It also compares the descriptor that they ask for, so the name of the group goes there: no descriptor is a text.
   * @param {{ act?: unknown, fd?: unknown }} message
   */
  function partGroups (message) {
    if (message.act === 'queryServer') message.fd = group
  }
}
