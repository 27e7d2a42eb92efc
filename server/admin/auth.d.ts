import type { Auth } from '../api/roles.ts'

declare module 'node:http' {
  interface IncomingMessage {
    /** The sender, as the guard has identified them; null: not signed in. */
    auth?: Auth | null
  }
}
