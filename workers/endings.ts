import { clearInterval, setInterval, setTimeout } from 'node:timers'
import { privateField } from './private-field.ts'
import { sentBytes } from './progress.ts'
import type { ServerHttp2Stream as Stream } from 'node:http2'
import type { Writable } from 'node:stream'
import type { AnyResponse as Response, AnySocket as Socket } from './node-internals.d.ts'

/** A peer gets this long to answer that a connection ends, and to close it then. */
export const CLOSE_MS = 2000
const LOOK_EVERY_MS = 50
/** What an app passes on from elsewhere may stop in the middle of a frame, but seldom for so long. */
const QUIET_MS = 500
/** FIN and the opcode of a close, and that two bytes follow, unmasked: RFC 6455, section 5.2. */
const CLOSE_FRAME = Object.freeze([0x88, 2])
/** The masked frame by which a client answers a close is no shorter. */
const SHORTEST_ANSWER = 6

/**
 * Closes a WebSocket as its protocol says: by the object of the package "ws" that holds it, otherwise by a frame of our
 * own. `isOpen`: the app has agreed to the upgrade.
 */
export function endWebSocket (socket: Socket, { code, isOpen }: { code: number, isOpen: boolean }) {
  const webSocket = webSocketOf(socket)
  if (webSocket) {
    webSocket.close(code)
    setTimeout(endConnection, CLOSE_MS, socket).unref()
  } else if (!isOpen) {
    endConnection(socket)
  } else if (isPipedInto(socket)) {
    whenQuiet(socket, () => sendClose(socket, code))
  } else {
    sendClose(socket, code)
  }
}

/** @returns what the package "ws" has made of it */
export function webSocketOf (socket: Socket): { close: (code: number) => void } | null {
  const webSocket = privateField(socket, 'websocket')
  return typeof webSocket?.close === 'function' ? webSocket : null
}

/**
 * Ends an answer of HTTP/1 as if its app had done so. The app sees a client that goes: after `response.end()` what it
 * writes would be an error.
 */
export function endEventStream ({ socket, chunkedEncoding }: Response) {
  if (!socket) return
  if (chunkedEncoding) socket.write('0\r\n\r\n')
  endConnection(socket)
}

/** `stream`: of HTTP/2 */
export function endStream (stream: Stream) {
  silence(stream)
  stream.end()
  // What its client still sends would keep it open.
  setTimeout(() => stream.close(), CLOSE_MS).unref()
}

export function endConnection (socket: Socket) {
  if (socket.destroyed) return
  silence(socket)
  socket.end()
  destroyOnceStill(socket, sentBytes(socket))
}

/** `socket`: that was ended; `sent`: Its peer may still read what was written before */
function destroyOnceStill (socket: Socket, sent: string) {
  setTimeout(() => {
    const now = sentBytes(socket)
    if (now === sent) socket.destroy()
    else if (!socket.destroyed) destroyOnceStill(socket, now)
  }, CLOSE_MS).unref()
}

function sendClose (socket: Socket, code: number) {
  const { write, bytesRead } = socket
  silence(socket)
  write.call(socket, Buffer.from([...CLOSE_FRAME, code >> 8, code & 0xff]))
  const until = performance.now() + CLOSE_MS
  lookUntil(() => socket.bytesRead - bytesRead >= SHORTEST_ANSWER || performance.now() >= until,
    () => endConnection(socket))
}

/** `then`: called once no frame is half written; if there is no such moment, the connection just ends */
function whenQuiet (socket: Socket, then: () => void) {
  const until = performance.now() + CLOSE_MS
  let written = socket.bytesWritten
  let quietSince = performance.now()
  const isQuiet = () => performance.now() - quietSince >= QUIET_MS
  lookUntil(() => {
    if (socket.bytesWritten !== written) quietSince = performance.now()
    written = socket.bytesWritten
    return isQuiet() || performance.now() >= until
  }, () => isQuiet() ? then() : endConnection(socket))
}

function lookUntil (isSo: () => boolean, then: () => void) {
  const looking = setInterval(() => {
    if (!isSo()) return
    clearInterval(looking)
    then()
  }, LOOK_EVERY_MS).unref()
}

/** Tells whether a stream is piped into it: that listens for its end */
function isPipedInto (socket: Socket): boolean {
  return socket.listenerCount('unpipe') > 0
}

/** What the app writes from now on is lost without an error, as it is when a client goes. */
function silence (writable: Writable) {
  const { end } = writable
  // A client that has gone is no error of the app, which may not listen for any.
  writable.on('error', () => {})
  writable.write = (...args: unknown[]) => {
    const written = callbackOf(args)
    if (written) process.nextTick(written)
    return true
  }
  writable.end = (...args: unknown[]) => Reflect.apply(end, writable, [callbackOf(args)])
}

function callbackOf (args: unknown[]): (() => void) | undefined {
  const last = args.at(-1)
  return typeof last === 'function' ? (last as () => void) : undefined
}
