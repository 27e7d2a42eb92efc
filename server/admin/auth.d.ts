import type { Auth } from './guard.js'

declare module 'node:http' {
  interface IncomingMessage {
    /** Who asks, as the guard found out; null is somebody unknown. */
    auth?: Auth | null
  }
}
