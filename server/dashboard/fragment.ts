import { createHash } from 'node:crypto'
import type { SentFragment } from '../../public/live-events.d.ts'

/** A part of a page that changes, as its template has written it. */
export type Fragment = {
  id: string,
  parts: readonly Part[],
  /** stays equal while only times and figures change */
  still: string,
  /** by key; they change each second, and so are sent alone */
  figures: ReadonlyMap<string, string>
}
/** `row`: the id of the element that it is; null: what stands around rows */
type Part = { row: string | null, html: string, still: string }

/** What a template writes between its text. These are separators of ASCII, which readable() leaves in no text. */
const MOVING = '\u001f'
const ROW = '\u001e'

/** Marks HTML that is no change: the browser keeps it up to date by itself, or it is sent alone as a figure. */
export function moving (html: string): string {
  return MOVING + html + MOVING
}

/** `html`: an element of this id, which is sent again only if it has changed */
export function rowOf (id: string, html: string): string {
  if (html.includes(ROW)) throw new Error(`The row ${id} has rows of its own`)
  return ['', id, html.trim(), ''].join(ROW)
}

export function toFragment (id: string, written: string, figures: Fragment['figures'] = new Map()): Fragment {
  const parts = partsOf(written)
  return { id, parts, still: parts.map(({ still }) => still).join(''), figures }
}

export function htmlOf (written: string): string {
  return partsOf(written).map(({ html }) => html).join('')
}

/** Between the separators stand in turn: what is around rows, the id of a row, the row. */
function partsOf (written: string): Part[] {
  const texts = written.split(ROW)
  return texts.flatMap((text, index) => {
    if (index % 3 === 1) return []
    const pieces = text.split(MOVING)
    return { row: index % 3 === 2 ? texts[index - 1] : null, html: pieces.join(''),
      still: pieces.filter((_, at) => at % 2 === 0).join('') }
  })
}

/** @returns identifies its content */
export function hashOf ({ still }: Fragment): string {
  return createHash('sha1').update(still).digest('base64url').slice(0, 10)
}

/** @returns what a browser needs that has `before`: of rows that are unchanged only their ids */
export function toSent (fragment: Fragment, before?: Fragment): SentFragment {
  const known = new Set(before?.parts.filter(({ row }) => row !== null).map(({ still }) => still))
  const parts = fragment.parts.map(({ row, html, still }) => row !== null && known.has(still) ? { row } : html)
  return { id: fragment.id, parts, hash: hashOf(fragment) }
}
