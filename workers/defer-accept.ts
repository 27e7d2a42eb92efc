import { getSystemErrorName } from 'node:util'
import { failListen } from './placeholder-handle.ts'
import type { Server } from 'node:net'
import type { DatagramHandle, SocketHandle } from './node-internals.d.ts'

export type AcceptDeferral = ReturnType<typeof createAcceptDeferral>
export type ReceiveDeferral = ReturnType<typeof createReceiveDeferral>

/**
 * Lets servers believe that they listen, while the system's accept on the shared socket has not begun: connections go
 * to the other workers, or wait in the kernel's queue.
 */
export function createAcceptDeferral () {
  /** by handle; those that were to listen */
  const held: Map<SocketHandle, { server: Server, backlog: number, listen: SocketHandle['listen'] }> = new Map()
  let isOver = false

  return {
    isOver: () => isOver,

    /** `handle`: a listening socket's, before Node has it */
    take (server: Server, handle: SocketHandle) {
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

/**
 * Keeps datagrams from a worker that is not ready: they go to the others, or wait in the kernel's buffer. What sends by
 * its socket before that waits for answers to get ready, and receives at once.
 * @param parts keeps the process running, as a socket that receives does
 */
export function createReceiveDeferral ({ hold }: { hold: () => () => void }) {
  const held: Set<() => void> = new Set()
  let isOver = false

  return {
    /** `handle`: of a shared socket, before Node has it */
    take (handle: DatagramHandle) {
      if (isOver) return
      const { recvStart, close } = handle
      handle.recvStart = function () {
        // Only now Node has given it this one.
        const { send } = handle
        const release = hold()
        held.add(begin)
        handle.send = (...args) => {
          begin()
          return handle.send(...args)
        }
        handle.close = (callback) => {
          letGo()
          return handle.close(callback)
        }
        return 0

        function begin () {
          letGo()
          handle.recvStart()
        }

        function letGo () {
          Object.assign(handle, { recvStart, send, close })
          held.delete(begin)
          release()
        }
      }
    },

    /** Lets all of them receive. */
    end () {
      isOver = true
      for (const begin of held) begin()
    }
  }
}
