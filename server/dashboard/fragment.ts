import { createHash } from 'node:crypto'

/** A part of a page that changes, and the changes that a viewer still needs. */
/** `still`: without ticking times and figures, so that it stays equal until something else changes */
export type Shown = { html: string, still: string }

/** Texts that the browser updates itself. */
const TICKING_TEXT = /(<time data-tick="[a-z]+" datetime="[^"]*">)[^<]*/g
/**
 * Figures change each second and are sent alone, by key: the text of an element, the width of a bar, or the points of a
 * line.
 */
const FIGURE = /( data-figure="([^"]*)")(?: (?:width|points)="([^"]*)"|>([^<]*))/g
/** Rows are not nested. */
const ROW = /<(tr|li)(?= [^>]*data-flash)[^>]* id="([^"]+)".*?<\/\1>/gs

export function toShown (html: string) {
  return { html, still: withoutMoving(html) }
}

/** @returns stays equal while only times and figures change */
export function withoutMoving (html: string): string {
  return html.replace(TICKING_TEXT, '$1').replace(FIGURE, '$1')
}

/** @returns key and value of each figure */
export function figuresOf (html: string): [string, string][] {
  return Array.from(html.matchAll(FIGURE), ([, , key, value, text]) => [key, value ?? text])
}

/** @returns identifies its content */
export function hashOf ({ still }: Shown): string {
  return createHash('sha1').update(still).digest('base64url').slice(0, 10)
}

/** Leaves unchanged rows empty, as the browser has them. */
export function changesOf ({ html }: Shown, before: Shown | undefined) {
  if (!before) return html
  const known = new Set(Array.from(before.still.matchAll(ROW), ([row]) => row))
  return html.replace(ROW,
    (row, tag, id) => known.has(withoutMoving(row)) ? `<${tag} id="${id}" data-kept></${tag}>` : row)
}
