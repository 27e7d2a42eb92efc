import net from 'node:net'
import { errorCode } from '../errors.ts'

/**
 * Finds a NATS server that answers: it sends the first line. The client itself would keep the socket of a server that
 * stays silent, one more with every try, and all of a first line that never ends.
 */

const DEFAULT_PORT = 4222
const MAX_GREETING_BYTES = 64 * 1024

/**
 * Asks all at once, so that one that hangs does not delay the others. `addresses`: at least one, such as
 * `nats://10.0.0.5:4222`. Returns the first that answers.
 * @throws {Error} why the first address of the list does not
 */
export async function probeServers (addresses: readonly string[],
  { withinMs, signal }: { withinMs: number, signal: AbortSignal }): Promise<string>
{
  const ending = new AbortController()
  try {
    return await Promise.any(
      addresses.map((address) => probeServer(address, withinMs, AbortSignal.any([signal, ending.signal])))
    )
  } catch (error) {
    throw error instanceof AggregateError ? error.errors[0] : error
  } finally {
    ending.abort()
  }
}

/** @returns the address, once it has greeted */
function probeServer (address: string, withinMs: number, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = ''
    const socket = net.connect({ ...placeOf(address), signal })
    const timer = setTimeout(() => socket.destroy(new Error(`${address} did not answer within ${withinMs / 1000} s`)),
      withinMs)
    timer.unref()
    socket.setEncoding('latin1')
    socket.on('data', (text) => {
      heard += text
      if (heard.includes('\n')) {
        if (heard.startsWith('INFO ')) resolve(address)
        socket.destroy(new Error(`${address} is not a NATS server`))
      } else if (heard.length > MAX_GREETING_BYTES) {
        socket.destroy(new Error(`${address} is not a NATS server: its first line does not end`))
      }
    })
    // After `resolve` a rejection does nothing.
    socket.on('error', (error) => reject(errorCode(error) === 'ECONNREFUSED' ? new Error('connection refused') : error))
    socket.on('close', () => {
      clearTimeout(timer)
      reject(new Error(`${address} closed the connection`))
    })
  })
}

function placeOf (address: string): { host: string, port: number } {
  const { hostname, port } = new URL(address.includes('://') ? address : `nats://${address}`)
  return { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || DEFAULT_PORT) }
}
