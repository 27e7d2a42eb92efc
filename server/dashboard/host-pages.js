import os from 'node:os'
import { accessModel } from './access-page.js'
import { APPS_FRAGMENTS, appsModel } from './apps-page.js'
import { docsModel } from './docs-page.js'
import { followPage } from './follow-page.js'

/**
 * The pages of a host: the list of its apps, and what all of them have together.
 * @typedef {Pick<import('../api/apps.js').Apps, 'list' | 'about' | 'onChange'>} Apps
 * @typedef {{ apps: Apps, now: () => number, render: import('./views.js').Views['render'], can?: import('./powers.js').Powers }} Sources
 */

/** The elements around the pages that change, by id. */
export const HOST_FRAME_FRAGMENTS = Object.freeze(['trouble'])

/** @typedef {import('./follow-page.js').LivePage & import('./page-router.js').Page} HostPage */

/** @type {readonly HostPage[]} */
export const HOST_PAGES = Object.freeze([
  { path: '/', view: 'apps', model: appsModel, fragments: APPS_FRAGMENTS },
  { path: '/access', view: 'access', model: accessPage },
  { path: '/docs{/:id}', view: 'docs', model: docsPage }
])

/** @param {{ apps: Apps, can?: import('./powers.js').Powers }} sources */
export function hostFrame ({ apps, can }) {
  const { rows } = appsModel({ apps, can })
  const tones = rows.map(({ tone }) => tone)
  const count = tones.filter((tone) => tone === 'bad' || tone === 'warn').length
  return { isHost: true, frame: { app: os.hostname(), host: '', trouble: { tone: tones.includes('bad') ? 'bad' : count > 0 ? 'warn' : 'ok', count } } }
}

/**
 * The pages of a host for the live connection.
 * @param {Sources} sources
 * @returns {import('./follow-page.js').LivePages}
 */
export function liveHostPages (sources) {
  return {
    alarms: null,
    chart: null,
    onChange: (handler) => sources.apps.onChange(handler),
    follow: (can, url) => followPage(HOST_PAGES, {
      sources: { ...sources, can },
      frame: { fragments: HOST_FRAME_FRAGMENTS, model: () => hostFrame({ ...sources, can }) }
    }, url)
  }
}

/** @param {{ id: string, now: () => number, describe?: () => import('../api/openapi.js').Json }} asked */
function docsPage ({ id, now, describe }) {
  return docsModel({ name: id || undefined, now: now(), describe })
}

/** @param {{ tokens: Pick<import('../api/tokens.js').TokenRegistry, 'list'>, can: import('./powers.js').Powers, now: () => number }} asked */
function accessPage ({ tokens, can, now }) {
  return accessModel({ tokens, can, now: now() })
}
