import net from 'node:net'
import { setImmediate } from 'node:timers'
import type { Duplex } from 'node:stream'
import type { X509Certificate } from 'node:crypto'

const LOOPBACK = '127.0.0.1'
type Base =
  & Duplex
  & { destroySoon(): void }
/** Node's types take for properties what is replaced below, and are accessors. */
const Socket: new(options: net.SocketConstructorOpts) => Base = net.Socket

/**
 * A connection inside this process, for a server that has not begun to accept: what one end writes, the other reads.
 * Both ends are sockets in all but the system's handle, so that servers and frameworks find what they look for.
 * `port`: the one on which the server seems to listen; `tls`: the server end has finished this handshake.
 */
export function connectInMemory (
  { port = 0, tls = null }: { port?: number, tls?: Handshake | null } = {}
): { client: MemorySocket, server: MemorySocket } {
  const client = new MemorySocket({ localPort: 0, remotePort: port })
  const server = tls
    ? new MemoryTlsSocket({ localPort: port, remotePort: 0 }, tls)
    : new MemorySocket({ localPort: port, remotePort: 0 })
  client.other = server
  server.other = client
  return { client, server }
}

/** `certificate`: the client's */
type Handshake = { alpnProtocol: string, certificate: X509Certificate | null }

/** Without a handle net.Socket sends nothing, but the rest of it works: time-outs, events, `destroySoon` … */
class MemorySocket extends Socket {
  other: MemorySocket | null = null
  /** goes on with the other end's writing */
  #takeMore: (() => void) | null = null
  #ports
  #bytesRead = 0
  #bytesWritten = 0

  constructor (ports: { localPort: number, remotePort: number }) {
    super({ allowHalfOpen: true })
    this.#ports = ports
  }

  get remoteAddress () {
    return LOOPBACK
  }
  get remoteFamily () {
    return 'IPv4'
  }
  get remotePort () {
    return this.#ports.remotePort
  }
  get localAddress () {
    return LOOPBACK
  }
  get localFamily () {
    return 'IPv4'
  }
  get localPort () {
    return this.#ports.localPort
  }
  get pending () {
    return false
  }
  get bytesRead () {
    return this.#bytesRead
  }
  get bytesWritten () {
    return this.#bytesWritten
  }
  // It has no handle that would keep this process alive.
  ref () {
    return this
  }
  unref () {
    return this
  }
  address () {
    return { address: LOOPBACK, family: 'IPv4', port: this.#ports.localPort }
  }

  override _read () {
    const takeMore = this.#takeMore
    this.#takeMore = null
    takeMore?.()
  }

  override _write (chunk: string | Buffer, encoding: BufferEncoding, callback: (error?: Error | null) => void) {
    const { other } = this
    if (!other || other.destroyed) return callback(otherEndGone())
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk
    this.#bytesWritten += bytes.length
    // Like a network, it never delivers in the writer's own turn.
    setImmediate(() => other.receive(bytes, callback))
  }

  override _writev (parts: { chunk: string | Buffer, encoding: BufferEncoding }[],
    callback: (error?: Error | null) => void)
  {
    this._write(
      Buffer.concat(
        parts.map(({ chunk, encoding }) => typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk)
      ),
      'utf8',
      callback
    )
  }

  override _final (callback: (error?: Error | null) => void) {
    setImmediate(() => {
      if (this.other && !this.other.destroyed) this.other.push(null)
      callback()
    })
  }

  override _destroy (error: Error | null, callback: (error?: Error | null) => void) {
    const { other } = this
    this.other = null
    this._read()
    if (other && !other.destroyed) setImmediate(() => other.left())
    super._destroy(error, callback)
  }

  receive (bytes: Buffer, taken: (error?: Error | null) => void) {
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
  alpnProtocol: Handshake['alpnProtocol']
  authorized: boolean
  encrypted = true
  authorizationError = null
  servername = false

  #certificate

  constructor (ports: { localPort: number, remotePort: number }, { alpnProtocol, certificate }: Handshake) {
    super(ports)
    this.alpnProtocol = alpnProtocol
    this.authorized = certificate !== null
    this.#certificate = certificate
  }

  getProtocol () {
    return 'TLSv1.3'
  }
  getCipher () {
    return { name: 'TLS_AES_256_GCM_SHA384', standardName: 'TLS_AES_256_GCM_SHA384', version: 'TLSv1.3' }
  }
  getPeerCertificate () {
    return this.#certificate?.toLegacyObject() ?? {}
  }
  getPeerX509Certificate () {
    return this.#certificate ?? undefined
  }
  getCertificate () {
    return {}
  }
  getX509Certificate () {
    return undefined
  }
  getSession () {
    return undefined
  }
  isSessionReused () {
    return false
  }
}

function otherEndGone () {
  return Object.assign(new Error('the other end is gone'), { code: 'EPIPE' })
}
