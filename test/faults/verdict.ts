import type { Exchange, Tally } from './clients.ts'
import type { Ledger } from './ledger.ts'

/** What became of one load in one fault. */
export type Cell = {
  requests: number,
  failed: number,
  /** of these: nobody else could have answered them */
  excusable: number,
  /** of these: no answer came at all */
  hung: number,
  /** requests that were begun more than once, though asked once */
  twice: number,
  /** of what is not clean */
  evidence: string[]
}
/** What the fault itself has taken away. */
export type Damage = {
  /** when a process was hit, and for how long it answers what it has all the same, by its pid */
  lost: Map<number, { at: number, graceMs: number }>,
  /**
   * when the deck was told to stop: from then on a connection may be refused, or reset before
   * anybody has accepted it, as by plain Node, and a long-lived one ends in the way of its protocol
   */
  stoppedAt?: number
}

const EVIDENCE = 5

export function isClean ({ requests, failed, excusable, hung, twice }: Cell) {
  return requests > 0 && failed === excusable && hung === 0 && twice === 0
}

export function judge ({ name, requests, failures }: Tally, ledger: Pick<Ledger, 'begun'>, damage: Damage): Cell {
  const unexcused = failures.filter((failure) => failure.isHung || !isExcusable(failure, damage))
  const twice = [...ledger.begun].filter(([id, pids]) => id.startsWith(`${name}-`) && pids.length > 1)
  return { requests, failed: failures.length, excusable: failures.length - unexcused.length,
    hung: failures.filter(({ isHung }) => isHung).length, twice: twice.length,
    evidence: [...(requests === 0 ? ['nothing was asked'] : []),
      ...unexcused.slice(0, EVIDENCE).map((failure) => describe(failure, ledger)),
      ...twice.slice(0, EVIDENCE).map(([id, pids]) => `${id}: begun by ${pids.join(' and ')}`)] }
}

/** What a process has accepted nobody else can answer. */
function isExcusable (failure: Exchange, { lost, stoppedAt = Infinity }: Damage) {
  if (failure.failure === 'ECONNREFUSED') return failure.endedAt >= stoppedAt
  const { owner, isIdle, isToldToLeave } = failure
  if ((owner === undefined || isIdle || isToldToLeave) && failure.endedAt >= stoppedAt) return true
  // Accepted in the very instant, before the app could know of it.
  if (owner === undefined) return [...lost.values()].some(({ at }) => failure.startedAt <= at && at <= failure.endedAt)
  const blow = lost.get(owner)
  return blow !== undefined && failure.endedAt >= blow.at + (isIdle || isToldToLeave ? 0 : blow.graceMs)
}

function describe (failure: Exchange, ledger: Pick<Ledger, 'begun'>) {
  const { id, startedAt, endedAt, owner = 'unknown' } = failure
  const began = ledger.begun.has(id) ? 'begun' : 'not begun'
  return `${id}: ${failure.failure} after ${Math.round(endedAt - startedAt)} ms, at ${
    Math.round(endedAt)
  }, ${began}, process ${owner}`
}
