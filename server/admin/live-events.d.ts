import type { Server, Socket } from 'socket.io'
import type { Alarm } from '../dashboard/alarms.js'
import type { Update } from './live.js'

/** What the live connection brings to a browser. */
export interface ServerEvents {
  /** `now` sets the clock of the browser; by `url` it ignores changes of a page that it has left. */
  fragments: (update: Update & { now: number, url: string }) => void
  alarm: (alarm: Alarm) => void
  'signed-out': () => void
}

/** What a browser asks for. The server cannot rely on it. */
export interface BrowserEvents {
  /** `known`: hashes of what the page shows, by id */
  watch: (url: string, known: Record<string, string>, reply: (state: { version: string, software: string }) => void) => void
  /** `after`: the newest event that the browser knows of */
  notify: (wish: { kinds: string[], after: number | null }, reply: (state: { last: number }) => void) => void
}

type Unchecked = Record<keyof BrowserEvents, (...said: unknown[]) => void>

export type LiveServer = Server<Unchecked, ServerEvents>
export type LiveSocket = Socket<Unchecked, ServerEvents>
