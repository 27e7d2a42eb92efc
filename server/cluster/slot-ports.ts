import { bindTcp, describeBindError, type Keeper } from './sockets.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { ToWorker } from '../../workers/protocol.ts'

export type SlotPorts = ReturnType<typeof createSlotPorts>

/** The keeper holds other sockets than these. */
const KEEPER_PREFIX = 'port '

/**
 * A port for each slot, beside the one that all have: for proxies that keep clients with one worker themselves, and for
 * looking at one of them.
 */
export function createSlotPorts ({ above, keeper, listensOn, tell, onProblem, bind = bindTcp }: {
  /** slot 1 has the port above it; 0: there are none */
  above: number,
  keeper?: Pick<Keeper, 'held' | 'hold' | 'drop'>,
  /** the TCP port of a worker */
  listensOn: (worker: number) => { key: string, address: string | null, addressType: number | string } | null,
  tell: (worker: number, message: ToWorker, handle: SocketHandle) => void,
  onProblem: (problem: { worker: number, message: string }) => void,
  bind?: typeof bindTcp
}) {
  /** by slot */
  const open: Map<number, SocketHandle> = new Map()
  for (const [name, { handle }] of keeper?.held ?? [])
    if (name.startsWith(KEEPER_PREFIX)) open.set(Number(name.slice(KEEPER_PREFIX.length)), handle)

  return {
    /** `worker`: is ready */
    open (worker: number, slot: number | undefined) {
      const place = above > 0 && slot !== undefined ? listensOn(worker) : null
      if (place === null || slot === undefined) return
      const handle = open.get(slot) ?? bindPort(worker, slot, place)
      if (handle) tell(worker, { type: 'accept-also', key: place.key, name: 'port' }, handle)
    },

    /** `size`: how many slots there are */
    shrink (size: number) {
      for (const [slot, handle] of open) if (slot > size) dropPort(slot, handle)
    },

    of: (slot: number): number | null => open.has(slot) ? above + slot : null,

    close () {
      for (const [slot, handle] of open) dropPort(slot, handle)
    },

    /** They stay open, for whoever makes this cluster anew in this process. */
    letGo () {
      open.clear()
    },

    /** Another master has them now. */
    leave () {
      for (const handle of open.values()) handle.close()
      open.clear()
    }
  }

  function bindPort (worker: number, slot: number,
    { address, addressType }: { address: string | null, addressType: number | string })
  {
    const own = { address, addressType, port: above + slot, index: 0, fd: undefined, flags: undefined }
    const { handle, errno } = bind(own)
    if (errno !== undefined) {
      onProblem({ worker, message: `slot ${slot} has no port of its own: ${describeBindError(own, errno).message}` })
      return null
    }
    open.set(slot, handle)
    keeper?.hold(KEEPER_PREFIX + slot, handle)
    return handle
  }

  function dropPort (slot: number, handle: SocketHandle) {
    open.delete(slot)
    keeper?.drop(KEEPER_PREFIX + slot)
    handle.close()
  }
}
