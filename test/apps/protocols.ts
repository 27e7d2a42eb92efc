import { openGrpc } from './protocols/grpc.ts'
import { openHttp } from './protocols/http.ts'
import { openHttp2 } from './protocols/http2.ts'
import { openSocketIo } from './protocols/socket-io.ts'
import { openTcp } from './protocols/tcp.ts'
import { openUdp } from './protocols/udp.ts'
import { openWebSocket } from './protocols/websocket.ts'
import type { Place } from './place.ts'
import type { Session } from './clients.ts'

/** How a program is asked. */
export type Question = {
  /** default: http */
  protocol?: keyof typeof PROTOCOLS,
  /** what every answer holds. One that holds `pid <n>` tells the worker */
  expects: string | RegExp,
  /** the Unix socket of its place instead of the port */
  over?: 'socket',
  path?: string | ((place: Place) => string),
  method?: string,
  headers?: Record<string, string>,
  body?: string,
  greeting?: string,
  send?: string,
  subprotocol?: string
}
export type Target = Omit<Question, 'path'> & { folder: string, host: string, port: number, socket?: string,
  path?: string }

const PROTOCOLS = { http: openHttp, https: openHttp, h2c: openHttp2, h2: openHttp2, grpc: openGrpc,
  websocket: openWebSocket, 'socket.io': openSocketIo, tcp: openTcp, udp: openUdp }

export function aim (question: Question, place: Place): Target {
  const { over, path } = question
  return { host: '127.0.0.1', ...question, port: place.port, folder: place.folder, socket: over && place.socket,
    path: typeof path === 'function' ? path(place) : path }
}

/** `isFresh`: whether it is closed after one answer */
export function open (target: Target, isFresh: boolean): Session {
  return PROTOCOLS[target.protocol ?? 'http'](target, isFresh)
}
