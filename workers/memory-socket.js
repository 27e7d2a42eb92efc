import net from 'node:net'
import { setImmediate } from 'node:timers'

const LOOPBACK = '127.0.0.1'
/** @typedef {import('node:stream').Duplex & { destroySoon (): void }} Base */
/** Node's types take for properties what is replaced below, and are accessors. @type {new (options: net.SocketConstructorOpts) => Base} */
const Socket = net.Socket

/**
 * A connection inside this process, for a server that has not begun to accept: what one end writes, the other reads.
 * Both ends are sockets in all but the system's handle, so that servers and frameworks find what they look for.
 * @param {{ port?: number, tls?: Handshake | null }} [options]  `port`: the one on which the server seems to listen; `tls`: the server end has
 *   finished this handshake
 * @returns {{ client: MemorySocket, server: MemorySocket }}
 */
export function connectInMemory ({ port = 0, tls = null } = {}) {
  const client = new MemorySocket({ localPort: 0, remotePort: port })
  const server = tls ? new MemoryTlsSocket({ localPort: port, remotePort: 0 }, tls) : new MemorySocket({ localPort: port, remotePort: 0 })
  client.other = server
  server.other = client
  return { client, server }
}

/** @typedef {{ alpnProtocol: string, certificate: import('node:crypto').X509Certificate | null }} Handshake  `certificate`: the client's */

/** Without a handle net.Socket sends nothing, but the rest of it works: time-outs, events, `destroySoon` … */
class MemorySocket extends Socket {
  /** @type {MemorySocket | null} */
  other = null
  /** @type {(() => void) | null} goes on with the other end's writing */
  #takeMore = null
  #ports
  #bytesRead = 0
  #bytesWritten = 0

  /** @param {{ localPort: number, remotePort: number }} ports */
  constructor (ports) {
    super({ allowHalfOpen: true })
    this.#ports = ports
  }

  get remoteAddress () { return LOOPBACK }
  get remoteFamily () { return 'IPv4' }
  get remotePort () { return this.#ports.remotePort }
  get localAddress () { return LOOPBACK }
  get localFamily () { return 'IPv4' }
  get localPort () { return this.#ports.localPort }
  get pending () { return false }
  get bytesRead () { return this.#bytesRead }
  get bytesWritten () { return this.#bytesWritten }
  // It has no handle that would keep this process alive.
  ref () { return this }
  unref () { return this }
  address () { return { address: LOOPBACK, family: 'IPv4', port: this.#ports.localPort } }

  /** @override */
  _read () {
    const takeMore = this.#takeMore
    this.#takeMore = null
    takeMore?.()
  }

  /** @override @param {string | Buffer} chunk @param {BufferEncoding} encoding @param {(error?: Error | null) => void} callback */
  _write (chunk, encoding, callback) {
    const { other } = this
    if (!other || other.destroyed) return callback(otherEndGone())
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk
    this.#bytesWritten += bytes.length
    // Like a network, it never delivers in the writer's own turn.
    setImmediate(() => other.receive(bytes, callback))
  }

  /** @override @param {{ chunk: string | Buffer, encoding: BufferEncoding }[]} parts @param {(error?: Error | null) => void} callback */
  _writev (parts, callback) {
    this._write(Buffer.concat(parts.map(({ chunk, encoding }) => typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk)), 'utf8', callback)
  }

  /** @override @param {(error?: Error | null) => void} callback */
  _final (callback) {
    setImmediate(() => {
      if (this.other && !this.other.destroyed) this.other.push(null)
      callback()
    })
  }

  /** @override @param {Error | null} error @param {(error?: Error | null) => void} callback */
  _destroy (error, callback) {
    const { other } = this
    this.other = null
    this._read()
    if (other && !other.destroyed) setImmediate(() => other.left())
    super._destroy(error, callback)
  }

  /** @param {Buffer} bytes @param {(error?: Error | null) => void} taken */
  receive (bytes, taken) {
    if (this.destroyed) return taken(otherEndGone())
    this.#bytesRead += bytes.length
    if (this.push(bytes)) taken()
    else this.#takeMore = taken
  }

  /** The other end is gone; data that it sent can still be read. */
  left () {
    if (!this.readableEnded && !this.destroyed) this.push(null)
    if (!this.writableFinished) this.destroySoon()
  }
}

/** Shows what a server knows of a connection after its handshake. */
class MemoryTlsSocket extends MemorySocket {
  encrypted = true
  authorizationError = null
  servername = false

  #certificate

  /** @param {{ localPort: number, remotePort: number }} ports @param {Handshake} handshake */
  constructor (ports, { alpnProtocol, certificate }) {
    super(ports)
    this.alpnProtocol = alpnProtocol
    this.authorized = certificate !== null
    this.#certificate = certificate
  }

  getProtocol () { return 'TLSv1.3' }
  getCipher () { return { name: 'TLS_AES_256_GCM_SHA384', standardName: 'TLS_AES_256_GCM_SHA384', version: 'TLSv1.3' } }
  getPeerCertificate () { return this.#certificate?.toLegacyObject() ?? {} }
  getPeerX509Certificate () { return this.#certificate ?? undefined }
  getCertificate () { return {} }
  getX509Certificate () { return undefined }
  getSession () { return undefined }
  isSessionReused () { return false }
}

function otherEndGone () {
  return Object.assign(new Error('the other end is gone'), { code: 'EPIPE' })
}
