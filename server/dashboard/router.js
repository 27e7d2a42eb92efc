import { Router } from 'express'
import { CSV_TYPE, sendExport } from '../api/export.js'
import { actionsRouter } from './actions.js'
import { frameParts } from './frame.js'
import { exportQuery } from './history-page.js'
import { logsFile } from './logs-page.js'
import { createErrorPage, pagesRouter, queryOf } from './page-router.js'
import { PAGES } from './pages.js'
import { placesOf } from './palette.js'

/**
 * The pages of the dashboard of a deck, its downloads and its forms.
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
 * @param {import('../api/tokens.js').Sessions} parts.sessions
 * @param {() => import('../api/openapi.js').Json} parts.describe the API, as OpenAPI
 * @param {import('./palette.js').Neighbours} [parts.neighbours]  in a host
 * @param {string} [parts.basePath]  of its pages, in a host
 * @param {() => number} [parts.now] wall clock, ms since the epoch
 * @param {import('../system/log.js').Log} [parts.log]
 */
export function dashboardRouter ({ deck, history, views, tokens, sessions, describe, neighbours, basePath = '', now = Date.now, log = SILENT_LOG }) {
  const router = Router()
  const errors = createErrorPage({ views, now, log, frame: layoutParts, places: ({ can }) => placesOf({ deck, can }) })
  router.use(pagesRouter(PAGES, { sources: () => ({ deck, history, describe, tokens, sessions, neighbours }), frame: layoutParts, views, now }))

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

  router.use(actionsRouter({ deck, history, basePath, now }))
  router.use(errors.refuseUnknown)
  router.use(errors.onError)
  return router

  /** @param {{ can: import('./powers.js').Powers }} asked */
  function layoutParts ({ can: { switchDecks } }) {
    return { ...frameParts(deck), isStopFirst: deck.isStopFirst(), hasFleet: deck.fleet !== null, hasJobs: !deck.jobs.isEmpty(), otherDecks: switchDecks ? deck.others.list().length : 0 }
  }
}
