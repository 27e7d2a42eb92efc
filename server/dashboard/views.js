import { fileURLToPath } from 'node:url'
import { Eta } from 'eta'
import {
  capitalised,
  formatAgo,
  formatBytes,
  formatCommit,
  formatDispatch,
  formatLimits,
  formatDuration,
  formatExactDuration,
  formatLatency,
  formatPercent,
  formatRate,
  formatTime
} from '../../public/format.js'
import { causeText } from '../../public/cause-words.js'
import { htmlWithBase } from '../api/base-path.js'
import { count } from '../health.js'
import { ASSETS_VERSION, assetUrl } from './assets.js'
import { callsText } from './calls.js'
import { hashOf, toShown } from './fragment.js'
import { NO_FRAME } from './frame.js'
import { escapeHtml } from './html.js'
import { powersOf } from './powers.js'
import { readable } from './readable-text.js'

/** @typedef {ReturnType<typeof createViews>} Views */

const PART = /^\/partials\/([a-z-]+)$/
const FOLDER = fileURLToPath(new URL('../../views', import.meta.url))

/** The parts of the page that is rendered now. @type {ReturnType<typeof createParts> | null} */
let parts = null

/** All sites share it, as compiled templates take room. */
const eta = notingParts(new Eta({
  views: FOLDER,
  cache: true,
  escapeFunction: (text) => escapeHtml(readable(text)),
  functionHeader: 'const { f, icon, asset, tick, clock, count, calls, withCode } = it.helpers'
}), (name, html) => parts?.note(name, html))

/**
 * Server-side templates that escape by default. Only the helpers below return HTML.
 * Pages get `now` (ms since the epoch) from their model, so that a rendering depends on nothing else.
 * @param {{ software?: string, basePath?: string, home?: string }} [options] `software`: the version that serves the pages, so that an open page
 *   notices an upgrade; `home`: the base path of the admin port, which may be above that of these pages
 */
export function createViews ({ software = '', basePath = '', home = basePath } = {}) {
  const place = (/** @type {string} */ html) => htmlWithBase(basePath, html, home)

  return {
    /**
     * @template {object & { can?: object }} Data
     * @param {string} name  `pages/overview`, `partials/workers`, …
     * @param {Data} data `can`: what the viewer may do, by default nothing; `frame`: see frame.js
     * @returns {string} HTML
     */
    render (name, data) {
      parts = name.startsWith('pages/') ? createParts(place) : null
      return place(eta.render(`./${name}`, {
        helpers,
        assetsVersion: ASSETS_VERSION,
        software,
        basePath,
        home,
        parts,
        frame: NO_FRAME,
        ...data,
        can: data.can ?? powersOf(null)
      }))
    }
  }
}

/** @param {Eta} eta @param {(name: string, html: string) => void} onPart hears of each part of a page that is rendered */
function notingParts (eta, onPart) {
  const { render } = eta
  eta.render = (template, data, meta) => {
    const html = render.call(eta, template, data, meta)
    const [, name] = PART.exec(String(template)) ?? []
    if (name) onPart(name, html)
    return html
  }
  return eta
}

/** @param {(html: string) => string} place puts links below the base path */
function createParts (place) {
  /** @type {Map<string, string>} */
  const hashes = new Map()
  return {
    note (/** @type {string} */ name, /** @type {string} */ html) { hashes.set(name, hashOf(toShown(place(html)))) },
    /** The page sends these hashes, so that the live connection does not send the same parts again. */
    toString: () => JSON.stringify(Object.fromEntries(hashes))
  }
}

const helpers = Object.freeze({
  f: {
    ago: formatAgo,
    capitalised,
    cause: causeText,
    duration: formatDuration,
    exact: formatExactDuration,
    bytes: formatBytes,
    commit: formatCommit,
    dispatch: formatDispatch,
    limits: formatLimits,
    percent: formatPercent,
    rate: formatRate,
    latency: formatLatency
  },
  count,
  calls: callsText,
  asset: assetUrl,

  /** @param {string} name of a symbol in icons.svg @param {string} [className] */
  icon: (name, className = '') =>
    `<svg class="icon ${escapeHtml(className)}" aria-hidden="true" focusable="false"><use href="${assetUrl('icons.svg')}#${escapeHtml(name)}"/></svg>`,

  /** A text in which names of the API stand between backticks. @param {string} text */
  withCode: (text) => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>'),

  /**
   * A duration that the browser keeps up to date: `since` a time, `until` one, or the time `ago`.
   * @param {'since' | 'until' | 'ago'} kind @param {string} iso @param {number} now
   */
  tick (kind, iso, now) {
    const ms = now - Date.parse(iso)
    const text = { since: () => formatDuration(ms), until: () => formatDuration(Math.max(0, -ms)), ago: () => formatAgo(ms) }[kind]()
    return `<time data-tick="${kind}" datetime="${escapeHtml(iso)}">${escapeHtml(text)}</time>`
  },

  /** A time, which the browser shows in the viewer's time zone. @param {string} iso @param {{ isLong?: boolean }} [options] */
  clock: (iso, { isLong = false } = {}) =>
    `<time data-clock="${isLong ? 'long' : 'short'}" datetime="${escapeHtml(iso)}" title="${escapeHtml(iso)}">` +
    `${escapeHtml(formatTime(iso, { timeZone: 'UTC', isLong }))}</time>`
})
