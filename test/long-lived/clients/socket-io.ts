import { connected } from '../../apps/protocols/socket-io.ts'
import { importFrom, soon } from './installed.ts'
import type { Joining, Session } from '../programs.ts'

export async function openSocketIo ({ port, folder, number, onLost }: Joining, transports: string[]): Promise<Session> {
  const { io } = await importFrom(folder, 'socket.io-client')
  const socket = io(`http://127.0.0.1:${port}`, { transports, reconnection: false, forceNew: true })
  await soon(connected(socket), 'session')
  socket.on('disconnect', onLost)
  return { async ask () {
    const answer = await soon<string>(socket.emitWithAck('ask', `client ${number}`), 'answer')
    if (!answer.includes(`client ${number}`)) throw new Error(`answered ${answer}`)
  }, close () {
    socket.off('disconnect')
    socket.close()
  } }
}
