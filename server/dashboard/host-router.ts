import { Router } from 'express'
import { CSV_TYPE, sendExport } from '../events/api-export.ts'
import { appActionsRouter } from '../host/page-app-actions.ts'
import { formsRouter } from './forms.ts'
import { serveLogFiles } from './log-downloads.ts'
import { appLogsFile } from '../logs/page-apps.ts'
import { exportQuery } from '../events/page.ts'
import { createHostErrorPage, hostFrame, HOST_PAGES, pastFor, startOf, withOneList } from './host-pages.ts'
import { pagesRouter, queryOf, type RouterParts } from './page-router.ts'
import { powersOf } from './powers.ts'
import type { Apps } from './host-pages.ts'
import type { History } from '../../db/history.ts'
import type { Log } from '../system/log.ts'

export function hostRouter (
  { apps, history, views, mounts, tokens, sessions, describe, basePath, now, log }: RouterParts & {
    apps:
      & Apps
      & import('../host/page-app-actions.ts').Apps,
    /** the host's own */
    history: History,
    basePath: string,
    /** wall clock, ms since the epoch */
    now: () => number,
    log: Log
  }
) {
  const router = Router()
  const errors = createHostErrorPage({ views, apps, now, log })
  router.use(
    pagesRouter(HOST_PAGES, { sources: () => ({ apps: withOneList(apps), history, tokens, sessions, describe }),
      frame: hostFrame, views, now })
  )
  router.get('/history.csv', (req, res) => {
    const past = pastFor({ apps, history, can: powersOf(req.auth) })
    return sendExport({ history: past,
      query: exportQuery({ history, deck: startOf(apps), params: queryOf(req), now: now() }), type: CSV_TYPE, req, res,
      log })
  })
  serveLogFiles(router, (req, asked) => appLogsFile({ apps, can: powersOf(req.auth), now, ...asked }))
  router.use(appActionsRouter({ apps }))
  router.use(formsRouter({ mounts, basePath }))
  router.use(errors.refuseUnknown)
  router.use(errors.onError)
  return router
}
