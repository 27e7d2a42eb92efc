import { addBaseToHeaders, withoutBase } from '../api/base-path.ts'
import { createTurns } from '../api/turn.ts'
import { refuseUpgrade, sendProblem, toDeckError } from '../problem.ts'
import { createAccess, type Access, type AccessParts } from './access.ts'
import { createDeckSite } from './deck-site.ts'
import { securityHeaders } from './guard.ts'
import { createHostSites } from './host-sites.ts'
import { createInProcessTransport } from './in-process-transport.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Deck } from '../deck.ts'
import type { EventStream } from '../events/stream.ts'
import type { Site, Timers } from './site.ts'
import type { Ask } from './mcp.ts'
import type { Refusal } from './anonymous-limiter.ts'

/**
 * What stands behind the admin port: the guard looks at everything first, then a site answers. With one deck there is
 * one site; a host has one of its own and one for each app that somebody looks at.
 */
export type Sites = ReturnType<typeof createSites>

/** Where a request belongs, before it is known who sends it. */
export type Place = {
  /** as its site knows it: what the guard judges */
  url: string,
  /** below the base path of the port */
  whole: string,
  /** as the site knows it that answers; it differs from `url` where the host answers for an app */
  goesTo: string,
  /** the name of an app; null: the site of the port */
  app: string | null
}

/** either `deck`, of the only app, with its history; or of a host `apps` and `events`, with the history of the host */
type Parts = Omit<AccessParts, 'events'> & { deck?: Deck, events?: EventStream, closing: AbortSignal, timers: Timers }

const SECURITY_HEADERS = new Map(Object.entries(securityHeaders()))

export function createSites (parts: Parts) {
  const { basePath, log } = parts
  const events = parts.events ?? parts.deck?.events
  if (!events) throw new TypeError('expected a deck, or the apps and the events of a host')
  const access = createAccess({ ...parts, events })
  const { sessions: { authenticate } } = access
  const ask: Ask = (order, auth, limits) => inside.ask(order, auth, limits)
  const sites = parts.apps
    ? createHostSites({ ...parts, apps: parts.apps, events, access, ask })
    : createOnly(parts, { access, ask })
  const nextTurn = createTurns()
  const inside = createInProcessTransport((auth, req, res) => {
    const place = takePlace(req)
    req.auth = auth
    answer(place, req, res)
  })
  /** Requests of signed-in senders that are not answered yet. */
  const answering: Map<IncomingMessage, ServerResponse> = new Map()
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

    request (req: IncomingMessage, res: ServerResponse) {
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

    upgrade (req: IncomingMessage, socket: Duplex, head: Buffer) {
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

  function noteUse ({ auth, socket }: IncomingMessage) {
    if (auth?.token) access.tokens.noteUse(auth.token, socket.remoteAddress ?? 'unknown')
  }

  /** From here on the request has the URL that its site knows. */
  function takePlace (req: IncomingMessage): Place {
    const place = sites.locate(withoutBase(basePath, String(req.url)))
    req.url = place.url
    return place
  }

  function answer (place: Place, req: IncomingMessage, res: ServerResponse) {
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

  function refuseByProblem (place: Place, req: IncomingMessage, res: ServerResponse, error: unknown) {
    req.url = place.whole
    addBaseToHeaders(basePath, res)
    beginRequest(sites.own, req, res)
    reportInternal(error)
    sites.refuse(req, res, error)
  }

  async function refuseRequest (place: Place, req: IncomingMessage, res: ServerResponse,
    { status, headers, body }: Refusal)
  {
    req.url = place.whole
    sites.own.watch(req, res)
    // Each turn of the event loop accepts one new connection, so many refusals in one turn would delay others.
    await nextTurn()
    res.writeHead(status, headers).end(body)
  }

  function beginRequest (site: Site, req: IncomingMessage, res: ServerResponse) {
    res.setHeaders(SECURITY_HEADERS)
    site.watch(req, res)
    // A sender from another deck is signed in there, not here.
    if (req.auth && req.auth.via !== 'fleet' && req.auth.via !== 'agent') followRequest(req, res)
  }

  function followRequest (req: IncomingMessage, res: ServerResponse) {
    answering.set(req, res)
    res.once('close', () => answering.delete(req))
  }

  /** Cuts streams, live pages and waiting calls of senders who are no longer signed in. */
  function endOutsiders () {
    for (const [req, res] of answering) if (!authenticate(req)) res.destroy()
    sites.endOutsiders()
  }

  // Nothing that a request does may end the master.
  function reportInternal (error: unknown) {
    if (toDeckError(error).code === 'internal') log.error({ err: error }, 'a request to the admin port failed')
  }
}

/** A deck that is alone behind its port. */
function createOnly (parts: Parts, { access, ask }: { access: Access, ask: Ask }) {
  const site = createDeckSite({ ...parts, deck: parts.deck as Deck, access, ask, hasSignIn: true, home: parts.basePath,
    urlFor: access.urlFor })
  return { own: site, locate: (url: string): Place => ({ url, whole: url, goesTo: url, app: null }), find: () => site,
    refuse: (_req: IncomingMessage, res: ServerResponse, error: unknown) => sendProblem(res, error),
    endOutsiders: site.endOutsiders, close: site.close }
}
