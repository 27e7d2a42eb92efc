import dgram from 'node:dgram'
import { once } from 'node:events'

const PATIENCE_MS = 2000

/**
 * One datagram each way.
 * @param {import('../protocols.js').Target} target
 * @returns {import('../clients.js').Session}
 */
export function openUdp ({ host, port, send = '' }) {
  const socket = dgram.createSocket('udp4')
  return {
    async ask () {
      const answer = once(socket, 'message', { signal: AbortSignal.timeout(PATIENCE_MS) })
      socket.send(send, port, host)
      const [message] = await answer
      return message.toString()
    },
    close: () => { socket.close() }
  }
}
