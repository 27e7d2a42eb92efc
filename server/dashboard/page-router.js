import { Router } from 'express'
import { nearestName } from '../config/nearest.js'
import { DeckError } from '../errors.js'
import { toDeckError } from '../problem.js'
import { isAtLoopback } from './page-address.js'
import { powersOf } from './powers.js'

/**
 * What the pages of every site have in common: how they are asked for, and how their errors look.
 * @typedef {import('express').Request} Request
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('node:http').ServerResponse} ServerResponse
 * @typedef {Pick<import('./views.js').Views, 'render'>} Views
 * @typedef {import('../../public/places.js').Place} Place
 * @typedef {Pick<import('./pages.js').Page, 'path' | 'view' | 'hasFilters'> & { model: (asked: any) => import('./pages.js').Model | Promise<import('./pages.js').Model> }} Page
 */

/**
 * @param {readonly Page[]} pages
 * @param {object} parts
 * @param {() => object} parts.sources  what the models of one request are made of
 * @param {(asked: any) => object} parts.frame  what stands around each, made of the same
 * @param {Views} parts.views
 * @param {() => number} parts.now
 */
export function pagesRouter (pages, { sources, frame, views, now }) {
  const router = Router()
  for (const { path, view, model, hasFilters } of pages) {
    router.get(path, async (req, res) => {
      const can = powersOf(req.auth)
      const asked = {
        ...sources(),
        now,
        can,
        isAtLoopback: isAtLoopback(req),
        render: views.render,
        params: queryOf(req),
        id: String(req.params.id ?? req.params.name ?? '')
      }
      const shown = await model(asked)
      if (hasFilters && req.get('HX-Request')) res.set('HX-Push-Url', shown.problem ? req.originalUrl : shown.canonicalUrl)
      res
        .status(shown.status ?? shown.problem?.status ?? 200)
        .type('html')
        .send(views.render(`pages/${view}`, { now: now(), ...frame(asked), can, ...shown }))
    })
  }
  return router
}

/**
 * A browser gets an error as a page; other clients get problem details from elsewhere.
 * @param {object} parts
 * @param {Views} parts.views
 * @param {() => number} parts.now
 * @param {import('../system/log.js').Log} parts.log
 * @param {(asked: { can: import('./powers.js').Powers }) => object} parts.frame  what stands around every page
 * @param {(asked: { can: import('./powers.js').Powers }) => readonly Place[]} parts.places  where somebody may want to go instead
 */
export function createErrorPage ({ views, now, log, frame, places }) {
  return {
    /** @type {import('express').RequestHandler} */
    refuseUnknown (req, _res, next) {
      if (!isVisit(req)) return next()
      throw new DeckError('not-found', `No such page: ${req.path.slice(0, 200)}`)
    },

    /** @type {import('express').ErrorRequestHandler} */
    onError (error, req, res, next) {
      if (!(isVisit(req) || isFormOfPage(req)) || res.headersSent) return next(error)
      show(req, res, error)
    },

    show
  }

  /** @param {IncomingMessage} req @param {ServerResponse} res @param {unknown} error @param {object} [more] */
  function show (req, res, error, more = {}) {
    const { status, title, message, code } = toDeckError(error)
    if (code === 'internal') log.error({ err: error }, 'a page of the dashboard failed')
    const can = powersOf(req.auth)
    const html = views.render('pages/error', { now: now(), status, title, message, can, ...around(req, can), ...more })
    res.statusCode = status
    res.setHeader('Content-Type', 'text/html; charset=utf-8')
    res.setHeader('Content-Length', Buffer.byteLength(html))
    res.end(html)
  }

  /**
   * Whoever is signed in can go on from there; to others a page tells nothing of the site.
   * @param {IncomingMessage} req @param {import('./powers.js').Powers} can
   */
  function around (req, can) {
    if (!req.auth) return {}
    try {
      return { ...frame({ can }), isInside: true, near: nearestPlace(String(req.url), places({ can })) }
    } catch (error) {
      log.warn({ err: error }, 'a page about an error is shown without what stands around it')
      return {}
    }
  }
}

/** Shorter words are near to too many others. */
const MIN_GUESSED_CHARS = 5
/** Pages that no menu names, by how their addresses begin: the page that lists them. @type {Readonly<Record<string, string>>} */
const LISTS = Object.freeze({ releases: '/deploys', rollouts: '/deploys', compare: '/deploys', workers: '/' })

/**
 * The page that was most likely meant.
 * @param {string} path @param {readonly Place[]} places @returns {Place | null}
 */
export function nearestPlace (path, places) {
  const [, first = ''] = /^\/([\w-]{1,60})/.exec(path) ?? []
  const names = new Map(places.flatMap((place) => [place.href.slice(1), place.label.toLowerCase()].map((name) => [name, place])))
  if (first === '') return null
  const known = Object.hasOwn(LISTS, first) ? LISTS[first].slice(1) : first
  return names.get(known) ?? (known.length < MIN_GUESSED_CHARS ? null : names.get(String(nearestName(known, names.keys()))) ?? null)
}

/** @param {IncomingMessage} req */
export function isVisit ({ method, url, headers }) {
  return method === 'GET' && !String(url).startsWith('/api/') && String(headers.accept).includes('text/html')
}

/** Whether a page has sent a form without its scripts. @param {IncomingMessage} req */
export function isFormOfPage ({ method, url, headers }) {
  return method === 'POST' && !String(url).startsWith('/api/') && !headers['hx-request'] && String(headers.accept).includes('text/html')
}

/** The page that has sent the form, as a path: never one of another site. @param {IncomingMessage} req @returns {string} */
export function pageBefore ({ headers: { referer: from = '' } }) {
  const { pathname, search } = new URL(URL.canParse(from) ? from : 'http://localhost/')
  return pathname.replace(/^\/+/, '/') + search
}

/** @param {Request} req the raw query: express may have been told to parse it in its own way */
export function queryOf (req) {
  return new URL(req.originalUrl, 'http://localhost').searchParams
}
