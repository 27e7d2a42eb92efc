import http from 'node:http'
import { createAudit } from './audit.js'
import { attachLive } from './live.js'

/**
 * What answers below one path of the admin port, behind its guard. Its inner server never listens; express and engine.io attach
 * to it. So whatever attaches, and in whatever order, comes after the guard.
 * @typedef {ReturnType<typeof createSite>} Site
 * @typedef {Pick<typeof globalThis, 'setTimeout' | 'clearTimeout' | 'setInterval' | 'clearInterval'>} Timers
 */

/**
 * @param {object} parts
 * @param {string} parts.basePath
 * @param {http.RequestListener} parts.app
 * @param {import('../dashboard/follow-page.js').LivePages} parts.pages
 * @param {Pick<import('../events/stream.js').EventStream, 'publish'>} parts.events  hears who changes something
 * @param {Pick<import('./access.js').Access, 'sessions'>} parts.access
 * @param {string} parts.software
 * @param {() => number} parts.now
 * @param {Timers} parts.timers
 * @param {import('../system/log.js').Log} parts.log
 */
export function createSite ({ basePath, app, pages, events, access: { sessions: { authenticate, whyEnded } }, software, now, timers, log }) {
  const inner = http.createServer()
  inner.on('request', app)
  const live = attachLive({ httpServer: inner, pages, software, basePath, authenticate, whyEnded, now, log })
  const audit = createAudit({ events, timers })

  return {
    basePath,

    /** Records what becomes of a request. */
    watch: audit.watch,

    /** @param {http.IncomingMessage} req @param {http.ServerResponse} res */
    request (req, res) { inner.emit('request', req, res) },

    /** @param {http.IncomingMessage} req @param {import('node:stream').Duplex} socket @param {Buffer} head */
    upgrade (req, socket, head) { inner.emit('upgrade', req, socket, head) },

    /** Cuts live pages of senders who are no longer signed in. */
    endOutsiders: live.endOutsiders,

    /** Ends live pages. */
    close () {
      audit.close()
      live.close()
    }
  }
}
