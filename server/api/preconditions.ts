import { z } from 'zod'
import { attempt, DeckError } from '../errors.ts'
import type { DeckEvent } from '../events/stream.ts'
import type { History } from '../../db/history.ts'

/** If two people change the same thing, the second one is refused until they have seen the first change. */
export type Past = Pick<History, 'page'>

/** RFC 9110, 8.8.3: all tags here are strong. */
const TAG = /(?:W\/)?"[\x21\x23-\x7e]*"/g

export const IF_MATCH = z.string().describe('the `ETag` of the state that you have seen, or `*` for any')

/** `state`: of what is answered. Returns its ETag. */
export function tagOf (state: string | number): string {
  return `"${state}"`
}

/**
 * `wanted`: If-Match; `now`: the state of what there is, which a form gets to send it if its reader confirms; `change`: who has changed it, as a sentence without its point.
 * @throws {DeckError} precondition-required, precondition-failed
 */
export function checkMatch (wanted: string | undefined, now: string | number,
  { isRequired, change }: { isRequired: boolean, change?: () => string })
{
  if (wanted === undefined && isRequired)
    throw new DeckError('precondition-required', 'If-Match: expected the ETag of a GET, received nothing')
  if (wanted === undefined || wanted.trim() === '*' || wanted.match(TAG)?.includes(tagOf(now))) return
  const why = change?.()
  throw new DeckError('precondition-failed',
    `${why === undefined ? '' : `${why}. `}If-Match: expected ${tagOf(now)}, received ${
      JSON.stringify(wanted.slice(0, 100))
    }; read the current state first`, { details: { now: String(now), ...(why !== undefined && { change: why }) } })
}

/** `types`: of events. Returns the newest of them; null: the history has none, or is away. */
export function lastOf (history: Past, types: readonly string[]): DeckEvent | null {
  return newestOf(history, types, () => true, 1)
}

/**
 * The same, of one thing among several. Returns null: it is not among the last of these types, or the history is away.
 */
export function newestOf (history: Past, types: readonly string[], isAbout: (event: DeckEvent) => boolean,
  limit: number = 50): DeckEvent | null
{
  // The refusal is right without a name, too.
  return attempt(() => history.page({ type: [...types], limit }).items.find(isAbout) ?? null)
}
