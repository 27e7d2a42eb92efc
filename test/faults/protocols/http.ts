import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import type { Session } from '../clients.ts'

const CHUNK_BYTES = 64 * 1024
const CHUNK = Buffer.alloc(CHUNK_BYTES, '.')

/** HTTP/1, over TLS too. */
export function openHttp (
  { port, isKept, isTls = false, path = '/', uploadBytes = 0, bytesPerMs = Infinity, isWhole = ({ text }) =>
    text === '.' }: {
      port: number,
      /** whether the connection stays for the next request */
      isKept: boolean,
      isTls?: boolean,
      path?: string,
      /** a body to send */
      uploadBytes?: number,
      /** how fast bodies are sent and read; as fast as can be without it */
      bytesPerMs?: number,
      /** `text`: what came last */
      isWhole?: (answer: { text: string, bytes: number }) => boolean
    }
): Session {
  const transport = isTls ? https : http
  const agent = isKept ? new transport.Agent({ keepAlive: true, maxSockets: 1 }) : false
  return { async ask (exchange) {
    const request = transport.request({ host: '127.0.0.1', port,
      path: `${path}${path.includes('?') ? '&' : '?'}id=${exchange.id}`, agent, rejectUnauthorized: false,
      ...(uploadBytes > 0 && { method: 'POST', headers: { 'content-length': uploadBytes } }) })
    request.on('socket', (socket) => {
      const know = () => {
        exchange.connection = `${port}:${socket.localPort}`
      }
      exchange.isFirst = socket.connecting
      if (socket.connecting) socket.once('connect', know)
      else know()
    })
    const answer = new Promise<http.IncomingMessage>((resolve, reject) =>
      request.on('response', resolve).on('error', reject)
    )
    // The answer fails too, and says why.
    send(request, uploadBytes, bytesPerMs).catch(() => {})
    const response = await answer
    const body = await read(response, bytesPerMs)
    if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`)
    if (response.headers['x-request'] !== exchange.id) throw new Error(`the answer to ${response.headers['x-request']}`)
    exchange.isToldToLeave = isEvents(response) && body.text.endsWith('\n\n')
    if (!isWhole(body)) throw new Error(`${body.bytes} bytes that end with ${JSON.stringify(body.text.slice(-40))}`)
  }, close () {
    if (agent) agent.destroy()
  } }
}

function isEvents (response: http.IncomingMessage) {
  return response.headers['content-type']?.startsWith('text/event-stream') ?? false
}

async function send (request: http.ClientRequest, bytes: number, bytesPerMs: number) {
  const startedAt = performance.now()
  for (let sent = 0; sent < bytes && !request.destroyed;) {
    const chunk = CHUNK.subarray(0, bytes - sent)
    const isTaken = request.write(chunk)
    sent += chunk.length
    if (!isTaken) await drained(request)
    await untilDue(startedAt, sent / bytesPerMs)
  }
  request.end()
}

async function drained (request: http.ClientRequest) {
  const waiting = new AbortController()
  // AbortError: the other one has come.
  await Promise.race(['drain', 'close'].map((name) => once(request, name, { signal: waiting.signal }).catch(() => {})))
  waiting.abort()
}

async function read (response: http.IncomingMessage, bytesPerMs: number) {
  const startedAt = performance.now()
  let [text, bytes] = ['', 0]
  for await (const chunk of response) {
    bytes += chunk.length
    text = chunk.toString('latin1')
    await untilDue(startedAt, bytes / bytesPerMs)
  }
  return { text, bytes }
}

/** `ms`: after it */
async function untilDue (startedAt: number, ms: number) {
  const early = startedAt + ms - performance.now()
  if (early > 1) await wait(early)
}
