import { Router } from 'express'
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
 * @param {{ views: Views, log: import('../system/log.js').Log }} parts
 */
export function createErrorPage ({ views, log }) {
  return {
    /** @type {import('express').RequestHandler} */
    refuseUnknown (req, _res, next) {
      if (!isVisit(req)) return next()
      throw new DeckError('not-found', `No such page: ${req.path.slice(0, 200)}`)
    },

    /** @type {import('express').ErrorRequestHandler} */
    onError (error, req, res, next) {
      if (!isVisit(req) || res.headersSent) return next(error)
      show(req, res, error)
    },

    show
  }

  /** @param {IncomingMessage} req @param {ServerResponse} res @param {unknown} error @param {object} [more] */
  function show (req, res, error, more = {}) {
    const { status, title, message, code } = toDeckError(error)
    if (code === 'internal') log.error({ err: error }, 'a page of the dashboard failed')
    const html = views.render('pages/error', { can: powersOf(req.auth), status, title, message, ...more })
    res.statusCode = status
    res.setHeader('Content-Type', 'text/html; charset=utf-8')
    res.setHeader('Content-Length', Buffer.byteLength(html))
    res.end(html)
  }
}

/** @param {IncomingMessage} req */
export function isVisit ({ method, url, headers }) {
  return method === 'GET' && !String(url).startsWith('/api/') && String(headers.accept).includes('text/html')
}

/** @param {Request} req the raw query: express may have been told to parse it in its own way */
export function queryOf (req) {
  return new URL(req.originalUrl, 'http://localhost').searchParams
}
