/** @typedef {ReturnType<typeof createJsonLines>} JsonLines */
/** @typedef {Record<string, unknown> & { type: string }} Message */

const MAX_CHARS = 4 * 1024 * 1024

/**
 * Messages over a connection between two masters, one JSON object a line.
 * @param {import('node:net').Socket} connection
 */
export function createJsonLines (connection) {
  /** @type {Message[]} */
  const unread = []
  /** @type {((message: Message | null) => void)[]} */
  const waiting = []
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
    /** @param {Message} message */
    send (message) { if (!isOver) connection.write(`${JSON.stringify(message)}\n`) },

    /** @returns {Promise<Message | null>} null: the other end has gone */
    next () {
      const message = unread.shift()
      if (message) return Promise.resolve(message)
      return isOver ? Promise.resolve(null) : new Promise((resolve) => { waiting.push(resolve) })
    },

    /** Ends the connection, once what was sent is on its way. */
    close () { connection.end() }
  }

  /** @param {string} text */
  function read (text) {
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

/** @param {string} line @returns {Message | null} null: it is no message */
function parse (line) {
  try {
    const message = JSON.parse(line)
    return typeof message?.type === 'string' ? message : null
  } catch {
    return null
  }
}
