import { fileURLToPath } from 'node:url'
import { Eta } from 'eta'
import { formatAgo, formatBytes, formatDispatch, formatDuration, formatExactDuration, formatLatency, formatPercent, formatRate, formatTime } from '../../public/format.js'
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

/**
 * Server-side templates, escaping by default. What is marked as HTML comes from the helpers below alone.
 * Pages get `now` (ms since the epoch) from their model, so that a rendering depends on nothing else.
 * @param {{ software?: string, basePath?: string }} [options] `software`: what serves the pages, which may change under one that is open
 */
export function createViews ({ software = '', basePath = '' } = {}) {
  const eta = notingParts(new Eta({ views: FOLDER, cache: true, escapeFunction: (text) => escapeHtml(readable(text)), functionHeader: 'const { f, icon, asset, tick, clock, count, calls } = it.helpers' }))

  return {
    /**
     * @param {string} name  `pages/overview`, `partials/workers`, …
     * @param {Record<string, any>} [data] `can`: what whoever looks may do; nothing, unless said otherwise. `frame`: what is around a page
     * @returns {string} HTML
     */
    render (name, data = {}) {
      const parts = name.startsWith('pages/') ? createParts(basePath) : null
      return htmlWithBase(basePath, eta.render(`./${name}`, { helpers, assetsVersion: ASSETS_VERSION, software, basePath, parts, frame: NO_FRAME, ...data, can: data.can ?? powersOf(null) }))
    }
  }
}

/** Lets a page know of the parts that it was put together of. @param {Eta} eta */
function notingParts (eta) {
  const { render } = eta
  eta.render = (template, data, meta) => {
    const html = render.call(eta, template, data, meta)
    const [, name] = PART.exec(String(template)) ?? []
    if (name) /** @type {any} */ (data).parts?.note(name, html)
    return html
  }
  return eta
}

/** @param {string} basePath */
function createParts (basePath) {
  /** @type {Map<string, string>} */
  const hashes = new Map()
  return {
    note (/** @type {string} */ name, /** @type {string} */ html) { hashes.set(name, hashOf(toShown(htmlWithBase(basePath, html)))) },
    /** Sent along with the page: what it shows already need not come over the live connection again. */
    toString: () => JSON.stringify(Object.fromEntries(hashes))
  }
}

const helpers = Object.freeze({
  f: {
    ago: formatAgo,
    duration: formatDuration,
    exact: formatExactDuration,
    bytes: formatBytes,
    dispatch: formatDispatch,
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

  /**
   * A duration that goes on by itself: `since` a time, `until` one, or the time `ago`.
   * @param {'since' | 'until' | 'ago'} kind @param {string} iso @param {number} now
   */
  tick (kind, iso, now) {
    const ms = now - Date.parse(iso)
    const text = { since: () => formatDuration(ms), until: () => formatDuration(Math.max(0, -ms)), ago: () => formatAgo(ms) }[kind]()
    return `<time data-tick="${kind}" datetime="${escapeHtml(iso)}">${escapeHtml(text)}</time>`
  },

  /** A moment; the browser puts it into the viewer's time zone. @param {string} iso @param {{ isLong?: boolean }} [options] */
  clock: (iso, { isLong = false } = {}) =>
    `<time data-clock="${isLong ? 'long' : 'short'}" datetime="${escapeHtml(iso)}" title="${escapeHtml(iso)}">${escapeHtml(formatTime(iso, { timeZone: 'UTC', isLong }))}</time>`
})
