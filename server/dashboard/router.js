import { Router } from 'express'
import { CSV_TYPE, sendExport } from '../api/export.js'
import { toDeckError } from '../problem.js'
import { DeckError } from '../errors.js'
import { countOpen } from '../health.js'
import { actionsRouter } from './actions.js'
import { frameModel } from './frame.js'
import { exportQuery } from './history-page.js'
import { logsFile } from './logs-page.js'
import { isAtLoopback } from './page-address.js'
import { PAGES } from './pages.js'
import { powersOf } from './powers.js'

/**
 * The pages of the dashboard, its downloads and its forms.
 * @typedef {import('./pages.js').Deck & import('./actions.js').Deck} Deck
 */

const SILENT_LOG = { warn () {}, error () {} }
/** @type {readonly [string, 'text' | 'ndjson', string][]} */
const LOG_FILES = [['/logs.txt', 'text', 'text/plain'], ['/logs.ndjson', 'ndjson', 'application/x-ndjson']]

/**
 * @param {object} parts
 * @param {Deck} parts.deck
 * @param {import('../../db/history.js').History} parts.history
 * @param {import('./views.js').Views} parts.views
 * @param {import('../api/tokens.js').TokenRegistry} parts.tokens
 * @param {() => import('../api/openapi.js').Json} parts.describe the API, as OpenAPI
 * @param {() => number} [parts.now] wall clock, ms since the epoch
 * @param {import('../system/log.js').Log} [parts.log]
 */
export function dashboardRouter ({ deck, history, views, tokens, describe, now = Date.now, log = SILENT_LOG }) {
  const router = Router()

  for (const { path, view, model, hasFilters } of PAGES) {
    router.get(path, async (req, res) => {
      const can = powersOf(req.auth)
      const shown = await model({
        deck,
        history,
        now,
        describe,
        tokens,
        can,
        isAtLoopback: isAtLoopback(req),
        render: views.render,
        params: queryOf(req),
        id: String(req.params.id ?? req.params.name ?? '')
      })
      if (hasFilters && req.get('HX-Request')) res.set('HX-Push-Url', shown.problem ? req.originalUrl : shown.canonicalUrl)
      res
        .status(shown.status ?? shown.problem?.status ?? 200)
        .type('html')
        .send(views.render(`pages/${view}`, { now: now(), ...frameParts(can), can, ...shown }))
    })
  }

  // A link cannot ask for a format as callers of the API do, by its Accept header.
  router.get('/history.csv', (req, res) => {
    return sendExport({ history, query: exportQuery({ history, deck, params: queryOf(req), now: now() }), type: CSV_TYPE, req, res, log })
  })

  for (const [path, type, mediaType] of LOG_FILES) {
    router.get(path, async (req, res) => {
      const text = await logsFile({ deck, params: queryOf(req), now, type })
      res.set({ 'Content-Type': `${mediaType}; charset=utf-8`, 'Content-Disposition': `attachment; filename="clusterdeck-${path.slice(1)}"` }).end(text)
    })
  }

  router.use(actionsRouter({ deck, now }))
  router.use(onVisits((req) => { throw new DeckError('not-found', `No such page: ${req.path.slice(0, 200)}`) }))
  router.use(showError)
  return router

  function frameParts (/** @type {import('./powers.js').Powers} */ { switchDecks }) {
    const openCrashes = countOpen(deck.crashes)
    return { openCrashes, frame: frameModel({ deck, openCrashes }), hasFleet: deck.fleet !== null, otherDecks: switchDecks ? deck.others.list().length : 0 }
  }

  /** A browser gets an error as a page; other clients get problem details from the app. @type {import('express').ErrorRequestHandler} */
  function showError (error, req, res, next) {
    if (!isVisit(req) || res.headersSent) return next(error)
    const { status, title, message, code } = toDeckError(error)
    if (code === 'internal') log.error({ err: error }, 'a page of the dashboard failed')
    res
      .status(status)
      .type('html')
      .send(views.render('pages/error', { now: now(), can: powersOf(req.auth), hasFleet: deck.fleet !== null, status, title, message }))
  }
}

/**
 * @param {import('express').RequestHandler} handler for browsers that open a page
 * @returns {import('express').RequestHandler}
 */
function onVisits (handler) {
  return (req, res, next) => isVisit(req) ? handler(req, res, next) : next()
}

function isVisit (/** @type {import('express').Request} */ { method, path, headers }) {
  return method === 'GET' && !path.startsWith('/api/') && String(headers.accept).includes('text/html')
}

/** @param {import('express').Request} req the raw query: express may have been told to parse it in its own way */
function queryOf (req) {
  return new URL(req.originalUrl, 'http://localhost').searchParams
}
