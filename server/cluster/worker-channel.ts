import { isDescriptor } from '../../workers/descriptor.ts'
import { COMMAND, type Dispatch } from '../../workers/protocol.ts'
import { guardChannel } from '../system/channel-guard.ts'
import type { ChildProcess } from 'node:child_process'

/** What the worker's side of node:cluster says to its primary, by how connections are dispatched. */
const CLUSTER_ACTS: Readonly<Record<Dispatch, Set<unknown>>> = Object.freeze({
  shared: new Set(['online', 'exitedAfterDisconnect']),
  sticky: new Set(['online', 'exitedAfterDisconnect']),
  // `undefined`: the answer to what the primary has said.
  'round-robin': new Set(['online', 'exitedAfterDisconnect', 'queryServer', 'listening', 'close', undefined])
})

/**
 * The app can send anything to its master. No worker has anything to hand over: what it sends along is closed. `child`:
 * a worker's process; `group`: the name of those workers that share a socket.
 */
export function guardWorkerChannel (child: ChildProcess,
  { dispatch, group = 'one', onInvalidMessage }: { dispatch: Dispatch, group?: string,
    onInvalidMessage: (reason: string) => void })
{
  const acts = CLUSTER_ACTS[dispatch]
  guardChannel(child, {
    isExpected: ({ cmd, act, fd }) =>
      cmd === COMMAND || (cmd === 'NODE_CLUSTER' && acts.has(act) && !isDescriptor({ fd })),
    onInvalidMessage
  })
  child.prependListener('internalMessage', partGroups)

  /**
   * The primary knows a socket by what its workers ask for: two apps that ask for the same, such as any free port,
   * would be handed each other's clients. It also compares the descriptor that they ask for, so the name of the group
   * goes there: no descriptor is a text.
   */
  function partGroups (message: { act?: unknown, fd?: unknown }) {
    if (message.act === 'queryServer') message.fd = group
  }
}
