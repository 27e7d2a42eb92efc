import { addBaseToHeaders, withoutBase } from '../api/base-path.ts'
import { createTurns } from '../api/turn.ts'
import { lendSchema } from '../config/api.ts'
import { refuseUpgrade, sendProblem, toDeckError } from '../problem.ts'
import { SECURITY_HEADERS } from './security-headers.ts'
import { createHostSites } from './host-sites.ts'
import { createInProcessTransport } from './in-process-transport.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Site } from './site.ts'
import type { Ask } from './mcp.ts'
import type { Refusal } from './anonymous-limiter.ts'

/**
 * What stands behind the admin port: the guard looks at everything first, then the site of the host or of an app
 * answers.
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

/** `events` and `history`: of the host, or of its only app */
type Parts = Omit<Parameters<typeof createHostSites>[0], 'ask'>

export function createSites (parts: Parts) {
  const { basePath, log, access } = parts
  const takeSchemaBack = lendSchema()
  const { sessions: { authenticate } } = access
  const ask: Ask = (order, auth, limits) => inside.ask(order, auth, limits)
  const sites = createHostSites({ ...parts, ask })
  const nextTurn = createTurns()
  const inside = createInProcessTransport((auth, req, res) => {
    const place = takePlace(req)
    req.auth = auth
    answer(place, req, res)
  })
  /** Requests of signed-in senders that are not answered yet. */
  const answering: Map<IncomingMessage, ServerResponse> = new Map()
  const forgetRevoked = access.tokens.onRevoked(endOutsiders)

  return {
    /** Ends streams and live pages. */
    close () {
      inside.close()
      sites.close()
      takeSchemaBack()
      forgetRevoked()
    },

    /** Answers a request of another deck, for a person who is signed in there. */
    ask: inside.ask,

    request (req: IncomingMessage, res: ServerResponse) {
      const place = takePlace(req)
      try {
        req.auth = access.guard.admitRequest(req)
        access.noteUse(req)
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
        access.noteUse(req)
        sites.find(place, req).upgrade(req, socket, head)
      } catch (error) {
        reportInternal(error)
        refuseUpgrade(socket, error)
      }
    }
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
