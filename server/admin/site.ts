import http from 'node:http'
import { createAudit } from './audit.ts'
import { attachLive } from './live.ts'
import type { Duplex } from 'node:stream'
import type { LivePages } from '../dashboard/follow-page.ts'
import type { EventStream } from '../events/stream.ts'
import type { Access } from './access.ts'
import type { Log } from '../system/log.ts'

/**
 * What answers below one path of the admin port, behind its guard. Its inner server never listens; express and
 * engine.io attach to it. So whatever attaches, and in whatever order, comes after the guard.
 */
export type Site = ReturnType<typeof createSite>
export type Timers = Pick<typeof globalThis, 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval'>

export function createSite (
  { basePath, app, pages, events, access: { sessions: { authenticate, whyEnded } }, software, now, timers, log }: {
    basePath: string,
    app: http.RequestListener,
    pages: LivePages,
    /** hears who changes something */
    events: Pick<EventStream, 'publish'>,
    access: Pick<Access, 'sessions'>,
    software: string,
    now: () => number,
    timers: Timers,
    log: Log
  }
) {
  const inner = http.createServer()
  inner.on('request', app)
  const live = attachLive({ httpServer: inner, pages, software, basePath, authenticate, whyEnded, now, log })
  const audit = createAudit({ events, timers })

  return {
    basePath,

    /** Records what becomes of a request. */
    watch: audit.watch,

    request (req: http.IncomingMessage, res: http.ServerResponse) {
      inner.emit('request', req, res)
    },

    upgrade (req: http.IncomingMessage, socket: Duplex, head: Buffer) {
      inner.emit('upgrade', req, socket, head)
    },

    /** Cuts live pages of senders who are no longer signed in. */
    endOutsiders: live.endOutsiders,

    /** Ends live pages. */
    close () {
      audit.close()
      live.close()
    }
  }
}
