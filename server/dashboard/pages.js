import { accessModel } from './access-page.js'
import { followCrash, crashModel } from './crash-page.js'
import { CRASHES_FRAGMENTS, countOpen, crashesModel } from './crashes-page.js'
import { DEPLOYS_FRAGMENTS, deploysModel } from './deploys-page.js'
import { docsModel } from './docs-page.js'
import { eventModel, HISTORY_FRAGMENTS, historyModel } from './history-page.js'
import { logsModel } from './logs-page.js'
import { blockedReason, OVERVIEW_FRAGMENTS, overviewModel } from './overview.js'
import { releaseModel } from './release-page.js'
import { WEBHOOKS_FRAGMENTS, webhooksModel } from './webhooks-page.js'

/**
 * The pages of the dashboard: where each is, what it shows, and what of it changes while somebody looks.
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'logs' | 'crashes' | 'releases' | 'webhooks'>} Deck
 * @typedef {{ deck: Deck, history: import('../../db/history.js').History, now: () => number, render: import('./views.js').Views['render'], can?: import('./powers.js').Powers }} Sources  `can`: what whoever looks may do
 * @typedef {Sources & { params: URLSearchParams, id: string, describe?: () => import('../api/openapi.js').Json, tokens?: Pick<import('../admin/tokens.js').Tokens, 'list'> }} Asked  `id`: the last part of its path; `describe`: the API as OpenAPI
 * @typedef {{ id: string, html: string }} Fragment
 */
/**
 * @typedef {object} Page
 * @property {string} path  as express reads it
 * @property {string} view  a file of views/pages
 * @property {(asked: Asked) => any} model  may be a promise; `status` or `problem.status`: other than 200
 * @property {boolean} [hasFilters]  a form, which sends its empty fields along: the address bar shows `canonicalUrl` of the model
 * @property {readonly string[]} [fragments]  files of views/partials
 * @property {(asked: Asked) => () => Fragment[]} [follow]  where rendering all each time costs too much
 */

/** @type {readonly Page[]} */
export const PAGES = Object.freeze([
  {
    path: '/',
    view: 'overview',
    model: ({ deck, history, now }) => overviewModel({ deck, history, now: now(), openCrashes: countOpen(deck.crashes) }),
    fragments: OVERVIEW_FRAGMENTS
  },
  {
    path: '/deploys',
    view: 'deploys',
    model: ({ deck, history, params, now }) => deploysModel({ deck, history, params, now: now(), blocked: blockedReason(deck.snapshot()) }),
    fragments: DEPLOYS_FRAGMENTS
  },
  { path: '/releases/:id', view: 'release', model: ({ deck, id, now }) => releaseModel({ deck, id, now: now(), blocked: blockedReason(deck.snapshot()) }) },
  { path: '/history', view: 'history', model: ({ history, params, now }) => historyModel({ history, params, now: now() }), hasFilters: true, fragments: HISTORY_FRAGMENTS },
  { path: '/history/:id', view: 'event', model: ({ history, id, now }) => eventModel({ history, id, now: now() }) },
  { path: '/crashes', view: 'crashes', model: ({ deck, params, now }) => crashesModel({ crashes: deck.crashes, params, now: now() }), hasFilters: true, fragments: CRASHES_FRAGMENTS },
  {
    path: '/crashes/:id',
    view: 'crash',
    model: ({ deck, history, params, id, now }) => crashModel({ crashes: deck.crashes, history, id, params, now: now() }),
    follow: ({ deck, ...asked }) => followCrash({ crashes: deck.crashes, ...asked })
  },
  { path: '/logs', view: 'logs', model: ({ deck, params }) => logsModel({ logs: deck.logs, params }), hasFilters: true },
  { path: '/access', view: 'access', model: ({ tokens, can, now }) => accessModel({ tokens: /** @type {any} */ (tokens), can, now: now() }) },
  { path: '/webhooks', view: 'webhooks', model: ({ deck, now }) => webhooksModel({ webhooks: deck.webhooks, now: now() }), fragments: WEBHOOKS_FRAGMENTS },
  { path: '/docs{/:id}', view: 'docs', model: ({ id, now, describe }) => docsModel({ name: id || undefined, now: now(), describe }) }
])

/**
 * What changes on a page, for those who look at it.
 * @param {Sources} sources @param {URL} url
 * @returns {(() => Fragment[]) | null} renders all of it; null where nothing changes
 */
export function fragmentsOf (sources, { pathname, searchParams: params }) {
  // Older pages of a list stand still.
  if (params.has('cursor')) return null
  for (const { path, model, fragments = [], follow } of PAGES) {
    if (!follow && fragments.length === 0) continue
    const [isMeant, id = ''] = patternOf(path).exec(pathname) ?? []
    if (isMeant === undefined) continue
    const asked = { ...sources, params, id }
    const look = follow?.(asked) ?? (() => renderAll(fragments, model(asked)))
    return () => [...look(), ...renderAll(['open-crashes'], { openCrashes: countOpen(sources.deck.crashes) })]
  }
  return null

  function renderAll (/** @type {readonly string[]} */ names, /** @type {object} */ shown) {
    return names.map((name) => ({ id: name, html: sources.render(`partials/${name}`, { can: sources.can, ...shown }) }))
  }
}

/** @param {string} path */
function patternOf (path) {
  return new RegExp(`^${path.replace(':id', '(\\d+)')}$`)
}
