import { unless } from '../errors.ts'
import { nextTurn } from './turn.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { History } from '../../db/history.ts'
import type { EventQuery } from '../../db/event-search.ts'

/** The answer where the events that were to be counted are no longer kept. */
export const NO_COUNTS = Object.freeze({ counts: [], next: null, reachedMs: null })
const DEFAULT_LIMIT = 100
// A search reads for at most so many turns of the event loop, a few milliseconds each.
const MAX_TURNS = 50

/**
 * Reads as many events as requested. A page of the history ends early, to spare the event loop; this reads on in
 * further turns, so that only a long search returns a short page.
 */
export async function fullPage (history: Pick<History, 'page'>,
  query: EventQuery): Promise<{ items: DeckEvent[], next: string | null }>
{
  const limit = query.limit ?? DEFAULT_LIMIT
  let { items, next } = history.page(query)
  for (let turn = 1; next !== null && items.length < limit && turn < MAX_TURNS; turn++) {
    await nextTurn()
    const page = pageAfter(history, { ...query, limit: limit - items.length, cursor: next })
    items = [...items, ...page.items]
    next = page.next
  }
  return { items, next }
}

/** Reads the next page of the same call; it is empty if those events are no longer kept. */
export function pageAfter (history: Pick<History, 'page'>, query: EventQuery) {
  return unless('cursor-expired', () => history.page(query), { items: [], next: null })
}

/**
 * Reads piece by piece, each in a turn of the event loop, for at most so many turns.
 * @returns the last piece, whose `next` is null where nothing is left
 */
export async function readPieces<Piece extends { next: string | null }> (read: (cursor?: string) => Piece, end: Piece,
  { maxTurns, take }: { maxTurns: number, take: (piece: Piece) => void }): Promise<Piece>
{
  let piece = read()
  for (let turn = 1;; turn++) {
    take(piece)
    const { next } = piece
    if (next === null || turn === maxTurns) return piece
    await nextTurn()
    piece = unless('cursor-expired', () => read(next), end)
  }
}
