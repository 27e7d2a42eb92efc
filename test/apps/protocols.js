import { openGrpc } from './protocols/grpc.js'
import { openHttp } from './protocols/http.js'
import { openHttp2 } from './protocols/http2.js'
import { openSocketIo } from './protocols/socket-io.js'
import { openTcp } from './protocols/tcp.js'
import { openUdp } from './protocols/udp.js'
import { openWebSocket } from './protocols/websocket.js'

/**
 * How a program is asked.
 * @typedef {object} Question
 * @property {keyof typeof PROTOCOLS} [protocol] default: http
 * @property {string | RegExp} expects what every answer holds. One that holds `pid <n>` tells the worker
 * @property {'socket'} [over] the Unix socket of its place instead of the port
 * @property {string | ((place: import('./place.js').Place) => string)} [path]
 * @property {string} [method]
 * @property {Record<string, string>} [headers]
 * @property {string} [body]
 * @property {string} [greeting]
 * @property {string} [send]
 * @property {string} [subprotocol]
 */
/** @typedef {Omit<Question, 'path'> & { folder: string, host: string, port: number, socket?: string, path?: string }} Target */

const PROTOCOLS = {
  http: openHttp,
  https: openHttp,
  h2c: openHttp2,
  h2: openHttp2,
  grpc: openGrpc,
  websocket: openWebSocket,
  'socket.io': openSocketIo,
  tcp: openTcp,
  udp: openUdp
}

/** @param {Question} question @param {import('./place.js').Place} place @returns {Target} */
export function aim (question, place) {
  const { over, path } = question
  return { host: '127.0.0.1', ...question, port: place.port, folder: place.folder, socket: over && place.socket, path: typeof path === 'function' ? path(place) : path }
}

/** @param {Target} target @param {boolean} isFresh whether it is closed after one answer @returns {import('./clients.js').Session} */
export function open (target, isFresh) {
  return PROTOCOLS[target.protocol ?? 'http'](target, isFresh)
}
