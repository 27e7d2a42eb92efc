import type { Auth } from './guard.js'

declare module 'node:http' {
  interface IncomingMessage {
    /** The sender, as the guard has identified them; null: not signed in. */
    auth?: Auth | null
  }
}
