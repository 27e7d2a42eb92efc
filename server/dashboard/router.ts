import { Router } from 'express'
import { z } from 'zod'
import { requireRole } from '../api/endpoint.ts'
import { CSV_TYPE, sendExport } from '../events/api-export.ts'
import { parseBody } from '../api/input.ts'
import { permitSwitch, switchDeck } from '../host/page-decks.ts'
import { formsRouter, parseForm, requireSession } from './forms.ts'
import { frameParts } from './frame.ts'
import { exportQuery } from '../events/page.ts'
import { fleetLogsFile } from '../fleet/page-logs.ts'
import { serveLogFiles } from './log-downloads.ts'
import { logsFile } from '../logs/page.ts'
import { isAtLoopback } from './page-address.ts'
import { createErrorPage, pagesRouter, queryOf, type RouterParts } from './page-router.ts'
import { PAGES } from './pages.ts'
import { placesOf, type Neighbours } from './palette.ts'
import { timeStrip } from './time-strip.ts'
import { powersOf } from './powers.ts'
import type { History } from '../../db/history.ts'
import type { Log } from '../system/log.ts'
import type { Powers } from './powers.ts'

/** The pages of the dashboard of a deck, its downloads and its forms. */
type Deck = import('./pages.ts').Deck & Pick<import('../deck.ts').Deck, 'others' | 'events' | 'vitals'>

const SWITCH = z.strictObject({ deck: z.string().regex(/^[\da-f]{16}$/).describe('the id of a deck') })
const SILENT_LOG = { warn () {}, error () {} }

export function dashboardRouter (
  { deck, history, views, mounts, tokens, sessions, describe, neighbours, basePath = '', now = Date.now,
    log = SILENT_LOG }: RouterParts & {
      deck: Deck,
      history: History,
      /** in a host */
      neighbours?: Neighbours,
      /** of its pages, in a host */
      basePath?: string,
      /** wall clock, ms since the epoch */
      now?: () => number,
      log?: Log
    }
) {
  const router = Router()
  const errors = createErrorPage({ views, now, log, frame: layoutParts, places: ({ can }) => placesOf({ deck, can }) })
  router.use(
    pagesRouter(PAGES, { sources: () => ({ deck, history, describe, tokens, sessions, neighbours }), frame: layoutParts,
      views, now })
  )

  // A link cannot ask for a format as callers of the API do, by its Accept header.
  router.get('/history.csv', (req, res) => {
    return sendExport({ history, query: exportQuery({ history, deck, params: queryOf(req), now: now() }),
      type: CSV_TYPE, req, res, log })
  })

  serveLogFiles(router, (_, asked) => {
    return asked.params.get('member') ? fleetLogsFile({ deck, now, ...asked }) : logsFile({ deck, now, ...asked })
  })

  router.post('/actions/switch', requireSession, parseForm, async (req, res) => {
    const { auth } = req
    permitSwitch(powersOf(auth))
    requireRole(auth, 'admin')
    const { deck: id } = parseBody(SWITCH, req.body)
    const url = await switchDeck({ deck, id, auth, isAtLoopback: isAtLoopback(req), now: now() })
    // htmx redirects by a script, as the policy of our pages lets no form lead elsewhere.
    res.set('HX-Redirect', url.href).status(204).end()
  })
  router.use(formsRouter({ mounts, basePath, deck }))
  router.use(errors.refuseUnknown)
  router.use(errors.onError)
  return router

  /** `params`, `path`: none of a page about an error */
  function layoutParts (
    { can: { switchDecks }, params, path }: { can: Powers, params?: URLSearchParams, path?: string }
  ) {
    return { strip: () => params && path !== undefined ? timeStrip({ deck, history, params, path, now }) : null,
      ...frameParts(deck), isStopFirst: deck.isStopFirst(), hasFleet: deck.fleet !== null,
      hasJobs: !deck.jobs.isEmpty(), hasMetrics: !deck.metricHistory.isEmpty(),
      otherDecks: switchDecks ? deck.others.list().length : 0 }
  }
}
