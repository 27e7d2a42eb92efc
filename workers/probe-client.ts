import { askOverHttp1, readAnswer, settleWithin, USER_AGENT, type ProbeClient } from './http-client.ts'
import { connectInMemory } from './memory-socket.ts'
import { probeCertificate } from './probe-certificate.ts'
import { UNCOUNTED, type Marks } from './requests.ts'
import type { ClientHttp2Session, ServerHttp2Session } from 'node:http2'
import type { AnyServer } from './node-internals.d.ts'

type Session = ServerHttp2Session & Marks
type ServerEnd = ReturnType<typeof connectInMemory>['server']

/**
 * Asks one of the app's own servers, over connections within this process. `server`: of HTTP/1 or HTTP/2, with TLS or
 * without; `address`: the URL on which it listens.
 */
export function createProbeClient (server: AnyServer,
  { address, timeoutMs }: { address: string, timeoutMs: number }): ProbeClient
{
  const isTls = typeof server.setSecureContext === 'function'
  const { host, port } = address.startsWith('unix:') ? { host: 'localhost', port: '' } : new URL(address)
  const create = typeof server.updateSettings === 'function' ? overHttp2 : askOverHttp1
  return create({ connect: connectAs, origin: `${isTls ? 'https' : 'http'}://${host}`, host, timeoutMs })

  function connectAs (alpnProtocol: string) {
    // A server that takes only clients with a certificate takes this one too: there is no handshake to fail.
    const certificate = server.requestCert && server.rejectUnauthorized ? probeCertificate() : null
    const ends = connectInMemory({ port: Number(port), tls: isTls ? { alpnProtocol, certificate } : null })
    Object.assign(ends.server, { [UNCOUNTED]: true })
    const onSession = (session: Session) => prepareSession(session, ends.server)
    server.prependListener('session', onSession)
    server.emit(isTls ? 'secureConnection' : 'connection', ends.server)
    server.off('session', onSession)
    return ends.client
  }
}

type Line = import('./http-client.ts').Line & { origin: string }

function overHttp2 ({ connect, origin, timeoutMs }: Line): ProbeClient {
  let session: ClientHttp2Session | undefined

  return { async ask (path) {
    const http2 = await import('node:http2')
    return await settleWithin(timeoutMs, (done) => {
      if (!session || session.closed || session.destroyed) {
        session = http2.connect(origin, { createConnection: () => connect('h2') })
        // The request that waits gets the error.
        session.on('error', () => {})
      }
      const stream = session.request({ ':path': path, 'user-agent': USER_AGENT, accept: '*/*' })
      stream.on('response', (headers) => readAnswer(stream, Number(headers[':status']), done))
      stream.on('error', done.fail)
      stream.on('close', () => done.fail(new Error('the stream was closed without an answer')))
      stream.end()
      return (error) => stream.destroy(error)
    })
  }, close: () => session?.destroy() }
}

/** Node's HTTP/2 does not pass these on when it wraps a socket that is none of the system's. */
const SHOWN = ['encrypted', 'authorized', 'authorizationError', 'alpnProtocol', 'servername', 'getProtocol',
  'getCipher', 'getPeerCertificate', 'getPeerX509Certificate', 'getCertificate', 'getX509Certificate', 'getSession',
  'isSessionReused']

/** `session`: the server's end; `socket`: below it */
function prepareSession (session: Session, socket: ServerEnd) {
  session[UNCOUNTED] = true
  for (const name of SHOWN) if (name in socket) Reflect.set(session.socket, name, Reflect.get(socket, name))
  // net.Socket reads the addresses of both ends from these.
  Object.assign(session.socket, {
    _peername: { address: socket.remoteAddress, family: socket.remoteFamily, port: socket.remotePort },
    _getsockname: () => socket.address()
  })
}
