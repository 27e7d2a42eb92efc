import { openHttp } from './protocols/http.ts'
import { openHttp2 } from './protocols/http2.ts'
import { openPipelined } from './protocols/pipelined.ts'
import { openWebSocket } from './protocols/websocket.ts'
import type { Session } from './clients.ts'

// The columns of the matrix: how clients ask.

/** Of test/fixtures/serves-every-way.js. */
type Ports = { http: number, https: number, http2: number, http2Tls: number }
export type Sizes = {
  slowMs: number,
  /** of a download and of an upload */
  bodyBytes: number,
  /** of a stream, and messages over one WebSocket: four a second */
  events: number
}
export type Load = {
  name: string,
  title: string,
  /** that ask at the same time */
  clients: number,
  /** requests of each client at the same time */
  streams?: number,
  /** of a client after its answers */
  pauseMs: number,
  /** `client`: its number, from 0 on */
  open: (ports: Ports, sizes: Sizes, client: number) => Session
}

export const FULL = Object.freeze({ slowMs: 2000, bodyBytes: 10_000_000, events: 20 })
export const SHORT = Object.freeze({ slowMs: 500, bodyBytes: 1_000_000, events: 4 })

const EVENT_MS = 250
const DOWNLOAD_BYTES_PER_MS = 1000
const UPLOAD_BYTES_PER_MS = 5000

export const LOADS: readonly Load[] = Object.freeze([{ name: 'keep-alive', title: 'keep-alive', clients: 6, pauseMs: 20,
  open: ({ http }) => openHttp({ port: http, isKept: true }) }, { name: 'fresh', title: 'a connection per request',
  clients: 6, pauseMs: 20, open: ({ http }) => openHttp({ port: http, isKept: false }) }, { name: 'pipelined',
  title: 'pipelined, four at once', clients: 3, streams: 4, pauseMs: 40,
  open: ({ http }) => openPipelined({ port: http }) }, { name: 'slow', title: '2 s responses', clients: 8, pauseMs: 100,
  open: ({ http }, { slowMs }, client) =>
    openHttp({ port: http, isKept: client % 2 === 0, path: `/slow?ms=${slowMs}` }) }, { name: 'download',
  title: '10 MB downloads at 1 MB/s', clients: 3, pauseMs: 100,
  open: ({ http }, { bodyBytes }, client) =>
    openHttp({ port: http, isKept: client % 2 === 0, path: `/download?bytes=${bodyBytes}`,
      bytesPerMs: DOWNLOAD_BYTES_PER_MS, isWhole: ({ bytes }) => bytes === bodyBytes }) }, { name: 'upload',
  title: '10 MB uploads', clients: 3, pauseMs: 100,
  open: ({ http }, { bodyBytes }, client) =>
    openHttp({ port: http, isKept: client % 2 === 0, path: '/upload', uploadBytes: bodyBytes,
      bytesPerMs: UPLOAD_BYTES_PER_MS, isWhole: ({ text }) => text === String(bodyBytes) }) }, { name: 'events',
  title: 'server-sent events', clients: 4, pauseMs: 100,
  open: ({ http }, { events }, client) =>
    openHttp({ port: http, isKept: client % 2 === 0, path: `/events?count=${events}&ms=${EVENT_MS}`,
      isWhole: ({ text }) => text.includes(`id: ${events}\n`) }) }, { name: 'websocket', title: 'WebSocket', clients: 4,
  pauseMs: EVENT_MS, open: ({ http }, { events }) => openWebSocket({ port: http, messages: events }) }, { name: 'http2',
  title: 'HTTP/2, in clear text and over TLS', clients: 4, streams: 2, pauseMs: 40,
  open: ({ http2, http2Tls }, _sizes, client) =>
    openHttp2({ port: client < 2 ? http2 : http2Tls, isTls: client >= 2, isKept: client % 2 === 0 }) }, { name: 'https',
  title: 'HTTPS', clients: 4, pauseMs: 40,
  open: ({ https }, _sizes, client) => openHttp({ port: https, isTls: true, isKept: client % 2 === 0 }) }])
