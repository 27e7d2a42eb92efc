import { heldText } from './system/built.ts'

/**
 * The manual: one set of Markdown pages for a code host, the terminal and the dashboard. Its index lists them in their
 * order.
 */
/** `part`: the heading in the index below which the page is listed */
type Page = { name: string, title: string, about: string, part: string }

const INDEX = 'README'
const LISTED = /^(?:## (?<part>.+)|- \[(?<title>[^\]]+)\]\((?<name>[\w-]+)\.md\): (?<about>.+))$/gm
/** Marks for those who edit a page, and for its tests. */
const COMMENT_LINE = /^<!-- .* -->\n/gm

/** Markdown by name */
const texts: Map<string, string> = new Map()

/** @returns in the order in which one reads them */
export function manualPages (): Page[] {
  let part = ''
  return [...manualIndex().matchAll(LISTED)].flatMap(({ groups }) => {
    part = groups?.part ?? part
    return groups?.name ? { ...groups, part } as Page : []
  })
}

/** @returns Markdown */
export function manualIndex (): string {
  return read(INDEX)
}

/** @returns Markdown; null: there is no such page */
export function manualPage (name: string): string | null {
  return manualPages().some((page) => page.name === name) ? read(name) : null
}

/** @returns the files belong to this version, and do not change under it */
function read (name: string): string {
  const text = texts.get(name) ?? heldText(`views/docs/${name}.md`).replace(COMMENT_LINE, '')
  texts.set(name, text)
  return text
}

/**
 * Ids of headings as code hosts make them, so that a link leads to the same place everywhere.
 * @returns for the headings of one page, in their order
 */
export function createSlugs (): (heading: string) => string {
  const seen: Map<string, number> = new Map()
  return (heading) => {
    const slug = heading.trim().toLowerCase().replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '').replaceAll(' ', '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  }
}
