import type { EventEmitter } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AnySocket as Socket } from './node-internals.d.ts'

/**
 * Knows which connections have become WebSockets, as a connection itself does not tell. It listens only where the app
 * does, since a server without a listener answers such requests like any other.
 */
export function createUpgrades () {
  /** How many bytes had been written before the answer to the upgrade. */
  const webSockets: WeakMap<Socket, number> = new WeakMap()

  return {
    /** `server`: of HTTP/1 */
    watch (server: EventEmitter) {
      if (server.listenerCount('upgrade') > 0) server.prependListener('upgrade', noteWebSocket)
      server.on('newListener', (name, listener) => {
        if (name === 'upgrade' && listener !== noteWebSocket && server.listenerCount(name) === 0)
          server.on(name, noteWebSocket)
      })
      server.on('removeListener', (name, listener) => {
        if (name === 'upgrade' && listener !== noteWebSocket && server.listenerCount(name) === 1)
          server.off(name, noteWebSocket)
      })
    },

    isWebSocket: (socket: Socket) => webSockets.has(socket),

    /** Tells whether it is a WebSocket that the app has agreed to, so that frames may follow */
    isOpen: (socket: Socket): boolean => socket.bytesWritten > (webSockets.get(socket) ?? Infinity)
  }

  function noteWebSocket ({ headers }: IncomingMessage, socket: Socket) {
    if (headers.upgrade?.toLowerCase() === 'websocket' && headers['sec-websocket-key'])
      webSockets.set(socket, socket.bytesWritten)
  }
}
