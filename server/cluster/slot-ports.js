import { bindTcp, describeBindError } from './sockets.js'

/** @typedef {ReturnType<typeof createSlotPorts>} SlotPorts */
/** @typedef {import('../../workers/node-internals.d.ts').SocketHandle} SocketHandle */

/** The keeper holds other sockets than these. */
const KEEPER_PREFIX = 'port '

/**
 * A port for each slot, beside the one that all have: for proxies that keep clients with one worker themselves, and for
 * looking at one of them.
 * @param {object} parts
 * @param {number} parts.above  slot 1 has the port above it; 0: there are none
 * @param {Pick<import('./sockets.js').Keeper, 'held' | 'hold' | 'drop'>} [parts.keeper]
 * @param {(worker: number) => { key: string, address: string | null, addressType: number | string } | null} parts.listensOn  the TCP port of a worker
 * @param {(worker: number, message: import('../../workers/protocol.js').ToWorker, handle: SocketHandle) => void} parts.tell
 * @param {(problem: { worker: number, message: string }) => void} parts.onProblem
 * @param {typeof bindTcp} [parts.bind]
 */
export function createSlotPorts ({ above, keeper, listensOn, tell, onProblem, bind = bindTcp }) {
  /** @type {Map<number, SocketHandle>} by slot */
  const open = new Map()
  for (const [name, { handle }] of keeper?.held ?? []) if (name.startsWith(KEEPER_PREFIX)) open.set(Number(name.slice(KEEPER_PREFIX.length)), handle)

  return {
    /** @param {number} worker is ready @param {number | undefined} slot */
    open (worker, slot) {
      const place = above > 0 && slot !== undefined ? listensOn(worker) : null
      if (place === null || slot === undefined) return
      const handle = open.get(slot) ?? bindPort(worker, slot, place)
      if (handle) tell(worker, { type: 'accept-also', key: place.key, name: 'port' }, handle)
    },

    /** @param {number} size  how many slots there are */
    shrink (size) {
      for (const [slot, handle] of open) if (slot > size) dropPort(slot, handle)
    },

    /** @param {number} slot @returns {number | null} */
    of: (slot) => open.has(slot) ? above + slot : null,

    close () {
      for (const [slot, handle] of open) dropPort(slot, handle)
    },

    /** They stay open, for whoever makes this cluster anew in this process. */
    letGo () { open.clear() },

    /** Another master has them now. */
    leave () {
      for (const handle of open.values()) handle.close()
      open.clear()
    }
  }

  /** @param {number} worker @param {number} slot @param {{ address: string | null, addressType: number | string }} place */
  function bindPort (worker, slot, { address, addressType }) {
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

  /** @param {number} slot @param {SocketHandle} handle */
  function dropPort (slot, handle) {
    open.delete(slot)
    keeper?.drop(KEEPER_PREFIX + slot)
    handle.close()
  }
}
