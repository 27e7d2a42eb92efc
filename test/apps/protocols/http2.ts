import http2 from 'node:http2'
import type { Target } from '../protocols.ts'
import type { Session } from '../clients.ts'

const PATIENCE_MS = 20_000

/**
 * HTTP/2, over TLS with `protocol: 'h2'`. A session ends when the server says so (GOAWAY), and the next request opens
 * another.
 */
export function openHttp2 ({ protocol, host, port, path = '/' }: Target): Session {
  let session: http2.ClientHttp2Session | undefined

  return { ask () {
    if (!session || session.closed || session.destroyed) session = connect()
    return request(session, path)
  }, close: () => session?.close() }

  function connect () {
    const scheme = protocol === 'h2' ? 'https' : 'http'
    // What goes wrong with it is told to the request that it has.
    return http2.connect(`${scheme}://${host}:${port}`, { rejectUnauthorized: false }).on('error', () => {})
  }
}

function request (session: http2.ClientHttp2Session, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let [status, text, isComplete] = [0, '', false]
    const stream = session.request({ ':path': path })
    stream.setTimeout(PATIENCE_MS, () => stream.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)))
    stream.setEncoding('utf8').on('response', (headers) => {
      status = Number(headers[':status'])
    })
    stream.on('data', (chunk) => {
      text += chunk
    }).on('end', () => {
      isComplete = true
    }).on('error', reject)
    stream.on('close', () => {
      if (isComplete && status === 200) resolve(text)
      else reject(
          new Error(status
            ? `status ${status}, ${isComplete ? '' : 'cut off'}`
            : `closed without an answer, code ${stream.rstCode}`)
        )
    })
    stream.end()
  })
}
