import net from 'node:net'

/**
 * Which server of NATS is there: it speaks first. The client would keep the socket of each that takes a connection and says
 * nothing, one more with every try, and all that comes of a first line that never ends.
 */

const DEFAULT_PORT = 4222
const MAX_GREETING_BYTES = 64 * 1024

/**
 * All are asked at once, so that one that hangs keeps nobody from the others.
 * @param {readonly string[]} addresses at least one, such as `nats://10.0.0.5:4222`
 * @param {{ withinMs: number, signal: AbortSignal }} limits
 * @returns {Promise<string>} the one that speaks first
 * @throws {Error} why the first of them does not
 */
export async function probeServers (addresses, { withinMs, signal }) {
  const ending = new AbortController()
  try {
    return await Promise.any(addresses.map((address) => probeServer(address, withinMs, AbortSignal.any([signal, ending.signal]))))
  } catch (/** @type {any} */ error) {
    throw error.errors[0]
  } finally {
    ending.abort()
  }
}

/** @param {string} address @param {number} withinMs @param {AbortSignal} signal @returns {Promise<string>} the address, once it has greeted */
function probeServer (address, withinMs, signal) {
  return new Promise((resolve, reject) => {
    let heard = ''
    const socket = net.connect({ ...placeOf(address), signal })
    const timer = setTimeout(() => socket.destroy(new Error(`nothing is heard of ${address} within ${withinMs / 1000} s`)), withinMs)
    timer.unref()
    socket.setEncoding('latin1')
    socket.on('data', (text) => {
      heard += text
      if (heard.includes('\n')) {
        if (heard.startsWith('INFO ')) resolve(address)
        socket.destroy(new Error(`${address} does not greet as a server of NATS does`))
      } else if (heard.length > MAX_GREETING_BYTES) {
        socket.destroy(new Error(`the greeting of ${address} does not end`))
      }
    })
    // Nothing more to hear for who has greeted.
    socket.on('error', (/** @type {any} */ error) => reject(error.code === 'ECONNREFUSED' ? new Error('connection refused') : error))
    socket.on('close', () => {
      clearTimeout(timer)
      reject(new Error(`${address} has closed the connection`))
    })
  })
}

/** @param {string} address @returns {{ host: string, port: number }} */
function placeOf (address) {
  const { hostname, port } = new URL(address.includes('://') ? address : `nats://${address}`)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || DEFAULT_PORT) }
}
