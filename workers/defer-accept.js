import { getSystemErrorName } from 'node:util'
import { failListen } from './placeholder-handle.js'

/** @typedef {ReturnType<typeof createAcceptDeferral>} AcceptDeferral */

/**
 * Lets servers believe that they listen, while the system's accept on the shared socket has not begun: connections go
 * to the other workers, or wait in the kernel's queue.
 */
export function createAcceptDeferral () {
  /** @type {Map<any, { server: import('node:net').Server, backlog: number, listen: Function }>} by handle; those that were to listen */
  const held = new Map()
  let isOver = false

  return {
    isOver: () => isOver,

    /** @param {import('node:net').Server} server @param {any} handle a listening socket's, before Node has it */
    take (server, handle) {
      if (isOver) return
      const { listen, close } = handle
      handle.listen = function (/** @type {number} */ backlog) {
        held.set(handle, { server, backlog, listen })
        return 0
      }
      handle.close = function () {
        held.delete(handle)
        handle.close = close
        return close.apply(this, arguments)
      }
    },

    /** From now on every server accepts. */
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
