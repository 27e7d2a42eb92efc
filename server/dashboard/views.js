import { fileURLToPath } from 'node:url'
import { Eta } from 'eta'
import { formatAgo, formatBytes, formatDuration, formatExactDuration, formatLatency, formatPercent, formatRate, formatTime } from '../../public/format.js'
import { count } from '../health.js'
import { ASSETS_VERSION, assetUrl } from './assets.js'
import { escapeHtml } from './html.js'
import { powersOf } from './powers.js'
import { readable } from './readable-text.js'

/** @typedef {ReturnType<typeof createViews>} Views */

const FOLDER = fileURLToPath(new URL('../../views', import.meta.url))

/** What moves by itself in the browser: without its text, two renderings of the same state are equal. */
const TICKING_TEXT = /(<time data-tick="[a-z]+" datetime="[^"]*">)[^<]*/g

/**
 * Server-side templates, escaping by default. What is marked as HTML comes from the helpers below alone.
 * Pages get `now` (ms since the epoch) from their model, so that a rendering depends on nothing else.
 * @param {{ software?: string }} [options] `software`: what serves the pages, which may change under one that is open
 */
export function createViews ({ software = '' } = {}) {
  const eta = new Eta({ views: FOLDER, cache: true, escapeFunction: (text) => escapeHtml(readable(text)), functionHeader: 'const { f, icon, asset, tick, clock, count } = it.helpers' })

  return {
    /**
     * @param {string} name  `pages/overview`, `partials/workers`, …
     * @param {Record<string, any>} [data] `can`: what whoever looks may do; nothing, unless said otherwise
     * @returns {string} HTML
     */
    render (name, data = {}) {
      return eta.render(`./${name}`, { helpers, assetsVersion: ASSETS_VERSION, software, ...data, can: data.can ?? powersOf(null) })
    }
  }
}

/** @param {string} html @returns {string} the same for as long as nothing but time changes */
export function withoutTicking (html) {
  return html.replace(TICKING_TEXT, '$1')
}

const helpers = Object.freeze({
  f: {
    duration: formatDuration,
    exact: formatExactDuration,
    bytes: formatBytes,
    percent: formatPercent,
    rate: formatRate,
    latency: formatLatency
  },
  count,
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
