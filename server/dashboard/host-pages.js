import os from 'node:os'
import { HOST_PLACES } from '../../public/places.js'
import { refuseLimited } from '../api/endpoint.js'
import { accessModel, followAccess } from './access-page.js'
import { appRows, APPS_FRAGMENTS, appsModel, isSick } from './apps-page.js'
import { docsModel, operationsPageModel } from './docs-page.js'
import { eventModel } from './event-page.js'
import { followPage } from './follow-page.js'
import { followHistory, historyPageModel } from './history-page.js'
import { HOST_FLEET_FRAGMENTS, hostFleetModel } from './host-fleet-page.js'
import { createErrorPage } from './page-router.js'
import { manualItems, OF_THE_BROWSER, toPage } from './palette.js'
import { silentForHost } from './silent-hosts.js'

/**
 * The pages of a host: the list of its apps, and what all of them have together.
 * @typedef {Pick<import('../api/apps.js').Apps, 'list' | 'states' | 'about' | 'onChange' | 'fleet' | 'joinsFleet'>} Apps
 * @typedef {import('../../db/history.js').History} History
 * @typedef {{ apps: Apps, history: History, now: () => number, render: import('./views.js').Views['render'], can?: import('./powers.js').Powers, tokens?: Pick<import('../api/tokens.js').TokenRegistry, 'list'>, sessions?: import('../api/tokens.js').Sessions }} Sources
 * @typedef {import('./follow-page.js').LivePage & import('./page-router.js').Page} HostPage
 */

/** The elements around every page that change, by id, as in frame.js. */
const FRAME_FRAGMENTS = Object.freeze(['trouble'])
const FLEET_FRAME_FRAGMENTS = Object.freeze([...FRAME_FRAGMENTS, 'silent-count'])

/** @type {readonly HostPage[]} */
export const HOST_PAGES = Object.freeze([
  { path: '/', view: 'apps', model: appsModel, fragments: APPS_FRAGMENTS, hasFilters: true },
  { path: '/fleet', view: 'host-fleet', model: hostFleetModel, fragments: HOST_FLEET_FRAGMENTS },
  { path: '/history', view: 'history', model: historyPage, follow: followOwnHistory, hasFilters: true },
  { path: '/history/:id', view: 'event', model: eventPage },
  { path: '/access', view: 'access', model: accessPage, follow: followAccess },
  { path: '/docs/api/:id', view: 'docs', model: apiPage },
  { path: '/docs{/:id}', view: 'docs', model: docsPage },
  { path: '/palette', view: 'palette', model: palettePage },
  { path: '/dialogs', view: 'host-dialogs', model: dialogsPage },
  { path: '/switch', view: 'switch', model: switchPage }
])

/** @param {{ apps: Apps, can?: import('./powers.js').Powers }} sources */
export function hostFrame ({ apps, can }) {
  // The sickest is the first.
  const sick = appRows({ apps, can }).filter(isSick)
  return { isHost: true, hasFleet: apps.joinsFleet, silentHosts: silentForHost(apps.fleet(), can).length, frame: { app: 'Apps', host: os.hostname(), trouble: { tone: sick[0]?.tone ?? 'ok', count: sick.length } } }
}

/**
 * The pages of a host for the live connection.
 * @param {Omit<Sources, 'can'> & { events: Pick<import('../events/stream.js').EventStream, 'subscribe'> }} sources
 * @returns {import('./follow-page.js').LivePages}
 */
export function liveHostPages ({ events, ...sources }) {
  const apps = withOneList(sources.apps, BEAT_MS / 2)
  return {
    alarms: null,
    chart: null,
    beatMs: BEAT_MS,
    onChange (handler) {
      const ends = [events.subscribe(handler), sources.apps.onChange(onApps)]
      return () => { for (const end of ends) end() }

      function onApps () {
        apps.forget()
        handler()
      }
    },
    follow: (can, url) => followPage(HOST_PAGES, {
      sources: { ...sources, apps, can },
      frame: { fragments: apps.joinsFleet ? FLEET_FRAME_FRAGMENTS : FRAME_FRAGMENTS, model: () => hostFrame({ apps, can }) }
    }, url)
  }
}

/** Workers report each second. */
const BEAT_MS = 1000

/**
 * What is rendered together is made of one list, as each is read from the histories of all apps.
 * @param {Apps} apps @param {number} [keptMs]  how long the list counts; by default as long as what this returns is used
 */
export function withOneList (apps, keptMs = Infinity) {
  /** @type {{ items: ReturnType<Apps['list']>, at: number } | null} */
  let last = null
  return {
    ...apps,
    forget () { last = null },
    list () {
      if (!last || performance.now() - last.at > keptMs) last = { items: apps.list(), at: performance.now() }
      return last.items
    }
  }
}

/** @param {{ id: string, now: () => number, describe?: () => import('../api/openapi.js').Json }} asked */
function docsPage ({ id, now, describe }) {
  return docsModel({ name: id || undefined, now: now(), describe })
}

/** @param {{ id: string, now: () => number, describe?: () => import('../api/openapi.js').Json }} asked */
function apiPage ({ id, now, describe }) {
  return operationsPageModel({ group: id, now: now(), describe })
}

/** @typedef {Sources & { can: import('./powers.js').Powers, params: URLSearchParams }} Asked */

/** @param {Asked} asked */
function historyPage (asked) {
  return historyPageModel(historyOf(asked))
}

/** @param {Asked} asked */
function followOwnHistory (asked) {
  return followHistory(historyOf(asked))
}

/** @param {Pick<Asked, 'history' | 'can' | 'now'> & { id: string }} asked */
function eventPage ({ history, can, id, now }) {
  requireAllApps(can)
  return eventModel({ history, id, now: now() })
}

/** The host's own history names all of its apps. @param {Asked} asked @returns {import('./history-page.js').HistoryAsked} */
function historyOf ({ apps, can, ...asked }) {
  requireAllApps(can)
  return { ...asked, can, deck: startOf(apps), isOfHost: true }
}

/** @param {import('./powers.js').Powers} can @throws {import('../errors.js').DeckError} forbidden */
export function requireAllApps ({ apps, name }) {
  refuseLimited({ apps, actor: name ?? 'this token' }, 'sees the history of the host')
}

/** @param {Pick<Apps, 'about'>} apps @returns {import('./history-filters.js').Started} */
export function startOf (apps) {
  return { snapshot: () => ({ master: apps.about() }) }
}

/** @param {Asked} asked */
function accessPage ({ apps, tokens, sessions, can, now }) {
  return accessModel({ tokens, sessions, can, now: now(), apps: apps.states().map(({ name }) => name) })
}

/** @param {{ apps: Apps, can: import('./powers.js').Powers }} asked @returns {{ items: import('./palette.js').Item[] }} */
function palettePage ({ apps, can }) {
  return {
    items: [
      ...appRows({ apps, can }).map(({ name, text }) => ({ group: 'App', icon: 'package', label: name, hint: text, href: `/apps/${name}/` })),
      ...placesFor({ apps, can }).map(toPage),
      ...OF_THE_BROWSER,
      ...manualItems()
    ]
  }
}

/** @param {{ apps: Apps, can: import('./powers.js').Powers }} asked */
function dialogsPage ({ apps, can }) {
  return { places: placesFor({ apps, can }) }
}

/** @param {Pick<Parameters<typeof createErrorPage>[0], 'views' | 'now' | 'log'> & { apps: Apps }} parts */
export function createHostErrorPage ({ apps, ...parts }) {
  return createErrorPage({ ...parts, frame: ({ can }) => hostFrame({ apps, can }), places: ({ can }) => placesFor({ apps, can }) })
}

/** The pages that somebody may see. @param {{ apps: Apps, can: import('./powers.js').Powers }} asked */
function placesFor ({ apps, can }) {
  return HOST_PLACES.filter(({ needs }) => !needs || { administer: can.administer, allApps: !can.apps, fleet: apps.joinsFleet, jobs: false }[needs])
}

/** The apps, to go to from the pages of another. @param {{ apps: Apps, can: import('./powers.js').Powers, params: URLSearchParams }} asked */
function switchPage ({ apps, can, params }) {
  return { rows: appRows({ apps, can }), current: params.get('from') }
}
