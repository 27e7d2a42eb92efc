import { Router } from 'express'
import { appActionsRouter } from './app-actions.js'
import { hostFrame, HOST_PAGES, withOneList } from './host-pages.js'
import { createErrorPage, pagesRouter } from './page-router.js'

/**
 * The pages of a host.
 * @param {object} parts
 * @param {import('./host-pages.js').Apps & import('./app-actions.js').Apps} parts.apps
 * @param {import('./views.js').Views} parts.views
 * @param {import('../api/tokens.js').TokenRegistry} parts.tokens
 * @param {() => import('../api/openapi.js').Json} parts.describe the API, as OpenAPI
 * @param {() => number} parts.now wall clock, ms since the epoch
 * @param {import('../system/log.js').Log} parts.log
 */
export function hostRouter ({ apps, views, tokens, describe, now, log }) {
  const router = Router()
  const errors = createErrorPage({ views, log })
  router.use(pagesRouter(HOST_PAGES, { sources: () => ({ apps: withOneList(apps), tokens, describe }), frame: hostFrame, views, now }))
  router.use(appActionsRouter({ apps }))
  router.use(errors.refuseUnknown)
  router.use(errors.onError)
  return router
}
