import { setMaxListeners } from 'node:events'
import { findApp, findName, notRunning, type Apps, type OpenedApp } from '../host/api-apps.ts'
import { isByBrowser, roleAllows, visibleNames, type Auth } from '../api/roles.ts'
import { createSchemaPool } from '../api/schema-pool.ts'
import { appRows } from '../host/page-apps.ts'
import { absentModel, pastModel } from '../host/page-past.ts'
import { isVisit } from '../dashboard/page-router.ts'
import { DeckError } from '../errors.ts'
import { sendProblem } from '../problem.ts'
import { createDeckSite } from './deck-site.ts'
import { createHostSite } from './host-site.ts'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Site, Timers } from './site.ts'
import type { Deck } from '../deck.ts'
import type { Access, AccessParts } from './access.ts'
import type { Ask } from './mcp.ts'
import type { Place } from './sites.ts'

/** `ending`: ends its streams and waiting calls */
type Opened = { site: Site, deck: Deck, ending: AbortController }

/** `/apps/shop/logs` is a page of shop, `/api/v1/apps/shop/logs` is the same as `/apps/shop/api/v1/logs`. */
const OF_APP = /^(\/api\/v1)?\/apps\/([A-Za-z\d][\w.-]{0,59})(?=$|[/?])(.*)$/s

/** What the host does with an app. */
const BY_HOST = /^\/(?:start|stop|variables)(?=$|\?)/

const HEALTH = /^\/healthz(?=$|\?)/
const READINESS = /^\/readyz(?=$|\?)/
/** The whole port has these once. */
const OF_PORT = /^\/(?:sign-in|sign-out|assets\/[^?]*)(?=$|\?)/

/** The host answers these calls itself; every other short path of the API may mean the only app. */
const HOST_CALL = /^\/api\/v1\/(?:host|apps|tokens|sign-in-links|openapi\.json)(?=$|[/?])/

const OF_HOST = /^\/(?:api\/v1\/(?:host|apps)|apps\/[^/?]+\/(?:healthz|readyz))(?=$|[/?])/

/**
 * The sites of a host: one of its own and one for each app. Each is made at its first visit, and the site of an app ends
 * with the app, so that what nobody looks at costs nothing. Where a host is there for one app alone, the site of that
 * app has the paths of the port.
 */
export function createHostSites (
  parts: Pick<AccessParts, 'events' | 'history' | 'basePath' | 'now' | 'log'> & { apps: Apps, access: Access, ask: Ask,
    closing: AbortSignal, timers: Timers }
) {
  const { apps, access, basePath, closing } = parts
  const { only } = apps
  let ofHost: ReturnType<typeof createHostSite> | null = null
  /** by name */
  const opened: Map<string, Opened> = new Map()
  const schemas = createSchemaPool()
  const stopListening = apps.onChange(closeEnded)
  // The first visitor is to wait no longer than the second.
  if (only !== null) siteOf(only)

  return {
    /** The site that refuses what no other site answers. */
    get own () {
      return (only === null ? undefined : opened.get(only)?.site) ?? ownSite()
    },

    locate,

    /**
     * Finds the site that answers, and gives the request the URL that this site knows.
     * @param req which the guard has admitted
     * @throws {import('../errors.ts').DeckError} not-found, app-not-running
     */
    find (place: Place, req: IncomingMessage) {
      const { auth } = req
      // All other paths of the port belong to the only app of the host.
      if (only !== null && !OF_HOST.test(place.goesTo)) {
        if (place.app !== null && auth) findName(apps, place.app, auth)
        req.url = place.url
        return siteOf(only)
      }
      // A stranger comes no further than to the host, and does not learn which apps it has.
      if (!auth) {
        req.url = place.app === null ? place.goesTo : place.whole
        return ownSite()
      }
      const mine = visibleNames(apps, auth)
      const { app, goesTo } = mine.length === 1 ? shortPlace(place, mine[0]) : place
      req.url = goesTo
      if (app === null) return ownSite()
      findName(apps, app, auth)
      return siteOf(app)
    },

    refuse (req: IncomingMessage, res: ServerResponse, error: unknown) {
      if (only !== null || !isVisit(req) || !req.auth) return sendProblem(res, error)
      hostSite().showError(req, res, error, { isHost: true, ...offerOf(error, req.auth) })
    },

    endOutsiders () {
      ofHost?.site.endOutsiders()
      for (const { site } of opened.values()) site.endOutsiders()
    },

    close () {
      stopListening()
      ofHost?.site.close()
      // They go on answering until the port is closed.
      for (const { site, ending } of opened.values()) {
        ending.abort()
        site.close()
      }
    }
  }

  function hostSite () {
    ofHost ??= createHostSite(parts)
    return ofHost
  }

  function ownSite () {
    return hostSite().site
  }

  function siteOf (name: string) {
    const app = apps.opened(name)
    const known = opened.get(name)
    if (known && known.deck === app?.deck) return known.site
    closeSite(name)
    if (!app) throw notRunning(apps.view(name))
    return openSite(name, app)
  }

  function openSite (name: string, { deck, history, run }: NonNullable<ReturnType<typeof apps.opened>>) {
    if (closing.aborted) throw new DeckError('stopping', 'The host is stopping')
    const path = only === null ? `/apps/${name}` : ''
    const ending = new AbortController()
    setMaxListeners(0, ending.signal)
    const site = inScope(run,
      () =>
        createDeckSite({ ...parts, ask: (order, auth, limits) =>
          parts.ask({ ...order, path: path + order.path }, auth, limits), deck, history, schemas,
          neighbours: only === null ? (can) => appRows({ apps, can }) : undefined, basePath: basePath + path,
          home: basePath, hasSignIn: only !== null, urlFor: (req) => access.urlFor(req) + path,
          closing: ending.signal }))
    opened.set(name, { site, deck, ending })
    return site
  }

  /** Its streams, waiting calls and live pages end. */
  function closeSite (name: string) {
    const known = opened.get(name)
    if (!known) return
    opened.delete(name)
    known.ending.abort()
    known.site.close()
  }

  function offerOf (error: unknown, auth: Auth) {
    if (!(error instanceof DeckError) || error.code !== 'app-not-running') return {}
    const app = findApp(apps, error.details.app, auth)
    if (CHANGING.has(app.state)) return { ...absentModel(app), refreshS: LOOK_AGAIN_S }
    return { ...absentModel(app), past: pastModel(app, apps.left(app.name)),
      starts: isByBrowser(auth) && roleAllows(auth.role, 'operator') ? app.name : null }
  }

  function closeEnded () {
    for (const [name, { deck }] of opened) if (apps.opened(name)?.deck !== deck) closeSite(name)
  }
}

/** Seconds after which a page looks again for an app that changes. */
const LOOK_AGAIN_S = 2
const CHANGING = new Set(['waiting', 'starting', 'running', 'stopping'])

/** What a request begins in an app, and what a live page does there, is a part of that app. */
function inScope (run: OpenedApp['run'], open: () => Site): Site {
  const site = run(open)
  return { ...site, request: (req, res) => run(() => site.request(req, res)),
    upgrade: (req, socket, head) => run(() => site.upgrade(req, socket, head)) }
}

/**
 * Where the requests to a host belong: to the host itself or to one of its apps.
 * `url`: below the base path of the port
 */
function locate (url: string): Place {
  const [, api, name, rest] = OF_APP.exec(url) ?? []
  if (name === undefined) return place(url, url, null)
  if (api) return rest.startsWith('/') ? inApi(url, name, rest) : place(url, url, null)
  if (rest.startsWith('/api/v1/')) return inApi(url, name, rest.slice('/api/v1'.length))
  const inside = rest.startsWith('/') ? rest : `/${rest}`
  // The host answers both, so that they open no site. The guard knows a probe, which is for anyone, by its short path.
  if (READINESS.test(inside)) return place(url, url, null)
  if (HEALTH.test(inside)) return { ...place(url, inside, null), goesTo: url }
  if (OF_PORT.test(inside)) return place(url, withNext(inside, `/apps/${name}/`), null)
  return place(url, inside, name)
}

/** A short path of the API means the only app. `only`: its name. */
function shortPlace (place: Place, only: string): Place {
  if (place.app !== null || !place.url.startsWith('/api/v1/') || HOST_CALL.test(place.url)) return place
  return inApi(place.whole, only, place.url.slice('/api/v1'.length))
}

/** `rest`: below /api/v1 of the app */
function inApi (whole: string, name: string, rest: string): Place {
  return BY_HOST.test(rest) ? place(whole, `/api/v1/apps/${name}${rest}`, null) : place(whole, `/api/v1${rest}`, name)
}

function place (whole: string, url: string, app: string | null): Place {
  return { whole, url, goesTo: url, app }
}

/** Who signs in at an app comes to its pages. */
function withNext (url: string, next: string) {
  if (!/^\/sign-in(?=$|\?)/.test(url) || /[?&]next=/.test(url)) return url
  return `${url}${url.includes('?') ? '&' : '?'}next=${encodeURIComponent(next)}`
}
