import { DeckError } from '../errors.ts'
import { urlOf } from '../events/page-filters.ts'

/** Cursors lead only to older pages, so the URL keeps the cursors of the newer ones. */
type Place = { cursor: string | undefined, trail: string[] }

const MAX_TRAIL = 40
const MAX_TRAIL_CHARS = 4000
const TRAIL = /^[\w-]*(\.[\w-]+)*$/

/** @throws {DeckError} invalid-query */
export function parsePlace (params: URLSearchParams): Place {
  const cursor = params.get('cursor') || undefined
  const trail = params.get('trail') ?? ''
  if (!TRAIL.test(trail)) throw new DeckError('invalid-query', 'trail: expected the cursors of earlier pages')
  return { cursor, trail: trail === '' ? [] : trail.split('.').slice(-MAX_TRAIL) }
}

export function pageLinks (path: string, filters: Record<string, string | undefined>,
  { cursor, trail, next }: Place & { next: string | null })
{
  const pageUrl = (to: string | undefined, via: string[]) =>
    urlOf(path, filters, { cursor: to, trail: textOf(via.slice(-MAX_TRAIL)) })
  return { older: next === null ? null : pageUrl(next, cursor === undefined ? trail : [...trail, cursor]),
    newer: cursor === undefined ? null : pageUrl(trail.at(-1), trail.slice(0, -1)),
    newest: cursor === undefined ? null : urlOf(path, filters) }
}

/** Cursors of a host are long, and an address is not. */
function textOf (trail: string[]): string {
  const text = trail.join('.')
  return text.length <= MAX_TRAIL_CHARS ? text : textOf(trail.slice(1))
}
