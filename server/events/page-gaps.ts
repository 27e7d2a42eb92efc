import { readOr } from '../dashboard/read-or.ts'
import type { History } from '../../db/history.ts'
import type { Status } from '../api/cluster.ts'

/**
 * Where the history is incomplete: what waits until it can be written again, and what was lost. What has only waited is
 * in the history by now, and needs no word.
 */
type State = Status['history']
/** `since`…`at`: while the history could not be written; `from`…`to`: the times of what is lost */
export type Gap = { member?: string, at: string, since: string | null, lost: number, from: string, to: string }
export type Unwritten = Pick<State, 'problem' | 'since'> & { member?: string, lost?: number, isCopyShown?: boolean }
/** the times that a page shows, in ms since the epoch */
type Span = { fromMs: number, toMs: number }
/** `isCopyShown`: events that wait are shown all the same; `member`: whose it is, of several hosts */
export type Gaps = { unwritten: Unwritten[], lost: Gap[], isOfCrashes: boolean }

/** More outages with a loss than this, one after the other, are told by their events alone. */
const MAX_OUTAGES = 20
export const NO_GAPS: Gaps = Object.freeze({ unwritten: [], lost: [], isOfCrashes: false })

/** `shown`: what the page shows */
export function historyGaps (
  { history, deck }: { history: Pick<History, 'page'> & { away?: string | null },
    deck: { snapshot: () => { history?: State } } },
  { since, until, isOfCrashes = false }: { since?: string | number, until?: string | number, isOfCrashes?: boolean } =
    {}
): Gaps {
  const snapshot = deck.snapshot()
  const state = snapshot.history
  const span = spanOf({ since, until })
  const isConcerned = state && state.problem !== null && showsUnwritten(span, state)
  return { isOfCrashes,
    unwritten: isConcerned ? [{ ...state, isCopyShown: !isUnwritten(history, snapshot) && !isOfCrashes }] : [],
    lost: readOr(() => lossesOf(history, lossEvent(isOfCrashes)), []).filter((gap) => showsLoss(span, gap)) }
}

export function isUnwritten (history: { away?: string | null }, snapshot: { history?: State }) {
  return snapshot.history !== undefined && snapshot.history.problem !== null && typeof history.away !== 'string'
}

export function lossEvent (isOfCrashes: boolean): string {
  return isOfCrashes ? 'crash.records-lost' : 'history.recovered'
}

export function spanOf (
  { since = -Infinity, until = Infinity }: { since?: string | number, until?: string | number }
): Span {
  return { fromMs: toMs(since), toMs: toMs(until) }
}

export function showsLoss (span: Span, gap: Pick<Gap, 'from' | 'to'>) {
  return Date.parse(gap.to) >= span.fromMs && Date.parse(gap.from) <= span.toMs
}

/** Whether a page shows times since a history cannot be written, of which it may lack events. */
export function showsUnwritten (span: Span, { since }: { since: string | null }) {
  return !(span.toMs < Date.parse(since ?? ''))
}

function toMs (time: string | number) {
  return typeof time === 'number' ? time : Date.parse(time)
}

/** @returns newest first */
function lossesOf (history: Pick<History, 'page'>, type: string): Gap[] {
  return history.page({ type, limit: MAX_OUTAGES }).items.flatMap(({ at, detail }) => {
    const { lost = 0, from, since = null, to = at } = detail ?? {}
    return lost && from ? [{ at, since, lost, from, to }] : []
  })
}
