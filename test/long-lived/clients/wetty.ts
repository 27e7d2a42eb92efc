import { connected } from '../../apps/protocols/socket-io.ts'
import { importFrom, soon } from './installed.ts'
import type { Joining, Session } from '../programs.ts'

/** A shell in a page: its variables are gone with it. */
export async function openTerminal ({ port, folder, number, onLost }: Joining): Promise<Session> {
  const { io } = await importFrom(folder, 'socket.io-client')
  const socket = io(`http://127.0.0.1:${port}`, { path: '/socket.io', reconnection: false, forceNew: true })
  let [screen, asked] = ['', 0]
  socket.on('data', (text: string) => {
    screen = (screen + text).slice(-10_000)
    socket.emit('commit', text.length)
  })
  await soon(Promise.all([connected(socket), new Promise((resolve) => socket.once('login', resolve))]), 'shell')
  socket.on('disconnect', onLost).on('logout', () => onLost('the shell has ended'))
  socket.emit('input', `MINE=${number}\n`)
  return { async ask () {
    const wanted = `<${number}-${++asked}>`
    // What is typed is echoed, too, but not what the shell makes of it.
    socket.emit('input', `echo "<$MINE-$((${asked}))>"\n`)
    await soon(shown(wanted), `${wanted} on the screen`)
  }, close () {
    socket.off('disconnect').off('logout')
    socket.close()
  } }

  function shown (wanted: string) {
    return new Promise((resolve) => {
      const look = () => {
        if (!screen.includes(wanted)) return
        socket.off('data', look)
        resolve(null)
      }
      socket.on('data', look)
      look()
    })
  }
}
