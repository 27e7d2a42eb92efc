import { io, type Socket } from 'socket.io-client'
import type { Target } from '../protocols.ts'
import type { Session } from '../clients.ts'

const PATIENCE_MS = 20_000
// As with WebSockets.
const QUESTIONS_PER_CONNECTION = 50

/** By WebSocket from the beginning: polling has to meet the same worker each time, with whatever runs several. */
export function openSocketIo ({ host, port, send }: Target): Session {
  let socket: Socket | undefined
  let asked = 0

  return { async ask () {
    if (!socket?.connected || asked++ % QUESTIONS_PER_CONNECTION === 0) await connect()
    return await socket?.timeout(PATIENCE_MS).emitWithAck('ask', send)
  }, close: () => {
    socket?.close()
  } }

  function connect () {
    socket?.close()
    const next = socket = io(`http://${host}:${port}`, { transports: ['websocket'], reconnection: false,
      forceNew: true })
    return connected(next)
  }
}

export function connected (socket: Socket) {
  return new Promise((resolve, reject) => {
    // 'disconnect': the worker has gone between the handshake of the transport and that of Socket.IO.
    socket.once('connect', () => resolve(socket)).once('connect_error', reject).once('disconnect',
      (reason) => reject(new Error(reason)))
  })
}
