import net from 'node:net'
import { errorReason } from '../../../server/errors.ts'
import type { Exchange, Session } from '../clients.ts'

type Waiting = { exchange: Exchange, resolve: () => void, reject: (error: Error) => void }

/**
 * HTTP/1 with several requests on their way over one connection. As RFC 9112, section 9.3.2, has it, what follows an
 * answer with `Connection: close` is sent once more over another connection.
 */
export function openPipelined ({ port }: { port: number }): Session {
  let connection: ReturnType<typeof connect> | null = null
  return {
    ask: (exchange) => new Promise((resolve, reject) => send({ exchange, resolve: () => resolve(undefined), reject })),
    close: () => connection?.end()
  }

  function send (waiting: Waiting) {
    if (!connection?.isOpen()) connection = connect(port, (rest) => rest.forEach(send))
    connection.send(waiting)
  }
}

/** `onLeft`: what was sent after the last request that is answered */
function connect (port: number, onLeft: (rest: Waiting[]) => void) {
  const waiting: Waiting[] = []
  const socket = net.connect({ host: '127.0.0.1', port })
  let text = ''
  let isOpen = true
  let reason = 'the connection has ended'
  socket.setEncoding('latin1').on('data', take).on('error', (error) => {
    reason = errorReason(error)
  }).on('close', leave)
  // Before the requests of the same turn are written.
  socket.once('connect',
    () =>
      waiting.forEach(({ exchange }) =>
        Object.assign(exchange, { connection: `${port}:${socket.localPort}`, isFirst: true })
      ))
  return { isOpen: () => isOpen && socket.writable, send (each: Waiting) {
    waiting.push(each)
    each.exchange.connection = `${port}:${socket.localPort}`
    socket.write(`GET /?id=${each.exchange.id} HTTP/1.1\r\nHost: app\r\n\r\n`)
  }, end: () => socket.end() }

  function take (chunk: string) {
    text += chunk
    for (let answer = firstAnswer(text); answer; answer = firstAnswer(text)) {
      text = text.slice(answer.length)
      const first = waiting.shift()
      if (first === undefined) {
        reason = 'an answer that nobody has asked for'
        return socket.destroy()
      }
      if (answer.status !== 200 || answer.id !== first.exchange.id)
        first.reject(new Error(`status ${answer.status}, the answer to ${answer.id}`))
      else first.resolve()
      if (!answer.isLast) continue
      isOpen = false
      onLeft(waiting.splice(0))
      return socket.end()
    }
  }

  function leave () {
    isOpen = false
    for (const { reject } of waiting.splice(0)) reject(new Error(reason))
  }
}

/** Null: not all of it is there */
function firstAnswer (
  text: string
): { length: number, status: number, id: string | undefined, isLast: boolean } | null {
  const headLength = text.indexOf('\r\n\r\n') + 4
  if (headLength < 4) return null
  const head = text.slice(0, headLength)
  const length = headLength + Number(/^content-length: (\d+)/im.exec(head)?.[1])
  if (text.length < length) return null
  return { length, status: Number(head.split(' ', 2)[1]), id: /^x-request: (.+)\r$/im.exec(head)?.[1],
    isLast: /^connection: close/im.test(head) }
}
