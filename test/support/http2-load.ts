import { EventEmitter, once } from 'node:events'
import http2 from 'node:http2'
import { errorCode } from '../../server/errors.ts'
import type { TestOwner } from './deck.ts'

const CLIENTS = 16
const PATIENCE_MS = 90_000
/** A client learns of a GOAWAY between two requests; it has then sent nothing, and goes on with another session. */
export const NOT_SENT = Object.freeze(['ERR_HTTP2_GOAWAY_SESSION', 'ERR_HTTP2_INVALID_SESSION'])

/**
 * 16 HTTP/2 clients that ask as fast as they are answered, until stopped. Each request that was sent and not answered
 * is counted, also one that was refused and could be sent again. `t`: it ends with the test; `streams`: of
 * each client at the same time; `isKept: false`: a new session for every request.
 */
export function hammerHttp2 (t: TestOwner, url: string,
  { streams = 1, isKept = true }: { streams?: number, isKept?: boolean } = {})
{
  const counts = { total: 0, failures: [] as string[], sessions: 0 }
  const answers = new EventEmitter()
  const stopping = new AbortController()
  const clients = Array.from({ length: CLIENTS }, () => client())
  t.after(stop)

  return {
    /** `isEnough`: looked at after each answer */
    async until (isEnough: (counts: { total: number, failures: string[], sessions: number }) => boolean) {
      while (!isEnough(counts)) await once(answers, 'answer')
    },

    stop
  }

  async function stop () {
    stopping.abort()
    await Promise.all(clients)
    return counts
  }

  async function client () {
    let session = open()
    await Promise.all(Array.from({ length: streams }, askOn))
    session.close()

    async function askOn () {
      while (!stopping.signal.aborted) {
        if (session.closed || session.destroyed) session = open()
        const failure = await ask(session)
        if (NOT_SENT.includes(String(failure))) continue
        counts.total++
        if (failure !== null) counts.failures.push(failure)
        if (!isKept) session.close()
        answers.emit('answer')
      }
    }
  }

  function open () {
    counts.sessions++
    // What goes wrong is told to the request that waits.
    return http2.connect(url, { rejectUnauthorized: false }).on('error', () => {})
  }
}

/** @returns what went wrong */
function ask (session: http2.ClientHttp2Session): Promise<string | null> {
  return new Promise((resolve) => {
    try {
      const stream = session.request({ ':path': '/' })
      let status = 0
      let isWhole = false
      stream.on('response', (headers) => {
        status = Number(headers[':status'])
      }).on('end', () => {
        isWhole = status === 200
      }).resume()
      stream.on('error', (error) => resolve(error.message))
      stream.on('close', () => resolve(isWhole ? null : `closed with status ${status}`))
      stream.setTimeout(PATIENCE_MS, () => resolve('no answer'))
      stream.end()
    } catch (error) {
      setImmediate(resolve, String(errorCode(error)))
    }
  })
}
