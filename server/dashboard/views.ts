import { fileURLToPath } from 'node:url'
import { Eta } from 'eta'
import { capitalised, formatAgo, formatBytes, formatCommit, formatDispatch, formatLimits, formatNode, formatDuration,
  formatExactDuration, formatLatency, formatPercent, formatRate, formatTime } from '../../public/format.ts'
import { causeText } from '../../public/cause-words.ts'
import { htmlWithBase } from '../api/base-path.ts'
import { callOf, onMember, operationsByName } from '../api/form.ts'
import { count } from '../health.ts'
import { ASSETS_VERSION, assetUrl } from './assets.ts'
import { hashOf, toShown } from './fragment.ts'
import { NO_FRAME } from './frame.ts'
import { escapeHtml } from './html.ts'
import { powersOf } from './powers.ts'
import { readable } from './readable-text.ts'
import type { Mount } from '../api/openapi.ts'

export type Views = ReturnType<typeof createViews>

const PART = /^\/partials\/([a-z-]+)$/
const FOLDER = fileURLToPath(new URL('../../views', import.meta.url))

/** The parts of the page that is rendered now. */
let parts: ReturnType<typeof createParts> | null = null

/** All sites share it, as compiled templates take room. */
const eta = notingParts(
  new Eta({ views: FOLDER, cache: true, escapeFunction: (text) => escapeHtml(readable(text)),
    functionHeader: 'const { f, icon, asset, tick, clock, count, post, calls, withCode } = it.helpers' }),
  (name, html) => parts?.note(name, html)
)

/**
 * Server-side templates that escape by default. Only the helpers below return HTML.
 * Pages get `now` (ms since the epoch) from their model, so that a rendering depends on nothing else.
 * @param options `software`: the version that serves the pages, so that an open page
 * notices an upgrade; `home`: the base path of the admin port, which may be above that of these pages
 */
export function createViews (
  { software = '', basePath = '', home = basePath, mounts = () => [] }: { software?: string, basePath?: string,
    home?: string, mounts?: () => readonly Mount[] } = {}
) {
  const place = (html: string) => htmlWithBase(basePath, html, home)
  /** by the first dialog */
  let operations: ReturnType<typeof operationsByName> | null = null

  return {
    /**
     * `name`: `pages/overview`, `partials/workers`, …; `can`: what the viewer may do, by default nothing;
     * `frame`: see frame.ts. Returns HTML.
     */
    render<Data extends object & { can?: object }> (name: string, data: Data): string {
      parts = name.startsWith('pages/') ? createParts(place) : null
      return place(
        eta.render(`./${name}`, { helpers: { ...helpers, calls }, assetsVersion: ASSETS_VERSION, software, basePath,
          home, parts, frame: NO_FRAME, ...data, can: data.can ?? powersOf(null) })
      )
    }
  }

  /** @returns for an attribute: the dialog shows the first operation whose fields are filled in */
  function calls (names: string[], isOfMember = false): string {
    operations ??= operationsByName(mounts())
    return JSON.stringify(
      names.flatMap((name) => operations?.get(name) ?? []).map(callOf).map((call) => isOfMember ? onMember(call) : call)
    )
  }
}

/** `onPart`: hears of each part of a page that is rendered */
function notingParts (eta: Eta, onPart: (name: string, html: string) => void) {
  const { render } = eta
  eta.render = (template, data, meta) => {
    const html = render.call(eta, template, data, meta)
    const [, name] = PART.exec(String(template)) ?? []
    if (name) onPart(name, html)
    return html
  }
  return eta
}

/** `place`: puts links below the base path */
function createParts (place: (html: string) => string) {
  const hashes: Map<string, string> = new Map()
  return {
    note (name: string, html: string) {
      hashes.set(name, hashOf(toShown(place(html))))
    },
    /** The page sends these hashes, so that the live connection does not send the same parts again. */
    toString: () => JSON.stringify(Object.fromEntries(hashes))
  }
}

const helpers = Object.freeze({
  f: { ago: formatAgo, capitalised, cause: causeText, duration: formatDuration, exact: formatExactDuration,
    bytes: formatBytes, commit: formatCommit, dispatch: formatDispatch, limits: formatLimits, node: formatNode,
    percent: formatPercent, rate: formatRate, latency: formatLatency },
  count,
  asset: assetUrl,

  /** `name`: of a symbol in icons.svg */
  icon: (name: string, className: string = '') =>
    `<svg class="icon ${escapeHtml(className)}" aria-hidden="true" focusable="false"><use href="${
      assetUrl('icons.svg')
    }#${escapeHtml(name)}"/></svg>`,

  /** Attributes of a form: `names`: of the operations of the API that it asks for, see forms.ts. */
  post: (names: string) =>
    `method="post" action="/actions/${names}" hx-post="/actions/${names}" hx-swap="none" hx-sync="this:drop" ` +
    'hx-headers=\'{"Accept":"application/problem+json"}\'',

  /** A text in which names of the API stand between backticks. */
  withCode: (text: string) => escapeHtml(text).replace(/`([^`]+)`/g, '<code>$1</code>'),

  /** A duration that the browser keeps up to date: `since` a time, `until` one, or the time `ago`. */
  tick (kind: 'since' | 'until' | 'ago', iso: string, now: number) {
    const ms = now - Date.parse(iso)
    const text = { since: () => formatDuration(ms), until: () => formatDuration(Math.max(0, -ms)),
      ago: () => formatAgo(ms) }[kind]()
    return `<time data-tick="${kind}" datetime="${escapeHtml(iso)}">${escapeHtml(text)}</time>`
  },

  /** A time, which the browser shows in the viewer's time zone. */
  clock: (iso: string, { isLong = false }: { isLong?: boolean } = {}) =>
    `<time data-clock="${isLong ? 'long' : 'short'}" datetime="${escapeHtml(iso)}" title="${escapeHtml(iso)}">` +
    `${escapeHtml(formatTime(iso, { timeZone: 'UTC', isLong }))}</time>`
})
