import { Router } from 'express'
import { CSV_TYPE, sendExport } from '../api/export.js'
import { appActionsRouter } from './app-actions.js'
import { exportQuery } from './history-page.js'
import { createHostErrorPage, hostFrame, HOST_PAGES, requireAllApps, startOf, withOneList } from './host-pages.js'
import { pagesRouter, queryOf } from './page-router.js'
import { powersOf } from './powers.js'

/**
 * The pages of a host.
 * @param {object} parts
 * @param {import('./host-pages.js').Apps & import('./app-actions.js').Apps} parts.apps
 * @param {import('../../db/history.js').History} parts.history  the host's own
 * @param {import('./views.js').Views} parts.views
 * @param {import('../api/tokens.js').TokenRegistry} parts.tokens
 * @param {import('../api/tokens.js').Sessions} parts.sessions
 * @param {() => import('../api/openapi.js').Json} parts.describe the API, as OpenAPI
 * @param {() => number} parts.now wall clock, ms since the epoch
 * @param {import('../system/log.js').Log} parts.log
 */
export function hostRouter ({ apps, history, views, tokens, sessions, describe, now, log }) {
  const router = Router()
  const errors = createHostErrorPage({ views, apps, now, log })
  router.use(pagesRouter(HOST_PAGES, { sources: () => ({ apps: withOneList(apps), history, tokens, sessions, describe }), frame: hostFrame, views, now }))
  router.get('/history.csv', (req, res) => {
    requireAllApps(powersOf(req.auth))
    return sendExport({ history, query: exportQuery({ history, deck: startOf(apps), params: queryOf(req), now: now() }), type: CSV_TYPE, req, res, log })
  })
  router.use(appActionsRouter({ apps }))
  router.use(errors.refuseUnknown)
  router.use(errors.onError)
  return router
}
