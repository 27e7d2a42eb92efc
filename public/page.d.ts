import type { Htmx } from 'htmx.org'
import type { io, Socket } from 'socket.io-client'
import type { BrowserEvents, ServerEvents } from './live-events.d.ts'
import type { Preference } from './preferences.ts'
import type { Pushed } from './vitals-feed.ts'

declare global {
  /** What libraries.js brings. */
  interface Window {
    htmx: Htmx
    io: typeof io
  }

  interface DocumentEventMap {
    'clusterdeck:preference': CustomEvent<Preference>
    vitals: CustomEvent<Pushed>
  }
}

export type LiveSocket = Socket<ServerEvents, BrowserEvents>
