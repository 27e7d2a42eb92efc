import { WebSocket } from 'ws'
import { untilAnswer } from './answer.ts'
import type { Target } from '../protocols.ts'
import type { Session } from '../clients.ts'

// A drain waits for WebSockets until its deadline and then cuts them, so these go by themselves before.
const QUESTIONS_PER_CONNECTION = 50

/** Sends a message and waits for the next one; without `send`, for the first that the server sends by itself. */
export function openWebSocket ({ host, port, path = '/', send, subprotocol }: Target): Session {
  let socket: WebSocket | undefined
  let asked = 0

  return { async ask () {
    if (send === undefined) return await nextMessage(connect())
    if (socket?.readyState !== WebSocket.OPEN || asked++ % QUESTIONS_PER_CONNECTION === 0)
      await untilAnswer(connect(), 'open')
    socket?.send(send)
    return await nextMessage(socket as WebSocket)
  }, close: () => socket?.close() }

  function connect () {
    socket?.close()
    // An error is followed by its end.
    socket = new WebSocket(`ws://${host}:${port}${path}`, subprotocol).on('error', () => {})
    return socket
  }
}

async function nextMessage (socket: WebSocket) {
  const [data] = await untilAnswer(socket, 'message')
  return String(data)
}
