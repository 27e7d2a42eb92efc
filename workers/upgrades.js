/** @typedef {import('./node-internals.d.ts').AnySocket} Socket */

/**
 * Knows which connections have become WebSockets, as a connection itself does not tell. It listens only where the app
 * does, since a server without a listener answers such requests like any other.
 */
export function createUpgrades () {
  /** How many bytes had been written before the answer to the upgrade. @type {WeakMap<Socket, number>} */
  const webSockets = new WeakMap()

  return {
    /** @param {import('node:events').EventEmitter} server  of HTTP/1 */
    watch (server) {
      if (server.listenerCount('upgrade') > 0) server.prependListener('upgrade', noteWebSocket)
      server.on('newListener', (name, listener) => {
        if (name === 'upgrade' && listener !== noteWebSocket && server.listenerCount(name) === 0) server.on(name, noteWebSocket)
      })
      server.on('removeListener', (name, listener) => {
        if (name === 'upgrade' && listener !== noteWebSocket && server.listenerCount(name) === 1) server.off(name, noteWebSocket)
      })
    },

    /** @param {Socket} socket */
    isWebSocket: (socket) => webSockets.has(socket),

    /** @param {Socket} socket @returns {boolean} whether it is a WebSocket that the app has agreed to, so that frames may follow */
    isOpen: (socket) => socket.bytesWritten > (webSockets.get(socket) ?? Infinity)
  }

  function noteWebSocket (/** @type {import('node:http').IncomingMessage} */ { headers }, /** @type {Socket} */ socket) {
    if (headers.upgrade?.toLowerCase() === 'websocket' && headers['sec-websocket-key']) webSockets.set(socket, socket.bytesWritten)
  }
}
