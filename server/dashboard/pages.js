import { ALARMS } from '../events/alarms.js'
import { accessModel, followAccess } from './access-page.js'
import { chartValues } from './chart-values.js'
import { checksModel } from './checks-page.js'
import { followCrash, crashModel } from './crash-page.js'
import { CRASHES_FRAGMENTS, crashesModel } from './crashes-page.js'
import { decksModel } from './decks.js'
import { DEPLOYS_FRAGMENTS, deploysModel } from './deploys-page.js'
import { docsModel, operationsPageModel } from './docs-page.js'
import { fleetCrashesModel, followFleetCrashes } from './fleet-crashes-page.js'
import { fleetHistoryModel, followFleetHistory } from './fleet-history-page.js'
import { fleetLogsModel } from './fleet-logs-page.js'
import { eventPageModel } from './event-page.js'
import { fleetMemberModel, followFleetMember } from './fleet-member-page.js'
import { fleetModel, followFleet } from './fleet-page.js'
import { fleetPreviewModel } from './fleet-preview-page.js'
import { fleetRolloutModel, followFleetRollout } from './fleet-rollout-page.js'
import { followPage } from './follow-page.js'
import { frameFragments, frameParts } from './frame.js'
import { historyGaps } from './history-gaps.js'
import { followHistory, historyPageModel } from './history-page.js'
import { jobRunModel, jobsModel, JOBS_FRAGMENTS, RUN_FRAGMENTS } from './jobs-page.js'
import { logsModel } from './logs-page.js'
import { withOneSnapshot } from './one-snapshot.js'
import { blockedReason, followOverview, overviewModel } from './overview.js'
import { paletteModel, placesOf } from './palette.js'
import { previewModel } from './preview-page.js'
import { profilesModel } from './profiles-page.js'
import { compareModel, followRelease, releasePageModel, rollbackModel } from './release-page.js'
import { followRollout, rolloutPageModel } from './rollout-page.js'
import { routesModel, ROUTES_FRAGMENTS } from './routes-page.js'
import { followSettings, settingsPageModel } from './settings-page.js'
import { ALERTS_FRAGMENTS, alertsModel } from './alerts-page.js'
import { followWorker, slotOf, workerPageModel } from './worker-page.js'

/**
 * The pages of the dashboard: the path of each, its model, and its live parts.
 * @typedef {Pick<
 *   import('../deck.js').Deck,
 *   'snapshot' | 'status' | 'health' | 'notices' | 'events' | 'others' | 'logs' | 'crashes' | 'releases' | 'settings' | 'alerts' | 'jobs' |
 *   'diagnostics' | 'profiling' | 'vitals' | 'fleet' | 'preview' | 'examine' | 'configuredAnew' | 'isStopFirst'
 * >} Deck
 * @typedef {{
 *   deck: Deck,
 *   history: import('../../db/history.js').History,
 *   now: () => number,
 *   render: import('./views.js').Views['render'],
 *   tokens?: Pick<import('../api/tokens.js').TokenRegistry, 'list'>,
 *   sessions?: import('../api/tokens.js').Sessions,
 *   can?: import('./powers.js').Powers
 * }} Sources  `can`: what the viewer may do
 * @typedef {Sources & {
 *   params: URLSearchParams,
 *   id: string,
 *   describe?: () => import('../api/openapi.js').Json,
 *   neighbours?: import('./palette.js').Neighbours,
 *   isAtLoopback?: boolean
 * }} Asked  `id`: the last part of the path, a number or a name; `describe`: the API as OpenAPI; `isAtLoopback`: see isAtLoopback()
 * @typedef {{ id: string, html: string }} Fragment
 * @typedef {object & { status?: number, problem?: { status: number } | null, canonicalUrl?: string }} Model
 *   `status` or `problem.status`: the HTTP status, if not 200
 */
/**
 * @typedef {object} Page
 * @property {string} path  as express reads it
 * @property {string} view  a file of views/pages
 * @property {(asked: Asked) => Model | Promise<Model>} model
 * @property {boolean} [hasFilters]  it has a form, which also sends empty fields: the address bar shows `canonicalUrl` of the model instead
 * @property {readonly string[]} [fragments]  files of views/partials
 * @property {(asked: Asked) => () => Fragment[]} [follow]  in place of `fragments`, if rendering all each time costs too much
 * @property {(asked: Asked) => number | null} [chartOf]  the slot whose vitals it shows as charts, 0 for the cluster; null where there are no charts
 */

/** @type {readonly Page[]} */
export const PAGES = Object.freeze([
  {
    path: '/',
    view: 'overview',
    model: ({ deck, history, params, now }) => overviewModel({ deck, history, params, now: now() }),
    hasFilters: true,
    follow: followOverview,
    chartOf: () => 0
  },
  {
    path: '/deploys',
    view: 'deploys',
    model: ({ deck, history, params, now }) => deploysModel({ deck, history, params, now: now(), blocked: blockedReason(deck.snapshot()) }),
    fragments: DEPLOYS_FRAGMENTS
  },
  { path: '/deploys/preview', view: 'preview', model: previewModel },
  { path: '/fleet', view: 'fleet', model: fleetModel, follow: followFleet, hasFilters: true },
  { path: '/fleet/preview', view: 'fleet-preview', model: fleetPreviewModel },
  { path: '/fleet/rollouts/:id', view: 'fleet-rollout', model: fleetRolloutModel, follow: followFleetRollout },
  { path: '/fleet/members/:name', view: 'fleet-member', model: fleetMemberModel, follow: followFleetMember },
  { path: '/workers/:id', view: 'worker', model: workerPageModel, follow: followWorker, chartOf: slotOf },
  { path: '/rollouts/:id', view: 'rollout', model: rolloutPageModel, follow: followRollout },
  { path: '/compare', view: 'compare', model: ({ deck, params, now }) => compareModel({ deck, id: params.get('to') ?? '', params, now: now() }) },
  { path: '/releases/:name', view: 'release', model: releasePageModel, follow: followRelease },
  {
    path: '/releases/:id/rollback',
    view: 'rollback',
    model: ({ deck, id, now }) => rollbackModel({ deck, id, now: now(), blocked: blockedReason(deck.snapshot()) })
  },
  { path: '/releases/:id/compare', view: 'compare', model: ({ deck, id, params, now }) => compareModel({ deck, id, params, now: now() }) },
  { path: '/history', view: 'history', model: historyPageModel, follow: followHistory, hasFilters: true },
  { path: '/fleet/crashes', view: 'fleet-crashes', model: fleetCrashesModel, follow: followFleetCrashes, hasFilters: true },
  { path: '/fleet/history', view: 'fleet-history', model: fleetHistoryModel, follow: followFleetHistory, hasFilters: true },
  { path: '/fleet/logs', view: 'fleet-logs', model: fleetLogsModel, hasFilters: true },
  { path: '/history/:id', view: 'event', model: ({ deck, history, can, id, now }) => eventPageModel({ history, deck, can, id, now: now() }) },
  {
    path: '/crashes',
    view: 'crashes',
    model: ({ deck, history, params, now }) => crashesModel({ crashes: deck.crashes, params, now: now(), gaps: historyGaps({ history, deck }, { isOfCrashes: true }) }),
    hasFilters: true,
    fragments: CRASHES_FRAGMENTS
  },
  {
    path: '/crashes/:id',
    view: 'crash',
    model: ({ deck, history, params, id, now }) => crashModel({ crashes: deck.crashes, app: deck.snapshot().app.name, history, profiling: deck.profiling, id, params, now: now() }),
    follow: ({ deck, ...asked }) => followCrash({ crashes: deck.crashes, profiling: deck.profiling, app: deck.snapshot().app.name, ...asked })
  },
  { path: '/logs', view: 'logs', model: ({ deck, params, now }) => logsModel({ deck, params, now }), hasFilters: true },
  { path: '/profiles', view: 'profiles', model: ({ deck, params, now, can }) => profilesModel({ deck, params, now: now(), can }) },
  { path: '/routes', view: 'routes', model: ({ deck, params, now }) => routesModel({ deck, params, now: now() }), fragments: ROUTES_FRAGMENTS, hasFilters: true },
  { path: '/checks', view: 'checks', model: ({ deck }) => checksModel({ deck }) },
  { path: '/access', view: 'access', model: ({ now, ...asked }) => accessModel({ ...asked, now: now() }), follow: followAccess },
  { path: '/settings', view: 'settings', model: settingsPageModel, follow: followSettings, hasFilters: true },
  { path: '/alerts', view: 'alerts', model: ({ deck, can, params, now }) => alertsModel({ alerts: deck.alerts, can, params, now: now() }), fragments: ALERTS_FRAGMENTS },
  { path: '/jobs', view: 'jobs', model: ({ deck, now }) => jobsModel({ jobs: deck.jobs, now: now() }), fragments: JOBS_FRAGMENTS },
  { path: '/jobs/runs/:id', view: 'job-run', model: ({ deck, id, now }) => jobRunModel({ jobs: deck.jobs, id: Number(id), now: now() }), fragments: RUN_FRAGMENTS },
  { path: '/palette', view: 'palette', model: ({ deck, history, can, neighbours }) => paletteModel({ deck, history, can, neighbours }) },
  { path: '/decks', view: 'decks', model: ({ deck, can, isAtLoopback = false }) => decksModel({ deck, can, isAtLoopback }) },
  { path: '/dialogs', view: 'dialogs', model: dialogsModel },
  { path: '/docs/api/:id', view: 'docs', model: apiModel },
  { path: '/docs{/:id}', view: 'docs', model: ({ id, now, describe }) => docsModel({ name: id || undefined, now: now(), describe }) }
])

/**
 * The pages of a deck for the live connection, see follow-page.js.
 * @param {Omit<Sources, 'can' | 'deck'> & { deck: Deck & Pick<import('../deck.js').Deck, 'vitals'> }} sources
 * @returns {import('./follow-page.js').LivePages}
 */
export function livePages (sources) {
  const { deck } = sources
  // A page and its frame are of the same moment, and so is what all viewers get in one update.
  const seen = withOneSnapshot(deck)
  /** Rollouts of the fleet on other hosts cause no event here, and it is joined late. @type {(() => void) | null} */
  let endFleet = null
  let tellChange = () => {}

  return {
    alarms: deck,

    onChange (handler) {
      tellChange = handler
      const unsubscribe = deck.events.subscribe(handler)
      return () => {
        unsubscribe()
        endFleet?.()
      }
    },

    follow (can, url) {
      endFleet ??= deck.fleet?.onRollout(tellChange) ?? null
      return followPage(PAGES, { sources: { ...sources, deck: seen, can }, frame: { fragments: frameFragments(deck), model: () => frameParts(seen) } }, url)
    },

    chart: (slot, sinceMs) => chartValues(deck, { slot, sinceMs })
  }
}

/** @param {Asked} asked */
function apiModel ({ id, now, describe }) {
  return operationsPageModel({ group: id, now: now(), describe })
}

/** @param {Asked} asked */
function dialogsModel ({ deck, can }) {
  return {
    places: placesOf({ deck, can }),
    alarms: ALARMS
  }
}
