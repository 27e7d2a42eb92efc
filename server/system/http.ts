import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import tls from 'node:tls'
import { whyAbsent, whyNotTold, type Recipient } from './recipient.ts'
import type { Readable } from 'node:stream'

/**
 * One request, whose redirects are not followed. Not by fetch(), which on Node 20 to 24 never settles where a
 * connection is closed as soon as it is open. `fingerprint`: of the one certificate that is right, whoever
 * has signed it; `recipient`: who may be told what is in it; null: whoever answers, as nothing is secret, or somebody
 * has named both the address and the secret; `agent`: of keepConnections(), for the same fingerprint and recipient.
 * Returns its body is still to be read.
 * @throws {NodeJS.ErrnoException} such as ECONNREFUSED and ECONNRESET; AbortError
 */
export function sendRequest (url: string,
  { method = 'GET', headers, body, signal, fingerprint = null, recipient, agent }: { method?: string,
    headers: Record<string, string>, body?: string | Readable, signal?: AbortSignal, fingerprint?: string | null,
    recipient: Recipient | null, agent?: http.Agent }): Promise<http.IncomingMessage>
{
  const absent = recipient && whyAbsent(recipient)
  if (absent) return Promise.reject(notTold(absent))
  const { request } = url.startsWith('https:') ? https : http
  // Who is to close a connection does so with its answer, and what is still being sent then would break it off.
  const sentHeaders = isStream(body) ? { ...headers, connection: 'keep-alive' } : headers
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: sentHeaders, signal,
      ...(agent ? { agent } : wayOf({ hasTls: url.startsWith('https:'), fingerprint, recipient, signal })) }).once(
        'response',
        resolve
      ).once('error', reject)
    if (!isStream(body)) return sent.end(body)
    // An answer that comes before all is sent is one that needs no more.
    sent.once('response', (response) => {
      body.unpipe(sent)
      response.once('end', () => sent.destroy())
    })
    body.once('error', (error) => sent.destroy(error)).pipe(sent)
  })
}

/**
 * Keeps connections for further requests. The kernel takes milliseconds to say who has the other end, and is asked once
 * for each connection.
 * @returns to be destroyed
 */
export function keepConnections (url: string,
  { fingerprint, recipient }: { fingerprint: string | null, recipient: Recipient | null }): http.Agent
{
  const hasTls = url.startsWith('https:')
  const { createConnection } = wayOf({ hasTls, fingerprint, recipient })
  return Object.assign(new (hasTls ? https : http).Agent({ keepAlive: true }), createConnection && { createConnection })
}

function wayOf (expected: Expected): Pick<http.RequestOptions, 'agent' | 'createConnection'> {
  return expected.fingerprint === null && expected.recipient === null
    ? { agent: false }
    : { createConnection: connectTo(expected) }
}

type Expected = { hasTls: boolean, fingerprint: string | null, recipient: Recipient | null, signal?: AbortSignal }

function isStream (body: unknown): body is Readable {
  return body !== undefined && typeof body !== 'string'
}

/** Nothing is sent before it is known who listens. */
function connectTo ({ hasTls, fingerprint, recipient, signal }: Expected): http.RequestOptions['createConnection'] {
  return (options, onConnected) => {
    const socket = hasTls
      ? tls.connect({ ...options, ...(fingerprint !== null && { rejectUnauthorized: false }) } as tls.ConnectionOptions)
      : net.connect(options as net.NetConnectOpts)
    const giveUpSocket = () => socket.destroy(signal?.reason)
    socket.once('close', () => signal?.removeEventListener('abort', giveUpSocket))
    signal?.addEventListener('abort', giveUpSocket)
    socket.once('error', (error) => onConnected(error, socket))
    socket.once(hasTls ? 'secureConnect' : 'connect', async () => {
      const reason = await whyWrong(socket)
      if (reason === null) return onConnected(null, socket)
      socket.destroy()
      onConnected(notTold(reason), socket)
    })
    return undefined
  }

  async function whyWrong (socket: net.Socket): Promise<string | null> {
    if (fingerprint !== null && (socket as tls.TLSSocket).getPeerCertificate().fingerprint256 !== fingerprint)
      return 'it shows another certificate than that of the master'
    return recipient && await whyNotTold(socket, recipient, { isPinned: fingerprint !== null })
  }
}

/** `reason`: is shown where others show a code */
function notTold (reason: string) {
  return Object.assign(new Error(reason), { code: reason })
}
