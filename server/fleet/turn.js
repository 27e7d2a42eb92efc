import { formatExactDuration } from '../../public/format.js'
import { isUnderWay, owesReturn } from './rollout.js'

/** @typedef {import('./rollout.js').FleetRollout} FleetRollout */

/**
 * What one member knows of time: by its own monotonic clock alone, since it has itself seen what it counts from. No host's
 * clock is compared with another's.
 * @typedef {object} Seen
 * @property {number} restMs  how long nobody is in a turn, as far as this member has seen
 * @property {(member: string) => number} turnMs  how long that member's turn has been as it is
 */

/**
 * What this member may do next; each by compare-and-set, so that what was seen late is refused.
 * @typedef {{ type: 'take' } | { type: 'hold', reason: string, member: string } | { type: 'wait', ms: number } | { type: 'nothing' }} Next
 *   `take`: its turn begins, or its way back; `wait`: look again then, whatever is seen meanwhile
 */

/** How long a member may leave its turn to itself. */
export const TAKE_WITHIN_MS = 60_000

/** @type {Readonly<Next>} */
const NOTHING = Object.freeze({ type: 'nothing' })

/** @param {FleetRollout} rollout @param {string} member @param {Seen} seen @returns {Next} */
export function nextTurn (rollout, member, seen) {
  if (rollout.state === 'rolling-back') return nextBack(rollout, member, seen)
  if (rollout.state !== 'running') return lateOnes(rollout, member, seen)
  const batch = rollout.batches.find((members) => members.some((each) => isAhead(rollout.turns[each])))
  if (!batch) return NOTHING
  const late = lateOnes(rollout, member, seen)
  if (late.type === 'hold') return late
  const isFirst = batch === rollout.batches[0]
  const hasBegun = batch.some((each) => rollout.turns[each].state !== 'pending')
  const restMs = hasBegun || isFirst ? 0 : rollout.pauseMs - seen.restMs
  if (restMs > 0) return { type: 'wait', ms: restMs }
  if (batch.includes(member) && rollout.turns[member].state === 'pending') return { type: 'take' }
  return soonestOf(late, waitForUntaken(batch.filter((each) => rollout.turns[each].state === 'pending'), member, { ...seen, restMs: seen.restMs - (isFirst ? 0 : rollout.pauseMs) }))
}

/**
 * Who may have something to do now: whoever hears of the change in time reads the document.
 * @param {FleetRollout} rollout @returns {string[]}
 */
export function dueOf (rollout) {
  if (rollout.state === 'running') return (rollout.batches.find((members) => members.some((each) => isAhead(rollout.turns[each]))) ?? []).filter((each) => rollout.turns[each].state === 'pending')
  if (rollout.state !== 'rolling-back' || Object.values(rollout.turns).some(isUnderWay)) return []
  const last = lastOwing(rollout)
  return last ? [last] : []
}

/** The last one first, one at a time. @param {FleetRollout} rollout @param {string} member @param {Seen} seen @returns {Next} */
function nextBack (rollout, member, seen) {
  const late = lateOnes(rollout, member, seen)
  if (late.type === 'hold' || Object.values(rollout.turns).some(isUnderWay)) return late
  const last = lastOwing(rollout)
  if (!last) return NOTHING
  return last === member ? { type: 'take' } : waitForUntaken([last], member, seen)
}

/** @param {FleetRollout} rollout */
function lastOwing (rollout) {
  return rollout.batches.flat().findLast((each) => owesReturn(rollout, rollout.turns[each]))
}

/** Somebody else's turn that takes too long. @param {FleetRollout} rollout @param {string} member @param {Seen} seen @returns {Next} */
function lateOnes (rollout, member, seen) {
  const others = Object.keys(rollout.turns).filter((each) => each !== member && isUnderWay(rollout.turns[each]))
  const late = others.find((each) => seen.turnMs(each) >= rollout.deadlineMs)
  if (late && rollout.state !== 'held') return { type: 'hold', member: late, reason: `${late} has been in its turn for more than ${formatExactDuration(rollout.deadlineMs)}: nobody takes it over` }
  return others.length === 0 ? NOTHING : { type: 'wait', ms: Math.max(0, rollout.deadlineMs - Math.max(...others.map(seen.turnMs))) }
}

/** Whoever could begin and does not. @param {string[]} due @param {string} member @param {Seen} seen @returns {Next} */
function waitForUntaken (due, member, { restMs, turnMs }) {
  const others = due.filter((each) => each !== member)
  if (others.length === 0) return NOTHING
  const waitedMs = Math.min(restMs, ...others.map(turnMs))
  if (waitedMs < TAKE_WITHIN_MS) return { type: 'wait', ms: TAKE_WITHIN_MS - waitedMs }
  return { type: 'hold', member: others[0], reason: `${others[0]} has not begun its turn within ${formatExactDuration(TAKE_WITHIN_MS)}` }
}

/** @param {import('./rollout.js').Turn} turn */
function isAhead (turn) {
  return turn.state === 'pending' || isUnderWay(turn)
}

/** @param {Next} one @param {Next} other @returns {Next} */
function soonestOf (one, other) {
  if (one.type !== 'wait') return other
  return other.type === 'wait' ? { type: 'wait', ms: Math.min(one.ms, other.ms) } : other.type === 'nothing' ? one : other
}
