import { getSystemErrorName } from 'node:util'
import { failListen } from './placeholder-handle.js'

/** @typedef {ReturnType<typeof createAcceptDeferral>} AcceptDeferral */
/** @typedef {import('./node-internals.d.ts').SocketHandle} SocketHandle */

/**
 * Lets servers believe that they listen, while the system's accept on the shared socket has not begun: connections go
 * to the other workers, or wait in the kernel's queue.
 */
export function createAcceptDeferral () {
  /** @type {Map<SocketHandle, { server: import('node:net').Server, backlog: number, listen: SocketHandle['listen'] }>} by handle; those that were to listen */
  const held = new Map()
  let isOver = false

  return {
    isOver: () => isOver,

    /** @param {import('node:net').Server} server @param {SocketHandle} handle  a listening socket's, before Node has it */
    take (server, handle) {
      if (isOver) return
      const { listen, close } = handle
      handle.listen = function (backlog) {
        held.set(handle, { server, backlog, listen })
        return 0
      }
      handle.close = function (callback) {
        held.delete(handle)
        handle.close = close
        return close.call(this, callback)
      }
    },

    /** Lets every server accept. */
    end () {
      isOver = true
      for (const [handle, { server, backlog, listen }] of held) {
        handle.listen = listen
        const errno = handle.listen(backlog)
        if (errno) failListen(server, getSystemErrorName(errno))
      }
      held.clear()
    }
  }
}
