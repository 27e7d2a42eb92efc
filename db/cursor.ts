import { DeckError } from '../server/errors.ts'

/**
 * Encodes a place in a list that is read newest first. `kind` keeps a cursor of one list from being used on another.
 * `kind`: one lower-case letter; `beforeId`: the next page begins below this id.
 */
export function encodeCursor (kind: string, beforeId: number) {
  return encodeNumbers(kind, [beforeId])
}

/** Returns the page begins below this id; Infinity without a cursor @throws {DeckError} `invalid-query` */
export function decodeCursor (kind: string, cursor: string | null | undefined): number {
  return decodeNumbers(kind, cursor, 1)?.[0] ?? Infinity
}

/** Encodes a place in a list that is sorted by a value which several items can share. */
export function encodeRankCursor (kind: string, { rank, id }: { rank: number, id: number }) {
  return encodeNumbers(kind, [rank, id])
}

/** Returns null without a cursor @throws {DeckError} `invalid-query` */
export function decodeRankCursor (kind: string, cursor: string | null | undefined):
  | { rank: number, id: number }
  | null
{
  const numbers = decodeNumbers(kind, cursor, 2)
  return numbers && { rank: numbers[0], id: numbers[1] }
}

function encodeNumbers (kind: string, numbers: number[]) {
  return Buffer.from(kind + numbers.join('.')).toString('base64url')
}

/** @returns null without a cursor */
function decodeNumbers (kind: string, cursor: string | null | undefined, length: number): number[] | null {
  if (cursor === undefined || cursor === null || cursor === '') return null
  const text = Buffer.from(String(cursor), 'base64url').toString('latin1')
  const parts = text.startsWith(kind) ? text.slice(1).split('.') : []
  const numbers = parts.every((part) => /^\d{1,15}$/.test(part)) ? parts.map(Number) : []
  // Decoding ignores stray characters, so only a cursor that encodes back to itself is a real one.
  if (numbers.length !== length || encodeNumbers(kind, numbers) !== cursor) {
    throw new DeckError('invalid-query',
      `cursor: expected the "next" of an earlier page, received ${JSON.stringify(String(cursor).slice(0, 60))}`)
  }
  return numbers
}

/**
 * Every cursor had a next page when it was made. If that page is gone, an empty answer would look like the end of the
 * list. `before`: of decodeCursor; `hasMore`: whether there is anything below it.
 * @throws {DeckError} `cursor-expired`
 */
export function checkKept (before: number, hasMore: () => unknown) {
  if (before === Infinity || hasMore()) return
  throw new DeckError('cursor-expired', 'cursor: the next page has expired; start again without a cursor')
}
