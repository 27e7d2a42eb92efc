import { bindTcp, describeBindError } from './bind-socket.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { Cluster } from './cluster.ts'

/** The keeper holds other sockets than these. */
const KEEPER_PREFIX = 'port '

/**
 * A port for each slot, beside the one that all have: for proxies that keep clients with one worker themselves, and for
 * looking at one of them.
 */
export function createSlotPorts (cluster: Cluster, { listensOn }: {
  /** the TCP port of a worker */
  listensOn: (worker: number) => { key: string, address: string | null, addressType: number | string } | null
}) {
  const { keeper, portPerSlot: above } = cluster
  /** by slot */
  const open: Map<number, SocketHandle> = new Map()
  for (const [name, { handle }] of keeper?.held ?? [])
    if (name.startsWith(KEEPER_PREFIX)) open.set(Number(name.slice(KEEPER_PREFIX.length)), handle)
  cluster.on('ready', (worker) => {
    const slot = cluster.state.workers[worker]?.slot ?? null
    const place = above > 0 && slot !== null ? listensOn(worker) : null
    if (place === null || slot === null) return
    const handle = open.get(slot) ?? bindPort(worker, slot, place)
    if (handle) cluster.tell(worker, { type: 'accept-also', key: place.key, name: 'port' }, handle)
  })
  cluster.on('turn', () => {
    for (const [slot, handle] of open) if (slot > cluster.state.slots.length) dropPort(slot, handle)
  })

  return {
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
    const { handle, errno } = bindTcp(own)
    if (errno !== undefined) {
      cluster.events.publish({ type: 'unexpected', worker,
        message: `slot ${slot} has no port of its own: ${describeBindError(own, errno).message}` })
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
