import { DeckError } from '../errors.ts'
import { createSlugs, manualIndex, manualPage, manualPages } from '../manual.ts'
import { operationsModel, usedShapes } from './operations.ts'
import { searchManual } from './docs-search.ts'
import { escapeHtml } from './html.ts'
import type { Document } from '../api/openapi.ts'

const INDEX_TITLE = 'Manual'
/** This page of the manual ends with a list of all operations of the API; each group of them has a page below it. */
const API_PAGE = 'api'
const MAX_QUERY_CHARS = 100
const SAFE_URL = /^(https?:\/\/|\/docs|#)/
/** Pages of the dashboard that belong to a page of the manual. */
const LIVE_PAGES: Readonly<Record<string, { url: string, about: string }>> = Object.freeze({
  doctor: { url: '/checks', about: 'What the checks have found here' },
  alerts: { url: '/alerts', about: 'The alerts of this app' },
  jobs: { url: '/jobs', about: 'The jobs of this cluster' }
})
/** Code that is shorter, such as a flag, must not break across lines. */
const MAX_WHOLE_CHARS = 40

/** HTML by page name, kept for good: the files do not change while this version runs */
const rendered: Map<string, string> = new Map()

/**
 * One page of the manual, or its index, which can be searched. `id`: its name
 * @throws {DeckError} not-found
 */
export async function docsModel (
  { id, params, now, describe }: { id?: string, params?: URLSearchParams, now: () => number, describe?: () => Document }
) {
  const name = id || undefined
  const q = (params?.get('q') ?? '').trim().slice(0, MAX_QUERY_CHARS)
  const pages = manualPages()
  const markdown = name === undefined ? manualIndex() : manualPage(name)
  if (markdown === null) throw new DeckError('not-found', 'The manual has no such page')
  const place = pages.findIndex((page) => page.name === name)
  return { now: now(), name, q, found: q ? searchManual(q) : null,
    canonicalUrl: `/docs${name ? `/${name}` : q && `?${new URLSearchParams({ q })}`}`, pages,
    title: pages[place]?.title ?? INDEX_TITLE, html: await renderOnce(name ?? '', markdown),
    live: LIVE_PAGES[name ?? ''] ?? null,
    api: name === API_PAGE && describe ? await operationsModel(describe(), toHtml) : null,
    previous: pages[place - 1] ?? null, next: pages[place + 1] ?? null }
}

/**
 * A group of the operations of the API, with the shapes of what they take and answer.
 * @throws {DeckError} not-found
 */
export async function operationsPageModel (
  { id: slug, now, describe }: { id: string, now: () => number, describe?: () => Document }
) {
  if (!describe) throw new DeckError('not-found', 'The API is not described here')
  const { groups, shapes } = await operationsModel(describe(), toHtml)
  const place = groups.findIndex((group) => group.slug === slug)
  if (place < 0) throw new DeckError('not-found', 'The API has no such group of operations')
  const group = groups[place]
  const linkTo = (at: number) => groups[at] ? { name: `${API_PAGE}/${groups[at].slug}`, title: groups[at].name } : null
  const pages = manualPages()
  return { now: now(), name: API_PAGE, pages, title: group.name,
    above: pages.find(({ name }) => name === API_PAGE)?.title, group, shapes: usedShapes(group.operations, shapes),
    previous: linkTo(place - 1), next: linkTo(place + 1) }
}

async function renderOnce (name: string, markdown: string) {
  const known = rendered.get(name)
  if (known !== undefined) return known
  const html = await toHtml(markdown)
  rendered.set(name, html)
  return html
}

/** Renders Markdown; HTML in it comes out as text. */
export async function toHtml (markdown: string): Promise<string> {
  // Most masters never show a page of the manual.
  const { Marked, Renderer } = await import('marked')
  const slugOf = createSlugs()
  const marked = new Marked({ renderer: {
    html: ({ text }) => escapeHtml(text),
    heading ({ tokens, depth, text }) {
      return `<h${depth} id="${escapeHtml(slugOf(text))}">${this.parser.parseInline(tokens)}</h${depth}>\n`
    },
    link ({ href, tokens }) {
      const text = this.parser.parseInline(tokens)
      const url = servedUrl(href)
      return SAFE_URL.test(url) ? `<a href="${escapeHtml(url)}">${text}</a>` : text
    },
    // The content security policy forbids pictures of other sites.
    image: ({ text }) => escapeHtml(text),
    codespan: ({ text }) => `<code${text.length <= MAX_WHOLE_CHARS ? ' class="whole"' : ''}>${escapeHtml(text)}</code>`,
    // A table may scroll, so it must take the keyboard focus.
    table (token) {
      return `<div class="doc-table" role="group" aria-label="Table" tabindex="0">${
        Renderer.prototype.table.call(this, token)
      }</div>\n`
    }
  } })
  return marked.parse(markdown, { async: false })
}

/** Pages link to each other by file name, as in their folder. */
function servedUrl (href: string) {
  const [, name, hash = ''] = /^([\w-]+)\.md(#.*)?$/.exec(href) ?? []
  if (name === undefined) return href
  return `/docs${name === 'README' ? '' : `/${name}`}${hash}`
}
