import { Eta } from 'eta'
import { capitalised, formatAgo, formatBytes, formatCommit, formatCount, formatDispatch, formatLimits, formatNode,
  formatExactDuration, formatLatency, formatPercent, formatRate, formatTime, TICKS,
  withoutOptions } from '../../public/format.ts'
import { causeText } from '../../public/cause-words.ts'
import { htmlWithBase } from '../api/base-path.ts'
import { callOf, onMember, operationsByName } from '../api/form.ts'
import { heldText } from '../system/built.ts'
import { count, listText } from '../words/health.ts'
import { ASSETS_VERSION, assetUrl } from './assets.ts'
import { hashOf, htmlOf, moving, rowOf, toFragment, type Fragment } from './fragment.ts'
import { NO_FRAME } from './frame.ts'
import { escaped } from './html.ts'
import { heads, icon, optionsOf, search, searchField, select, tabs } from './markup.ts'
import { powersOf } from './powers.ts'
import type { Mount } from '../api/openapi.ts'

export type Views = ReturnType<typeof createViews>
type Data = object & { can?: object }

const PART = /^\/partials\/([a-z-]+)$/
/** For the template engine, which knows templates by their path; `heldText` reads them. */
const FOLDER = '/views'

/** The helpers that templates call by their bare names. */
const HELPER_NAMES =
  'f, icon, asset, tick, figure, figureIn, clock, count, post, calls, withCode, heads, optionsOf, select, search, searchField, tabs'
/** The figures and parts of what is rendered now; rendering is synchronous, so there is one. */
let notes = createNotes()

/** All sites share it, as compiled templates take room. */
const eta = notingParts(
  new Eta({ views: FOLDER, cache: true, escapeFunction: escaped, functionHeader: `const { ${HELPER_NAMES} } = it.helpers
      const keyed = (id, write) => output(it.helpers.row(id, (attributes) => capture(() => write(attributes))))` }),
  (name, written) => notes.notePart(name, written)
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
    render: <D extends Data>(name: string, data: D): string => htmlOf(write(name, data)),

    /** `id`: of a partial */
    fragment<D extends Data> (id: string, data: D): Fragment {
      const written = write(`partials/${id}`, data)
      return toFragment(id, written, notes.figures)
    }
  }

  function write (name: string, data: Data): string {
    notes = createNotes(name.startsWith('pages/') ? place : undefined)
    return place(
      eta.render(`./${name}`, { helpers: { ...helpers, calls }, assetsVersion: ASSETS_VERSION, software, basePath, home,
        shownParts: notes.shownParts, frame: NO_FRAME, ...data, can: data.can ?? powersOf(null) })
    )
  }

  /** @returns for an attribute: the dialog shows the first operation whose fields are filled in */
  function calls (names: string[], isOfMember = false): string {
    operations ??= operationsByName(mounts())
    return JSON.stringify(
      names.flatMap((name) => operations?.get(name) ?? []).map(callOf).map((call) => isOfMember ? onMember(call) : call)
    )
  }
}

/** `onPart`: hears of each partial that another template includes */
function notingParts (eta: Eta, onPart: (name: string, written: string) => void) {
  const { render } = eta
  eta.readFile = (file) => heldText(file.slice(1))
  eta.render = (template, data, meta) => {
    const written = render.call(eta, template, data, meta)
    const [, name] = PART.exec(String(template)) ?? []
    if (name) onPart(name, written)
    return written
  }
  return eta
}

/** `place`: puts links of a page below the base path; undefined: this is no page, but a part of one */
function createNotes (place?: (html: string) => string) {
  const hashes: Map<string, string> = new Map()
  return {
    /** by key */
    figures: new Map<string, string>(),

    notePart (name: string, written: string) {
      if (place) hashes.set(name, hashOf(toFragment(name, place(written))))
    },

    /** The page sends these hashes, so that the live connection does not send the same parts again. */
    shownParts: () => JSON.stringify(Object.fromEntries(hashes))
  }
}

const helpers = Object.freeze({
  f: { ago: formatAgo, capitalised, withoutOptions, cause: causeText, exact: formatExactDuration, bytes: formatBytes,
    commit: formatCommit, dispatch: formatDispatch, limits: formatLimits, node: formatNode, number: formatCount,
    percent: formatPercent, rate: formatRate, latency: formatLatency, list: listText },
  count,
  asset: assetUrl,
  icon,
  heads,
  optionsOf,
  select,
  search,
  searchField,
  tabs,

  /** Attributes of a form: `names`: of the operations of the API that it asks for, see forms.ts. */
  post: (names: string) =>
    `method="post" action="/actions/${names}" hx-post="/actions/${names}" hx-swap="none" hx-sync="this:drop" ` +
    'hx-headers=\'{"Accept":"application/problem+json"}\'',

  /** A text in which names of the API stand between backticks. */
  withCode: (text: string) => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>'),

  /** A text that the browser keeps up to date: a duration `since` a time or `until` one, `in 5 min`, or `5 min ago`. */
  tick: (kind: keyof typeof TICKS, iso: string, now: number) =>
    `<time data-tick="${kind}" datetime="${escaped(iso)}">${
      moving(escaped(TICKS[kind](now - Date.parse(iso))))
    }</time>`,

  /** A text that changes each second. `key`: names it on its page */
  figure (key: string, text: string | number) {
    notes.figures.set(key, String(text))
    return `<span data-figure="${escaped(key)}">${moving(escaped(text))}</span>`
  },

  /** The same as an attribute of an element of its own: the width of a bar, the points of a line, or a shade. */
  figureIn (attribute: 'width' | 'points' | 'fill-opacity', key: string, value: string | number) {
    notes.figures.set(key, String(value))
    return `data-figure="${escaped(key)}" ${attribute}="${moving(escaped(value))}"`
  },

  /** An element that is sent again only if it has changed, and flashes when it comes. `write`: with its attributes */
  row: (id: string, write: (attributes: string) => string) => rowOf(id, write(`id="${escaped(id)}" data-flash`)),

  /** A time, which the browser shows in the viewer's time zone. */
  clock: (iso: string, { isLong = false }: { isLong?: boolean } = {}) =>
    `<time data-clock="${isLong ? 'long' : 'short'}" datetime="${escaped(iso)}" title="${escaped(iso)}">` +
    `${escaped(formatTime(iso, { timeZone: 'UTC', isLong }))}</time>`
})
