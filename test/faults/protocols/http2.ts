import http2 from 'node:http2'
import { errorCode } from '../../../server/errors.ts'
import { NOT_SENT } from '../../support/http2-load.ts'
import type { Session } from '../clients.ts'

/** HTTP/2. A request that is refused unprocessed counts as failed, though a client may send it again. */
export function openHttp2 ({ port, isTls, isKept }: { port: number, isTls: boolean, isKept: boolean }): Session {
  let session: http2.ClientHttp2Session | null = null
  return { async ask (exchange) {
    for (;;) {
      if (!session || session.closed || session.destroyed) session = connect()
      const own = session
      const know = () => {
        exchange.connection = `${port}:${own.socket?.localPort}`
      }
      exchange.isFirst = own.connecting
      if (own.connecting) own.once('connect', know)
      else know()
      try {
        await request(own, exchange.id)
        return
      } catch (error) {
        // A session that does not come about cancels its streams.
        if (!NOT_SENT.includes(String(errorCode(error)))) throw (error as Error).cause ?? error
      } finally {
        if (!isKept) own.close()
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }, close: () => session?.close() }

  function connect () {
    // What goes wrong is told to the request that waits.
    return http2.connect(`${isTls ? 'https' : 'http'}://127.0.0.1:${port}`, { rejectUnauthorized: false }).on('error',
      () => {}).setMaxListeners(0)
  }
}

function request (session: http2.ClientHttp2Session, id: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': `/?id=${id}` })
    let said = ''
    let isWhole = false
    stream.on('response', (headers) => {
      said = `${headers[':status']} to ${headers['x-request']}`
    })
    stream.on('end', () => {
      isWhole = said === `200 to ${id}`
    }).resume()
    stream.on('error', reject).on('close',
      () => isWhole ? resolve() : reject(new Error(`closed with ${said || 'no answer'}`)))
    stream.end()
  })
}
