import net from 'node:net'
import { untilAnswer } from './answer.ts'
import type { Target } from '../protocols.ts'
import type { Session } from '../clients.ts'

// As with WebSockets: nothing tells the client of a drain.
const QUESTIONS_PER_CONNECTION = 50

/**
 * A protocol of its own over TCP: `greeting` is sent first and answered (empty: the server begins), then `send` is,
 * each time.
 */
export function openTcp ({ host, port, greeting, send = '' }: Target): Session {
  let socket: net.Socket | undefined
  let asked = 0

  return { async ask () {
    const isOver = !socket || socket.destroyed || socket.readableEnded || asked++ % QUESTIONS_PER_CONNECTION === 0
    if (isOver) socket = await connect()
    return await exchange(socket as net.Socket, send)
  }, close: () => {
    socket?.end()
  } }

  async function connect () {
    socket?.end()
    // An error is followed by its end.
    const next = net.connect(port, host).setEncoding('latin1').on('error', () => {})
    if (greeting !== undefined) await exchange(next, greeting)
    return next
  }
}

/** Answers are short, so each comes in one piece. */
async function exchange (socket: net.Socket, words: string): Promise<string> {
  if (words) socket.write(words, 'latin1')
  const [answer] = await untilAnswer(socket, 'data')
  return answer
}
