import { formatDuration } from '../../public/format.ts'
import { kindOf } from './kinds.ts'
import { readOr } from '../dashboard/read-or.ts'
import { toShownEvent, type ShownEvent } from './page-shown-event.ts'
import type { DeckEvent } from './stream.ts'

/** What happened shortly before and after something else. */
type History = Pick<import('../../db/history.ts').History, 'page'>

/** What happened this near to something may belong to it. */
const BEFORE_MS = 2 * 60_000
export const AFTER_MS = 20_000
const MAX_AROUND = 4
const MAX_READ = 100

/**
 * @param subject when it was, its own event, which is left out, and what that tells, which others need not repeat
 * @returns oldest first; nothing without the database, as the page is useful without it
 */
export function eventsAround (history: History,
  { at, id, message }: { at: string, id: number | null,
    message?: string | null }): (ShownEvent & { offset: string, side: 'before' | 'after' })[]
{
  const atMs = Date.parse(at)
  const eventsIn = (since: number, until: number) =>
    readOr(() => history.page({ since, until, limit: MAX_READ }).items, []).filter(matters)
  const since = eventsIn(atMs, atMs + AFTER_MS)
  // What led to it may be told in the same millisecond.
  const isBefore = (each: DeckEvent) => Date.parse(each.at) < atMs || (id !== null && each.at === at && each.id < id)
  const before = [...since.filter(isBefore), ...eventsIn(atMs - BEFORE_MS, atMs)].slice(0, MAX_AROUND)
  const after = since.filter((each) => !isBefore(each)).slice(-MAX_AROUND)
  return [...after, ...before].reverse().filter((each) => each.id !== id).map((each) => {
    const shown = toShownEvent(each)
    return { ...shown, ...offsetOf(Date.parse(each.at) - atMs, isBefore(each)),
      ...(message && each.message?.includes(message) && { sentence: shown.kind.label }) }
  })
}

/** Steps of something that has an event of its own cause nothing, and a new crash repeats the exit before it. */
function matters (event: DeckEvent) {
  const { weight, isConsequence } = kindOf(event)
  return weight !== 'routine' && !isConsequence
}

/** `ms`: from the subject to something else. Returns `12 s before`, `8 ms after`. */
function offsetOf (ms: number, isBefore: boolean) {
  const apart = Math.abs(ms)
  const side = isBefore ? 'before' as const : 'after' as const
  if (apart === 0) return { side, offset: 'at the same moment' }
  return { side, offset: `${apart < 1000 ? `${apart} ms` : formatDuration(apart)} ${side}` }
}
