/**
 * What clusterdeck uses of Node beyond the public interface, in versions 20 to 26. What a version may lack is optional
 * here, and is checked where it is used.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { Socket as DatagramSocket } from 'node:dgram'
import type { Server as NetServer, Socket as NetSocket } from 'node:net'

/** A socket as libuv holds it (TCP or Pipe). Calls return 0, or an error number below 0. */
export interface SocketHandle {
  readonly fd: number
  onconnection(error: number, client: SocketHandle): void
  listen(backlog: number): number
  close(callback?: () => void): void
  ref(): void
  unref(): void
  hasRef(): boolean
  /** Of a stream: whether it is read, and the end of that. */
  reading?: boolean
  readStop?(): number
  /** How many bytes wait to be written. */
  readonly writeQueueSize?: number
  /** A pipe has neither. */
  getsockname?(out: { address?: string, port?: number, family?: string }): number
  getpeername?(out: { address?: string, port?: number, family?: string }): number
}

/** The socket of node:dgram below its Socket. */
export interface DatagramHandle {
  bind(address: string | null, port: number, flags: number): number
  open(fd: number): number
  recvStart(): number
  recvStop(): number
  send(...args: unknown[]): number
  close(callback?: () => void): void
}

/** What a server of node:net or a socket of node:dgram asks of node:cluster: lib/internal/cluster/child.js. */
export interface ClusterQuery {
  address: string | null
  port: number
  addressType: number | string
  fd?: number
  flags?: number
  backlog?: number
}

/** Who asks node:cluster for a socket. */
export type Asker = NetServer | DatagramSocket

/** What the asker does with the answer; `errno`: 0, or an error number below 0. */
export type TakeHandle = (errno: number, handle: Pick<SocketHandle, 'close'> | DatagramHandle) => void

/** A server of node:net, node:tls, node:http or node:http2, told apart by what it has. */
export interface AnyServer extends NetServer {
  /** TLS. */
  setSecureContext?: unknown
  requestCert?: boolean
  rejectUnauthorized?: boolean
  /** HTTP/1. */
  closeIdleConnections?: unknown
  /** HTTP/2. */
  updateSettings?: unknown
}

/** A connection of such a server. */
export interface AnySocket extends NetSocket {
  /** TLS. */
  encrypted?: boolean
  alpnProtocol?: string | false | null
  /** Requests of HTTP/1 are read from it, at last `incoming`. */
  parser?: { incoming: unknown, [callback: number]: unknown } | null
  /** The answer of HTTP/1 that is being written. */
  _httpMessage?: AnyResponse | null
  /** Of TLS: the socket below. */
  _parent?: AnySocket
}

/** An answer of HTTP/1. */
export interface AnyResponse extends ServerResponse {
  /** As it goes out; null: not yet. */
  _header?: string | null
  socket: AnySocket | null
}

declare module 'net' {
  function _createServerHandle (address: string | null, port: number | null, addressType: number | string | null,
    fd?: number, flags?: number): SocketHandle | number

  interface Server {
    _handle: SocketHandle | null
    _connections: number
    _emitCloseIfDrained?(): void
    _listeningId?: number
    _listen2(address: null, port: null, addressType: null, backlog: number | undefined, fd: number,
      flags: number | undefined): void
    /** Only a server of TLS has these two, for its ticket keys. */
    _getServerData?: () => unknown
    _setServerData?: (data: unknown) => void
  }

  interface Socket {
    _handle: SocketHandle | null
    /** Node calls it when the time of setTimeout() is over. */
    _onTimeout(): void
    /** The server that has accepted it. */
    server?: Server | null
  }

  interface SocketConstructorOpts {
    handle?: SocketHandle
  }

  interface ListenOptions {
    fd?: number
    handle?: object
    _handle?: object
    reusePort?: boolean
  }
}

declare module 'cluster' {
  interface Cluster {
    _getServer(server: Asker, query: ClusterQuery, take: TakeHandle): void
  }
}

/** What a session of HTTP/2 says of a new stream. */
export type StreamArguments = [ServerHttp2Stream, IncomingHttpHeaders, number, string[]]

declare module 'http2' {
  interface ServerHttp2Session {
    rawListeners(name: 'stream'): ((...args: StreamArguments) => void)[]
  }
}

declare module 'dgram' {
  interface Socket {
    readonly type: SocketType
    /** What a server of node:net has. */
    _listeningId?: undefined
    _getServerData?: undefined
    _setServerData?: undefined
  }
}

interface HttpExchange {
  request: IncomingMessage
  response: ServerResponse
  server: import('node:net').Server
  socket: import('node:net').Socket
}

interface StreamExchange {
  stream: ServerHttp2Stream
  headers: IncomingHttpHeaders
}

/** What Node publishes on the channels of node:diagnostics_channel that are listened to here. */
export interface ChannelMessages {
  'http.server.request.start': HttpExchange
  'http.server.response.finish': HttpExchange
  'http2.server.stream.start': StreamExchange
  'http2.server.stream.close': { stream: ServerHttp2Stream & { sentHeaders?: { ':status'?: number } } }
  worker_threads: { worker: import('node:worker_threads').Worker }
}

declare module 'diagnostics_channel' {
  function subscribe<Name extends keyof ChannelMessages> (name: Name,
    listener: (message: ChannelMessages[Name], name: string | symbol) => void): void
  function unsubscribe<Name extends keyof ChannelMessages> (name: Name,
    listener: (message: ChannelMessages[Name], name: string | symbol) => void): boolean
}

declare module 'child_process' {
  /** The channel to whoever has started this process: it keeps the process running while somebody needs it. */
  interface Control {
    refCounted?(): void
    unrefCounted?(): void
  }
  interface ChildProcess {
    /** What waits for the acknowledgement of a handle; null: nothing. */
    _handleQueue?: unknown[] | null
    /** Node sends such a handle as it is. */
    send(message: object | string, handle: SocketHandle | DatagramHandle | undefined, options?: undefined,
      callback?: (error: Error | null) => void): boolean
  }
}

declare global {
  namespace NodeJS {
    interface Process {
      /** The names of Node's own modules that are loaded. */
      moduleLoadList?: string[]
      send?(message: object, handle: SocketHandle | DatagramHandle | undefined, options?: undefined,
        callback?: (error: Error | null) => void): boolean
    }
    interface ProcessReport {
      excludeNetwork?: boolean
    }
  }
}
