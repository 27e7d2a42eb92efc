import { createHash } from 'node:crypto'

/**
 * A part of a page that changes, and what of it a viewer who has it already has to be sent.
 * @typedef {import('./pages.js').Fragment} Fragment
 * @typedef {{ html: string, still: string }} Shown  `still`: without what moves, so that it is equal for as long as nothing else changes
 */

/** What moves by itself in the browser. */
const TICKING_TEXT = /(<time data-tick="[a-z]+" datetime="[^"]*">)[^<]*/g
/** What is measured anew each second goes alone, by its key: the text of an element whose last attribute says it, the width of a bar, or the points of a line. */
const FIGURE = /( data-figure="([^"]*)")(?: (?:width|points)="([^"]*)"|>([^<]*))/g
/** None of them is in another one. */
const ROW = /<(tr|li)(?= [^>]*data-flash)[^>]* id="([^"]+)".*?<\/\1>/gs

/** @param {string} html */
export function toShown (html) {
  return { html, still: withoutMoving(html) }
}

/** @param {string} html @returns {string} the same for as long as nothing but time and figures change */
export function withoutMoving (html) {
  return html.replace(TICKING_TEXT, '$1').replace(FIGURE, '$1')
}

/** @param {string} html @returns {[string, string][]} what each of its figures is, by key */
export function figuresOf (html) {
  return Array.from(html.matchAll(FIGURE), ([, , key, value, text]) => [key, value ?? text])
}

/** @param {Shown} shown @returns {string} what it can be known by */
export function hashOf ({ still }) {
  return createHash('sha1').update(still).digest('base64url').slice(0, 10)
}

/**
 * Rows that are as they were are left empty: the browser has them.
 * @param {Shown} shown @param {Shown | undefined} before
 */
export function changesOf ({ html }, before) {
  if (!before) return html
  const known = new Set(Array.from(before.still.matchAll(ROW), ([row]) => row))
  return html.replace(ROW, (row, tag, id) => known.has(withoutMoving(row)) ? `<${tag} id="${id}" data-kept></${tag}>` : row)
}
