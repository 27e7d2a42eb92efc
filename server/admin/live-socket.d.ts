import type { Server, Socket } from 'socket.io'
import type { BrowserEvents, ServerEvents } from '../../public/live-events.d.ts'

/** What comes from a browser is not checked yet. */
type Unchecked = Record<keyof BrowserEvents, (...said: unknown[]) => void>

export type LiveServer = Server<Unchecked, ServerEvents>
export type LiveSocket = Socket<Unchecked, ServerEvents>
