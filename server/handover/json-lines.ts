import { attempt } from '../errors.ts'
import type { Socket } from 'node:net'

export type JsonLines = ReturnType<typeof createJsonLines>
export type Message = Record<string, unknown> & { type: string }

const MAX_CHARS = 4 * 1024 * 1024

/** Messages over a connection between two masters, one JSON object a line. */
export function createJsonLines (connection: Socket) {
  const unread: Message[] = []
  const waiting: ((message: Message | null) => void)[] = []
  let isOver = false
  let rest = ''
  connection.setEncoding('utf8').on('data', read)
  // 'close' follows, and tells whoever waits.
  connection.on('error', () => {})
  connection.on('close', () => {
    isOver = true
    for (const resolve of waiting.splice(0)) resolve(null)
  })

  return {
    send (message: Message) {
      if (!isOver) connection.write(`${JSON.stringify(message)}\n`)
    },

    /** Null: the other end has gone */
    next (): Promise<Message | null> {
      const message = unread.shift()
      if (message) return Promise.resolve(message)
      return isOver ? Promise.resolve(null) : new Promise((resolve) => {
        waiting.push(resolve)
      })
    },

    /** Ends the connection, once what was sent is on its way. */
    close () {
      connection.end()
    }
  }

  function read (text: string) {
    const lines = (rest + text).split('\n')
    rest = String(lines.pop())
    if (rest.length > MAX_CHARS) return connection.destroy()
    for (const line of lines) {
      const message = parse(line)
      if (message === null) return connection.destroy()
      const resolve = waiting.shift()
      if (resolve) resolve(message)
      else unread.push(message)
    }
  }
}

/** Null: it is no message */
function parse (line: string): Message | null {
  return attempt(() => {
    const message = JSON.parse(line)
    return typeof message?.type === 'string' ? message : null
  })
}
