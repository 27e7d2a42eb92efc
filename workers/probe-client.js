import { createRequire } from 'node:module'
import { clearTimeout, setTimeout } from 'node:timers'
import { connectInMemory } from './memory-socket.js'
import { probeCertificate } from './probe-certificate.js'
import { UNCOUNTED } from './requests.js'

const require = createRequire(import.meta.url)
const USER_AGENT = 'clusterdeck-probe'
const EXCERPT_CHARS = 200

/** @typedef {import('./node-internals.d.ts').AnyServer} AnyServer */
/** @typedef {import('node:http2').ServerHttp2Session & import('./requests.js').Marks} Session */
/** @typedef {ReturnType<typeof connectInMemory>['server']} ServerEnd */
/** @typedef {{ status: number, excerpt: string }} Answer `excerpt`: the first 200 characters of its body, on one line */
/** @typedef {{ ask: (path: string) => Promise<Answer>, close: () => void }} ProbeClient  `ask` rejects where there is no answer */

/**
 * Asks one of the app's own servers, over connections within this process.
 * @param {AnyServer} server  of HTTP/1 or HTTP/2, with TLS or without
 * @param {{ address: string, timeoutMs: number }} options `address`: the URL on which it listens
 * @returns {ProbeClient}
 */
export function createProbeClient (server, { address, timeoutMs }) {
  const isTls = typeof server.setSecureContext === 'function'
  const { host, port } = address.startsWith('unix:') ? { host: 'localhost', port: '' } : new URL(address)
  const create = typeof server.updateSettings === 'function' ? overHttp2 : overHttp1
  return create({ connect: connectAs, origin: `${isTls ? 'https' : 'http'}://${host}`, host, timeoutMs })

  /** @param {string} alpnProtocol */
  function connectAs (alpnProtocol) {
    // A server that takes only clients with a certificate takes this one too: there is no handshake to fail.
    const certificate = server.requestCert && server.rejectUnauthorized ? probeCertificate() : null
    const ends = connectInMemory({ port: Number(port), tls: isTls ? { alpnProtocol, certificate } : null })
    Object.assign(ends.server, { [UNCOUNTED]: true })
    const onSession = (/** @type {Session} */ session) => prepareSession(session, ends.server)
    server.prependListener('session', onSession)
    server.emit(isTls ? 'secureConnection' : 'connection', ends.server)
    server.off('session', onSession)
    return ends.client
  }
}

/** @typedef {{ connect: (alpnProtocol: string) => import('node:stream').Duplex, origin: string, host: string, timeoutMs: number }} Line */

/** @param {Line} line @returns {ProbeClient} */
function overHttp1 ({ connect, host, timeoutMs }) {
  // The app has loaded it by now. Loaded earlier, it would make activity.js take the app for a server.
  /** @type {typeof import('node:http')} */
  const http = require('node:http')
  // Like most clients, it keeps one connection as long as the app lets it.
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  Object.assign(agent, { createConnection: () => connect('http/1.1') })

  return {
    ask: (path) => settleWithin(timeoutMs, (done) => {
      const request = http.request({ agent, path, headers: { host, 'user-agent': USER_AGENT, accept: '*/*' } })
      request.on('response', (response) => readAnswer(response, Number(response.statusCode), done))
      request.on('error', done.fail)
      request.end()
      return (error) => request.destroy(error)
    }),
    close: () => agent.destroy()
  }
}

/** @param {Line} line @returns {ProbeClient} */
function overHttp2 ({ connect, origin, timeoutMs }) {
  /** @type {import('node:http2').ClientHttp2Session | undefined} */
  let session

  return {
    async ask (path) {
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
    },
    close: () => session?.destroy()
  }
}

/** @typedef {{ status: number | null, answer: (answer: Answer) => void, fail: (error: Error) => void }} Done */

/**
 * @param {number} timeoutMs @param {(done: Done) => (error: Error) => void} begin returns how to give up
 * @returns {Promise<Answer>}
 */
function settleWithin (timeoutMs, begin) {
  return new Promise((resolve, reject) => {
    /** @type {Done} */
    const done = {
      status: null,
      answer (answer) {
        clearTimeout(timer)
        resolve(answer)
      },
      fail (error) {
        clearTimeout(timer)
        reject(error)
      }
    }
    const timer = setTimeout(() => {
      const what = done.status === null ? 'no answer' : `answered ${done.status}, but not to its end`
      const error = new Error(`${what} within ${timeoutMs} ms`)
      done.fail(error)
      giveUp(error)
    }, timeoutMs)
    const giveUp = begin(done)
  })
}

/** @param {import('node:stream').Readable} body @param {number} status @param {Done} done */
function readAnswer (body, status, done) {
  done.status = status
  let excerpt = ''
  body.setEncoding('utf8')
  body.on('data', (text) => { if (excerpt.length < EXCERPT_CHARS) excerpt += text })
  body.on('end', () => done.answer({ status, excerpt: oneLine(excerpt) }))
  body.on('error', done.fail)
  body.on('close', () => done.fail(new Error(`answered ${status}, but its connection was closed before the end`)))
}

/** @param {string} text whatever the app says */
function oneLine (text) {
  return text.slice(0, EXCERPT_CHARS).replace(/[\s\p{Cc}]+/gu, ' ').trim()
}

/** Node's HTTP/2 does not pass these on when it wraps a socket that is none of the system's. */
const SHOWN = [
  'encrypted', 'authorized', 'authorizationError', 'alpnProtocol', 'servername', 'getProtocol', 'getCipher', 'getPeerCertificate',
  'getPeerX509Certificate', 'getCertificate', 'getX509Certificate', 'getSession', 'isSessionReused'
]

/** @param {Session} session  the server's end @param {ServerEnd} socket  below it */
function prepareSession (session, socket) {
  session[UNCOUNTED] = true
  for (const name of SHOWN) if (name in socket) Reflect.set(session.socket, name, Reflect.get(socket, name))
  // net.Socket reads the addresses of both ends from these.
  Object.assign(session.socket, {
    _peername: { address: socket.remoteAddress, family: socket.remoteFamily, port: socket.remotePort },
    _getsockname: () => socket.address()
  })
}
