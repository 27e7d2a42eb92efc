import { connected } from '../../apps/protocols/socket-io.js'
import { importFrom, soon } from './installed.js'

/** @param {import('../programs.js').Joining} joining @param {string[]} transports @returns {Promise<import('../programs.js').Session>} */
export async function openSocketIo ({ port, folder, number, onLost }, transports) {
  const { io } = await importFrom(folder, 'socket.io-client')
  const socket = io(`http://127.0.0.1:${port}`, { transports, reconnection: false, forceNew: true })
  await soon(connected(socket), 'session')
  socket.on('disconnect', onLost)
  return {
    async ask () {
      const answer = await soon(socket.emitWithAck('ask', `client ${number}`), 'answer')
      if (!answer.includes(`client ${number}`)) throw new Error(`answered ${answer}`)
    },
    close () {
      socket.off('disconnect')
      socket.close()
    }
  }
}
