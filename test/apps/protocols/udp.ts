import dgram from 'node:dgram'
import { once } from 'node:events'
import type { Target } from '../protocols.ts'
import type { Session } from '../clients.ts'

const PATIENCE_MS = 2000

/** One datagram each way. */
export function openUdp ({ host, port, send = '' }: Target): Session {
  const socket = dgram.createSocket('udp4')
  return { async ask () {
    const answer = once(socket, 'message', { signal: AbortSignal.timeout(PATIENCE_MS) })
    socket.send(send, port, host)
    const [message] = await answer
    return message.toString()
  }, close: () => {
    socket.close()
  } }
}
