import { setMaxListeners } from 'node:events'
import { findApp, findName, notRunning, visibleNames, whyNotRunning } from '../api/apps.js'
import { roleAllows } from '../api/roles.js'
import { createSchemaPool } from '../api/schema-pool.js'
import { appRows } from '../dashboard/apps-page.js'
import { isVisit } from '../dashboard/page-router.js'
import { DeckError } from '../errors.js'
import { sendProblem } from '../problem.js'
import { createDeckSite } from './deck-site.js'
import { createHostSite } from './host-site.js'
import { locate, shortPlace } from './places.js'

/**
 * The sites of a host: one of its own, and one for each app from its first visit until the app closes. An app that nobody looks
 * at costs nothing here.
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {{ site: import('./site.js').Site, deck: import('../deck.js').Deck, ending: AbortController }} Opened  `ending`: ends its streams and waiting calls
 */

/** @param {import('./access.js').AccessParts & { apps: import('../api/apps.js').Apps, access: import('./access.js').Access, ask: import('./mcp.js').Ask, closing: AbortSignal, timers: import('./site.js').Timers }} parts */
export function createHostSites (parts) {
  const { apps, access, basePath, closing } = parts
  const { site: own, showError } = createHostSite(parts)
  /** @type {Map<string, Opened>} by name */
  const opened = new Map()
  const schemas = createSchemaPool()
  const stopListening = apps.onChange(closeEnded)

  return {
    own,
    locate,

    /**
     * Finds the site that answers, and gives the request the URL that this site knows.
     * @param {import('./sites.js').Place} place @param {IncomingMessage} req which the guard has admitted
     * @throws {import('../errors.js').DeckError} not-found, app-not-running
     */
    find (place, req) {
      const { auth } = req
      // A stranger comes no further than to the host, and does not learn which apps it has.
      if (!auth) {
        req.url = place.app === null ? place.goesTo : place.whole
        return own
      }
      const mine = visibleNames(apps, auth)
      const { app, goesTo } = mine.length === 1 ? shortPlace(place, mine[0]) : place
      req.url = goesTo
      return app === null ? own : siteOf(app, auth)
    },

    /** @param {IncomingMessage} req @param {import('node:http').ServerResponse} res @param {unknown} error */
    refuse (req, res, error) {
      if (isVisit(req) && req.auth) showError(req, res, error, { isHost: true, ...offerOf(error, req.auth) })
      else sendProblem(res, error)
    },

    endOutsiders () {
      own.endOutsiders()
      for (const { site } of opened.values()) site.endOutsiders()
    },

    close () {
      stopListening()
      own.close()
      for (const name of [...opened.keys()]) closeSite(name)
    }
  }

  /** @param {string} name @param {import('../api/roles.js').Auth} auth */
  function siteOf (name, auth) {
    findName(apps, name, auth)
    const app = apps.opened(name)
    const known = opened.get(name)
    if (known && known.deck === app?.deck) return known.site
    closeSite(name)
    if (!app) throw notRunning(apps.view(name))
    return openSite(name, app)
  }

  /** @param {string} name @param {NonNullable<ReturnType<typeof apps.opened>>} app */
  function openSite (name, { deck, history, run }) {
    if (closing.aborted) throw new DeckError('stopping', 'The host is stopping')
    const path = `/apps/${name}`
    const ending = new AbortController()
    setMaxListeners(0, ending.signal)
    const site = inScope(run, () => createDeckSite({
      ...parts,
      ask: (order, auth, limits) => parts.ask({ ...order, path: path + order.path }, auth, limits),
      deck,
      history,
      schemas,
      neighbours: (can) => appRows({ apps, can }),
      basePath: basePath + path,
      home: basePath,
      hasSignIn: false,
      urlFor: (req) => access.urlFor(req) + path,
      closing: ending.signal
    }))
    opened.set(name, { site, deck, ending })
    return site
  }

  /** Its streams, waiting calls and live pages end. @param {string} name */
  function closeSite (name) {
    const known = opened.get(name)
    if (!known) return
    opened.delete(name)
    known.ending.abort()
    known.site.close()
  }

  /** What the page of an app that does not run offers. @param {unknown} error @param {import('../api/roles.js').Auth} auth */
  function offerOf (error, auth) {
    if (!(error instanceof DeckError) || error.code !== 'app-not-running') return {}
    const app = findApp(apps, error.details.app, auth)
    if (CHANGING.has(app.state)) return { ...whyNotRunning(app), refreshS: LOOK_AGAIN_S }
    return { ...whyNotRunning(app), starts: auth.via === 'session' && roleAllows(auth.role, 'operator') ? app.name : null }
  }

  function closeEnded () {
    for (const [name, { deck }] of opened) if (apps.opened(name)?.deck !== deck) closeSite(name)
  }
}

/** Seconds after which a page looks again for an app that changes. */
const LOOK_AGAIN_S = 2
const CHANGING = new Set(['waiting', 'starting', 'running', 'stopping'])

/**
 * What a request begins in an app, and what a live page does there, is a part of that app.
 * @param {import('../api/apps.js').OpenedApp['run']} run @param {() => import('./site.js').Site} open
 * @returns {import('./site.js').Site}
 */
function inScope (run, open) {
  const site = run(open)
  return {
    ...site,
    request: (req, res) => run(() => site.request(req, res)),
    upgrade: (req, socket, head) => run(() => site.upgrade(req, socket, head))
  }
}
