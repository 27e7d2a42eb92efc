import { DeckError } from '../errors.js'
import { urlOf } from './history-filters.js'

/**
 * Cursors lead only to older pages, so the URL keeps the cursors of the newer ones.
 * @typedef {{ cursor: string | undefined, trail: string[] }} Place
 */

const MAX_TRAIL = 40
const TRAIL = /^[\w-]{0,40}(\.[\w-]{1,40})*$/

/** @param {URLSearchParams} params @returns {Place} @throws {DeckError} invalid-query */
export function parsePlace (params) {
  const cursor = params.get('cursor') || undefined
  const trail = params.get('trail') ?? ''
  if (!TRAIL.test(trail)) throw new DeckError('invalid-query', 'trail: expected the cursors of earlier pages')
  return { cursor, trail: trail === '' ? [] : trail.split('.').slice(-MAX_TRAIL) }
}

/** @param {string} path @param {Record<string, string | undefined>} filters @param {Place & { next: string | null }} place */
export function pageLinks (path, filters, { cursor, trail, next }) {
  const pageUrl = (/** @type {string | undefined} */ to, /** @type {string[]} */ via) => urlOf(path, filters, {
    cursor: to,
    trail: via.slice(-MAX_TRAIL).join('.')
  })
  return {
    older: next === null ? null : pageUrl(next, cursor === undefined ? trail : [...trail, cursor]),
    newer: cursor === undefined ? null : pageUrl(trail.at(-1), trail.slice(0, -1)),
    newest: cursor === undefined ? null : urlOf(path, filters)
  }
}
