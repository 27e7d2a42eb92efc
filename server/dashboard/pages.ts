import { ALARMS } from '../events/alarms.ts'
import { accessModel, followAccess } from '../access/page.ts'
import { chartValues } from '../vitals/page-chart-values.ts'
import { checksModel } from '../doctor/page.ts'
import { followCrash, crashModel } from '../crashes/page-crash.ts'
import { crashesModel } from '../crashes/page.ts'
import { decksModel } from '../host/page-decks.ts'
import { deploysModel } from '../rollouts/page-deploys.ts'
import { docsModel, operationsPageModel } from './docs-page.ts'
import { fleetCrashesModel, followFleetCrashes } from '../fleet/page-crashes.ts'
import { fleetHistoryModel, followFleetHistory } from '../fleet/page-history.ts'
import { fleetLogsModel } from '../fleet/page-logs.ts'
import { eventPageModel } from '../events/page-event.ts'
import { fleetMemberModel, followFleetMember } from '../fleet/page-member.ts'
import { hostChoices } from '../fleet/page-members.ts'
import { fleetModel, followFleet } from '../fleet/page.ts'
import { fleetPreviewModel } from '../fleet/page-preview.ts'
import { fleetRolloutModel, followFleetRollout } from '../fleet/page-rollout.ts'
import { followPage, type LivePages } from './follow-page.ts'
import { frameParts } from './frame.ts'
import { followHistory, historyPageModel } from '../events/page.ts'
import { jobRunModel, jobsModel } from '../jobs/page.ts'
import { logsModel } from '../logs/page.ts'
import { withOneSnapshot } from './one-snapshot.ts'
import { followOverview, overviewModel } from './overview.ts'
import { paletteModel, placesOf, type Neighbours } from './palette.ts'
import { previewModel } from '../rollouts/page-preview.ts'
import { profilesModel } from '../diagnostics/page-profiles.ts'
import { compareModel, followRelease, releasePageModel, rollbackModel } from '../releases/page.ts'
import { followRollout, rolloutPageModel } from '../rollouts/page.ts'
import { followMetrics, metricsModel } from '../telemetry/page-metrics.ts'
import { timeStrip } from './time-strip.ts'
import { routeModel, routesModel } from '../vitals/page-routes.ts'
import { followSettings, settingsPageModel } from '../config/page.ts'
import { alertsModel } from '../alerts/page.ts'
import { followWorker, slotOf, workerPageModel } from './worker-page.ts'
import type { Page } from './page-router.ts'
import type { History } from '../../db/history.ts'
import type { Views } from './views.ts'
import type { Sessions, TokenRegistry } from '../access/api-tokens.ts'
import type { Powers } from './powers.ts'
import type { Document } from '../api/openapi.ts'

/** The pages of the dashboard: the path of each, its model, and its live parts. */
export type Deck = Pick<import('../deck.ts').Deck,
  'snapshot' | 'status' | 'health' | 'notices' | 'events' | 'others' | 'logs' | 'crashes' | 'releases' | 'settings'
    | 'alerts' | 'jobs' | 'diagnostics' | 'profiling' | 'vitals' | 'metricHistory' | 'fleet' | 'preview' | 'examine'
    | 'configuredAnew' | 'isStopFirst' | 'openRequests'>
/** `can`: what the viewer may do */
export type Sources = { deck: Deck, history: History, now: () => number,
  tokens?: Pick<TokenRegistry, 'list' | 'lastUseByOwner'>, sessions?: Sessions, can?: Powers }
/**
 * `id`: the last part of the path, a number or a name; `describe`: the API as OpenAPI; `isAtLoopback`: see
 * isAtLoopback()
 */
export type Asked = Sources & { params: URLSearchParams, id: string, describe?: () => Document, neighbours?: Neighbours,
  isAtLoopback?: boolean }

export const PAGES: readonly Page<Asked>[] = Object.freeze([
  // What is going on
  { path: '/', view: 'overview', model: overviewModel, follow: followOverview, hasFilters: true, chartOf: () => 0,
    fragments: ['notices', 'health', 'addresses', 'actions', 'facts', 'rollout', 'workers', 'recent', 'chart-news',
      'silent-hosts', 'fleet-turn'] },
  { path: '/workers/:id', view: 'worker', model: workerPageModel, follow: followWorker, chartOf: slotOf },
  { path: '/routes', view: 'routes', model: routesModel, fragments: ['routes'], hasFilters: true },
  { path: '/route', view: 'route', model: routeModel },
  { path: '/app-metrics', view: 'metrics', model: metricsModel, follow: followMetrics, fragments: ['metrics'],
    hasFilters: true },
  { path: '/jobs', view: 'jobs', model: jobsModel, fragments: ['jobs', 'job-runs'] },
  { path: '/jobs/runs/:id', view: 'job-run', model: jobRunModel, fragments: ['job-run'] },
  { path: '/profiles', view: 'profiles', model: profilesModel, hasFilters: true },

  // Deploys
  { path: '/deploys', view: 'deploys', model: deploysModel, fragments: ['actions', 'rollout', 'deploys'] },
  { path: '/deploys/preview', view: 'preview', model: previewModel, isPart: true },
  { path: '/rollouts/:id', view: 'rollout', model: rolloutPageModel, follow: followRollout,
    fragments: ['rollout-head', 'rollout-facts', 'rollout-graphs', 'rollout-slots', 'rollout-moments'] },
  { path: '/compare', view: 'compare', model: compareModel },
  { path: '/releases/:name', view: 'release', model: releasePageModel, follow: followRelease,
    fragments: ['release-head', 'release-crashes', 'release-memory', 'release-rollouts'] },
  { path: '/releases/:id/rollback', view: 'rollback', model: rollbackModel, isPart: true },
  { path: '/releases/:id/compare', view: 'compare', model: compareModel },

  // The fleet
  { path: '/fleet', view: 'fleet', model: fleetModel, follow: followFleet, hasFilters: true },
  { path: '/fleet/preview', view: 'fleet-preview', model: fleetPreviewModel, isPart: true },
  { path: '/fleet/rollouts/:id', view: 'fleet-rollout', model: fleetRolloutModel, follow: followFleetRollout,
    fragments: ['fleet-rollout', 'fleet-moments'] },
  { path: '/fleet/members/:name', view: 'fleet-member', model: fleetMemberModel, follow: followFleetMember,
    fragments: ['fleet-member', 'fleet-inside'] },

  // What has happened
  { path: '/history', view: 'history', hasFilters: true, fragments: ['history-gaps', 'events'],
    model: byHosts(historyPageModel, fleetHistoryModel), follow: byHosts(followHistory, followFleetHistory) },
  { path: '/history/:id', view: 'event', model: eventPageModel },
  { path: '/crashes', view: 'crashes', hasFilters: true, fragments: ['history-gaps', 'crash-tabs', 'crash-groups'],
    model: byHosts(crashesModel, fleetCrashesModel),
    follow: byHosts((asked) => () => crashesModel(asked), followFleetCrashes) },
  { path: '/crashes/:id', view: 'crash', model: crashModel, follow: followCrash,
    fragments: ['crash-head', 'crash-when', 'crash-kept', 'crash-body', 'crash-around'] },
  { path: '/logs', view: 'logs', hasFilters: true, model: byHosts(ownLogsModel, fleetLogsModel) },

  // How it is set up
  { path: '/checks', view: 'checks', model: checksModel },
  { path: '/access', view: 'access', model: accessModel, follow: followAccess, fragments: ['access-list'] },
  { path: '/settings', view: 'settings', model: settingsPageModel, follow: followSettings, fragments: ['settings'],
    hasFilters: true },
  { path: '/alerts', view: 'alerts', model: alertsModel, fragments: ['alerts'] },

  // Beside all of them
  { path: '/palette', view: 'palette', model: paletteModel },
  { path: '/time-strip', view: 'time-strip',
    model: (asked: Asked) => timeStrip({ ...asked, path: String(asked.params.get('path') ?? '/') }) },
  { path: '/decks', view: 'decks', model: decksModel, isPart: true },
  { path: '/dialogs', view: 'dialogs', model: dialogsModel },
  { path: '/docs/api/:id', view: 'docs', model: operationsPageModel },
  { path: '/docs{/:id}', view: 'docs', model: docsModel, hasFilters: true }
])

/** The pages of a deck for the live connection, see follow-page.ts. */
export function livePages (
  { views, ...sources }: Omit<Sources, 'can' | 'deck'> & { views: Pick<Views, 'fragment'>,
    deck: Deck & Pick<import('../deck.ts').Deck, 'vitals'> }
): LivePages {
  const { deck } = sources
  // A page and its frame are of the same moment, and so is what all viewers get in one update.
  const seen = withOneSnapshot(deck)
  /** Rollouts of the fleet on other hosts cause no event here, and it is joined late. */
  let endFleet: (() => void) | null = null
  let tellChange = () => {}

  return { alarms: deck, onChange (handler) {
    tellChange = handler
    const unsubscribe = deck.events.subscribe(handler)
    return () => {
      unsubscribe()
      endFleet?.()
    }
  }, follow (can, url) {
    endFleet ??= deck.fleet?.onRollout(tellChange) ?? null
    return followPage(PAGES, { views, sources: { ...sources, deck: seen, can }, frame: () => frameParts(seen) }, url)
  }, chart: (slot, sinceMs) => chartValues(deck, { slot, sinceMs }) }
}

/** Chooses by the filter *Host*: what the list of this host does, or the list of other hosts. */
function byHosts<Own, OfHosts> (own: (asked: Asked) => Own, ofHosts: (asked: Asked) => OfHosts) {
  return (asked: Asked) => asked.params.get('member') ? ofHosts(asked) : own(asked)
}

/** Of its form the lines alone are loaded anew, so all hosts are there to be chosen from the beginning. */
async function ownLogsModel (asked: Asked) {
  return { choices: hostChoices(asked.deck), ...await logsModel(asked) }
}

function dialogsModel ({ deck, can }: Asked) {
  return { places: placesOf({ deck, can }), alarms: ALARMS,
    settings: Object.fromEntries(deck.settings.list().map(({ name, value }) => [name, value])),
    isFromGit: Boolean(deck.snapshot().release?.git) }
}
