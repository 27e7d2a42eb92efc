import { WebSocket } from 'ws'
import type { Session } from '../clients.ts'

/** Codes of RFC 6455, section 7.4.1, and of the IANA registry. */
const GOING_AWAY = 1001
const SERVICE_RESTART = 1012

/**
 * A message and its echo; after some, the connection is closed and another one opened, as a drain waits for WebSockets
 * only until its deadline. `messages`: over one connection.
 */
export function openWebSocket ({ port, messages }: { port: number, messages: number }): Session {
  let connection: { socket: WebSocket, opened: Promise<unknown>, asked: number, name: string | undefined } | null = null
  return { async ask (exchange) {
    if (connection && connection.asked >= messages) close()
    connection ??= connect()
    const { socket, opened } = connection
    exchange.connection = connection.name
    exchange.isFirst = connection.asked === 0
    connection.asked++
    try {
      await opened
      exchange.connection = connection.name
      const echo = new Promise((resolve, reject) => {
        socket.once('message', (data) =>
          String(data).startsWith(`${exchange.id} `) ? resolve(undefined) : reject(new Error(`echoed ${data}`)))
        socket.once('close', (code) => {
          exchange.isToldToLeave = code === GOING_AWAY || code === SERVICE_RESTART
          reject(new Error(`closed with ${code}`))
        })
        exchange.isIdle = socket.readyState !== WebSocket.OPEN
        if (exchange.isIdle)
          reject(new Error('closed between two messages'))
      })
      socket.send(exchange.id, () => {})
      await echo
    } catch (error) {
      close()
      throw error
    } finally {
      socket.removeAllListeners('message').removeAllListeners('close')
    }
  }, close }

  function connect () {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`)
    const opened = new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
    socket.on('error', () => {})
    const next = { socket, opened, asked: 0, name: undefined as string | undefined }
    socket.once('upgrade', (response) => {
      next.name = `${port}:${response.socket.localPort}`
    })
    return next
  }

  function close () {
    connection?.socket.close()
    connection = null
  }
}
