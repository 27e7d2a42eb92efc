import { createHash } from 'node:crypto'

/**
 * A part of a page that changes, and the changes that a viewer still needs.
 * @typedef {import('./pages.js').Fragment} Fragment
 * @typedef {{ html: string, still: string }} Shown  `still`: without ticking times and figures, so that it stays equal until something else changes
 */

/** Texts that the browser updates itself. */
const TICKING_TEXT = /(<time data-tick="[a-z]+" datetime="[^"]*">)[^<]*/g
/** Figures change each second and are sent alone, by key: the text of an element, the width of a bar, or the points of a line. */
const FIGURE = /( data-figure="([^"]*)")(?: (?:width|points)="([^"]*)"|>([^<]*))/g
/** Rows are not nested. */
const ROW = /<(tr|li)(?= [^>]*data-flash)[^>]* id="([^"]+)".*?<\/\1>/gs

/** @param {string} html */
export function toShown (html) {
  return { html, still: withoutMoving(html) }
}

/** @param {string} html @returns {string} stays equal while only times and figures change */
export function withoutMoving (html) {
  return html.replace(TICKING_TEXT, '$1').replace(FIGURE, '$1')
}

/** @param {string} html @returns {[string, string][]} key and value of each figure */
export function figuresOf (html) {
  return Array.from(html.matchAll(FIGURE), ([, , key, value, text]) => [key, value ?? text])
}

/** @param {Shown} shown @returns {string} identifies its content */
export function hashOf ({ still }) {
  return createHash('sha1').update(still).digest('base64url').slice(0, 10)
}

/**
 * Leaves unchanged rows empty, as the browser has them.
 * @param {Shown} shown @param {Shown | undefined} before
 */
export function changesOf ({ html }, before) {
  if (!before) return html
  const known = new Set(Array.from(before.still.matchAll(ROW), ([row]) => row))
  return html.replace(ROW, (row, tag, id) => known.has(withoutMoving(row)) ? `<${tag} id="${id}" data-kept></${tag}>` : row)
}
