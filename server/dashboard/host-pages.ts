import os from 'node:os'
import { HOST_PLACES } from '../../public/places.ts'
import { refuseLimited } from '../api/endpoint.ts'
import { mayUse } from '../api/roles.ts'
import { accessModel, followAccess } from '../access/page.ts'
import { alertsModel } from '../alerts/page.ts'
import { appRows, appsModel, isSick, noticesFor, switchModel } from '../host/page-apps.ts'
import { docsModel, operationsPageModel } from './docs-page.ts'
import { eventModel } from '../events/page-event.ts'
import { followPage, type LivePages } from './follow-page.ts'
import { followHistory, historyPageModel, type HistoryAsked } from '../events/page.ts'
import { hostFleetModel } from '../fleet/page-host.ts'
import { createErrorPage, type Page } from './page-router.ts'
import { manualItems, ofTheBrowser, toPage, type Item } from './palette.ts'
import { appLogsModel } from '../logs/page-apps.ts'
import { silentForHost } from '../fleet/page-silent-hosts.ts'
import type { History } from '../../db/history.ts'
import type { Views } from './views.ts'
import type { Powers } from './powers.ts'
import type { Sessions, TokenRegistry } from '../access/api-tokens.ts'
import type { EventStream } from '../events/stream.ts'
import type { Document } from '../api/openapi.ts'
import type { Started } from '../events/page-filters.ts'

/** The pages of a host: the list of its apps, and what all of them have together. */
export type Apps = Pick<import('../host/api-apps.ts').Apps,
  'list' | 'states' | 'view' | 'opened' | 'leftLogs' | 'about' | 'onChange' | 'fleet' | 'joinsFleet' | 'alerts'
    | 'notices' | 'past'>
type Sources = { apps: Apps, history: History, now: () => number, can?: Powers,
  tokens?: Pick<TokenRegistry, 'list' | 'lastUseByOwner'>, sessions?: Sessions }
type Asked = Sources & { can: Powers, params: URLSearchParams, id: string, describe?: () => Document,
  isAtLoopback?: boolean }

export const HOST_PAGES: readonly Page<Asked>[] = Object.freeze([
  // As those of a deck, see pages.ts
  { path: '/', view: 'apps', model: appsModel, hasFilters: true,
    fragments: ['notices', 'health', 'silent-hosts', 'apps-facts', 'apps-tabs', 'apps'] },
  { path: '/fleet', view: 'host-fleet', model: hostFleetModel, fragments: ['health', 'fleet-facts', 'host-fleet'] },
  { path: '/history', view: 'history', hasFilters: true, model: (asked) => historyPageModel(historyOf(asked)),
    follow: (asked) => followHistory(historyOf(asked)) },
  { path: '/history/:id', view: 'event', model: eventPage },
  { path: '/logs', view: 'logs', model: appLogsModel, hasFilters: true },
  { path: '/alerts', view: 'alerts', model: alertsPage, fragments: ['alerts'] },
  { path: '/access', view: 'access', model: accessPage, follow: followAccess, fragments: ['access-list'] },
  { path: '/docs/api/:id', view: 'docs', model: operationsPageModel },
  { path: '/docs{/:id}', view: 'docs', model: docsModel, hasFilters: true },
  { path: '/palette', view: 'palette', model: palettePage },
  { path: '/dialogs', view: 'host-dialogs', model: (asked) => ({ places: placesFor(asked) }) },
  // The apps, to go to from the pages of another
  { path: '/switch', view: 'switch', model: switchModel, isPart: true }
])

export function hostFrame ({ apps, can }: { apps: Apps, can?: Powers }) {
  // The sickest is the first.
  const sick = appRows({ apps, can }).filter(isSick)
  const notices = noticesFor({ apps, can }).filter(({ endedAt }) => endedAt === null)
  return { fragments: ['trouble', ...(apps.joinsFleet ? ['silent-count'] : [])], isHost: true,
    hasFleet: apps.joinsFleet, silentHosts: silentForHost(apps.fleet(), can).length,
    frame: { app: 'Apps', host: os.hostname(),
      trouble: { tone: sick[0]?.tone ?? (notices.length > 0 ? 'warn' : 'ok'), count: sick.length + notices.length } } }
}

export function liveHostPages (
  { events, views, ...sources }: Omit<Sources, 'can'> & { events: Pick<EventStream, 'subscribe'>,
    views: Pick<Views, 'fragment'> }
): LivePages {
  const apps = withOneList(sources.apps, BEAT_MS / 2)
  return { alarms: null, chart: null, beatMs: BEAT_MS, onChange (handler) {
    const ends = [events.subscribe(handler), sources.apps.onChange(onApps)]
    return () => {
      for (const end of ends) end()
    }

    function onApps () {
      apps.forget()
      handler()
    }
  },
    follow: (can, url) =>
      followPage(HOST_PAGES, { views, sources: { ...sources, apps, can }, frame: () => hostFrame({ apps, can }) },
        url) }
}

/** Workers report each second. */
const BEAT_MS = 1000

/**
 * What is rendered together is made of one list, as each is read from the histories of all apps.
 * @param keptMs how long the list counts; by default as long as what this returns is used
 */
export function withOneList (apps: Apps, keptMs: number = Infinity) {
  let last: { items: ReturnType<Apps['list']>, at: number } | null = null
  return { ...apps, forget () {
    last = null
  }, list () {
    if (!last || performance.now() - last.at > keptMs) last = { items: apps.list(), at: performance.now() }
    return last.items
  } }
}

function alertsPage ({ apps, can, params, now }: Asked) {
  requireAllApps(can)
  return alertsModel({ deck: apps, can, params, now, appNames: apps.states().map(({ name }) => name) })
}

function eventPage ({ history, can, id, now }: Pick<Asked, 'history' | 'can' | 'now'> & { id: string }) {
  requireAllApps(can)
  return eventModel({ history, id, now: now() })
}

function historyOf ({ apps, can, ...asked }: Asked): HistoryAsked {
  return { ...asked, history: pastFor({ apps, can, ...asked }), deck: startOf(apps), isOfHost: true }
}

/** The history of the apps that somebody may see; the host's own names all of its apps. */
export function pastFor (
  { apps, can, history }: Pick<Asked, 'can' | 'history'> & { apps: Pick<Apps, 'states' | 'past'> }
) {
  const names = apps.states().map(({ name }) => name).filter((name) => mayUse(can, name))
  return { ...history, ...apps.past(names, !can.apps) }
}

/** @throws {import('../errors.ts').DeckError} forbidden */
export function requireAllApps ({ apps, name }: Powers) {
  refuseLimited({ apps, actor: name ?? 'this token' }, 'sees what concerns the whole host')
}

export function startOf (apps: Pick<Apps, 'about'>): Started {
  return { snapshot: () => ({ master: apps.about() }) }
}

function accessPage ({ apps, ...asked }: Asked) {
  return accessModel({ ...asked, apps: apps.states().map(({ name }) => name) })
}

function palettePage ({ apps, can }: { apps: Apps, can: Powers }): { items: Item[] } {
  return {
    items: [
      ...appRows({ apps, can }).map(({ name, text }) => ({ group: 'App', icon: 'package', label: name, hint: text,
        href: `/apps/${name}/` })
      ),
      ...placesFor({ apps, can }).map(toPage),
      ...ofTheBrowser(can),
      ...manualItems()
    ]
  }
}

export function createHostErrorPage (
  { apps, ...parts }: Pick<Parameters<typeof createErrorPage>[0], 'views' | 'now' | 'log'> & { apps: Apps }
) {
  return createErrorPage({ ...parts, frame: ({ can }) => hostFrame({ apps, can }),
    places: ({ can }) => placesFor({ apps, can }) })
}

function placesFor ({ apps, can }: { apps: Apps, can: Powers }) {
  return HOST_PLACES.filter(({ needs }) =>
    !needs ||
    { administer: can.administer, allApps: !can.apps, fleet: apps.joinsFleet, jobs: false, metrics: false }[needs]
  )
}
