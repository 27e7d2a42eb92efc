import { addBaseToHeaders, withoutBase } from '../api/base-path.js'
import { createTurns } from '../api/turn.js'
import { refuseUpgrade, sendProblem, toDeckError } from '../problem.js'
import { createAccess } from './access.js'
import { createDeckSite } from './deck-site.js'
import { securityHeaders } from './guard.js'
import { createHostSites } from './host-sites.js'
import { createInProcessTransport } from './in-process-transport.js'

/**
 * What stands behind the admin port: the guard looks at everything first, then a site answers. With one deck there is one
 * site; a host has one of its own and one for each app that somebody looks at.
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('node:http').ServerResponse} ServerResponse
 * @typedef {ReturnType<typeof createSites>} Sites
 */

/**
 * Where a request belongs, before it is known who sends it.
 * @typedef {object} Place
 * @property {string} url  as its site knows it: what the guard judges
 * @property {string} whole  below the base path of the port
 * @property {string} goesTo  as the site knows it that answers; it differs from `url` where the host answers for an app
 * @property {string | null} app  the name of an app; null: the site of the port
 */

/**
 * @typedef {Omit<import('./access.js').AccessParts, 'events'> & {
 *   deck?: import('../deck.js').Deck,
 *   events?: import('../events/stream.js').EventStream,
 *   closing: AbortSignal,
 *   timers: import('./site.js').Timers
 * }} Parts  either `deck`, of the only app, with its history; or of a host `apps` and `events`, with the history of the host
 */

const SECURITY_HEADERS = new Map(Object.entries(securityHeaders()))

/** @param {Parts} parts */
export function createSites (parts) {
  const { basePath, log } = parts
  const events = parts.events ?? parts.deck?.events
  if (!events) throw new TypeError('expected a deck, or the apps and the events of a host')
  const access = createAccess({ ...parts, events })
  const { sessions: { authenticate } } = access
  /** @type {import('./mcp.js').Ask} */
  const ask = (order, auth, limits) => inside.ask(order, auth, limits)
  const sites = parts.apps ? createHostSites({ ...parts, apps: parts.apps, events, access, ask }) : createOnly(parts, { access, ask })
  const nextTurn = createTurns()
  const inside = createInProcessTransport((auth, req, res) => {
    const place = takePlace(req)
    req.auth = auth
    answer(place, req, res)
  })
  /** Requests of signed-in senders that are not answered yet. @type {Map<IncomingMessage, ServerResponse>} */
  const answering = new Map()
  access.tokens.onRevoked(endOutsiders)

  return {
    /** Signs everybody out, on this port and in the history. */
    revokeSessions: access.sessions.revokeAll,

    /** Ends streams and live pages. */
    close () {
      inside.close()
      sites.close()
    },

    /** Answers a request of another deck, for a person who is signed in there. */
    ask: inside.ask,

    /** @param {IncomingMessage} req @param {ServerResponse} res */
    request (req, res) {
      const place = takePlace(req)
      try {
        req.auth = access.guard.admitRequest(req)
        noteUse(req)
        const refusal = req.auth ? null : access.strangers.refuse(req)
        if (refusal) return refuseRequest(place, req, res, refusal)
      } catch (error) {
        return refuseByProblem(place, req, res, error)
      }
      answer(place, req, res)
    },

    /** @param {IncomingMessage} req @param {import('node:stream').Duplex} socket @param {Buffer} head */
    upgrade (req, socket, head) {
      const place = takePlace(req)
      try {
        req.auth = access.guard.admitUpgrade(req)
        noteUse(req)
        sites.find(place, req).upgrade(req, socket, head)
      } catch (error) {
        reportInternal(error)
        refuseUpgrade(socket, error)
      }
    }
  }

  /** @param {IncomingMessage} req */
  function noteUse ({ auth, socket }) {
    if (auth?.token) access.tokens.noteUse(auth.token, socket.remoteAddress ?? 'unknown')
  }

  /** From here on the request has the URL that its site knows. @param {IncomingMessage} req @returns {Place} */
  function takePlace (req) {
    const place = sites.locate(withoutBase(basePath, String(req.url)))
    req.url = place.url
    return place
  }

  /** @param {Place} place @param {IncomingMessage} req @param {ServerResponse} res */
  function answer (place, req, res) {
    let site
    try {
      site = sites.find(place, req)
    } catch (error) {
      return refuseByProblem(place, req, res, error)
    }
    addBaseToHeaders(site.basePath, res)
    beginRequest(site, req, res)
    try {
      site.request(req, res)
    } catch (error) {
      reportInternal(error)
      sendProblem(res, error)
    }
  }

  /** @param {Place} place @param {IncomingMessage} req @param {ServerResponse} res @param {unknown} error */
  function refuseByProblem (place, req, res, error) {
    req.url = place.whole
    addBaseToHeaders(basePath, res)
    beginRequest(sites.own, req, res)
    reportInternal(error)
    sites.refuse(req, res, error)
  }

  /** @param {Place} place @param {IncomingMessage} req @param {ServerResponse} res @param {import('./anonymous-limiter.js').Refusal} refusal */
  async function refuseRequest (place, req, res, { status, headers, body }) {
    req.url = place.whole
    sites.own.watch(req, res)
    // Each turn of the event loop accepts one new connection, so many refusals in one turn would delay others.
    await nextTurn()
    res.writeHead(status, headers).end(body)
  }

  /** @param {import('./site.js').Site} site @param {IncomingMessage} req @param {ServerResponse} res */
  function beginRequest (site, req, res) {
    res.setHeaders(SECURITY_HEADERS)
    site.watch(req, res)
    // A sender from another deck is signed in there, not here.
    if (req.auth && req.auth.via !== 'fleet' && req.auth.via !== 'agent') followRequest(req, res)
  }

  /** @param {IncomingMessage} req @param {ServerResponse} res */
  function followRequest (req, res) {
    answering.set(req, res)
    res.once('close', () => answering.delete(req))
  }

  /** Cuts streams, live pages and waiting calls of senders who are no longer signed in. */
  function endOutsiders () {
    for (const [req, res] of answering) if (!authenticate(req)) res.destroy()
    sites.endOutsiders()
  }

  // Nothing that a request does may end the master.
  function reportInternal (/** @type {unknown} */ error) {
    if (toDeckError(error).code === 'internal') log.error({ err: error }, 'a request to the admin port failed')
  }
}

/** A deck that is alone behind its port. @param {Parts} parts @param {{ access: import('./access.js').Access, ask: import('./mcp.js').Ask }} made */
function createOnly (parts, { access, ask }) {
  const site = createDeckSite({ ...parts, deck: /** @type {import('../deck.js').Deck} */ (parts.deck), access, ask, hasSignIn: true, home: parts.basePath, urlFor: access.urlFor })
  return {
    own: site,
    /** @param {string} url @returns {Place} */
    locate: (url) => ({ url, whole: url, goesTo: url, app: null }),
    find: () => site,
    /** @param {IncomingMessage} _req @param {ServerResponse} res @param {unknown} error */
    refuse: (_req, res, error) => sendProblem(res, error),
    endOutsiders: site.endOutsiders,
    close: site.close
  }
}
