import { formatExactDuration } from '../../public/format.ts'
import { isUnderWay, owesReturn, type FleetRollout, type Turn } from './document.ts'

/** Durations that one member has measured by its own monotonic clock. The clocks of hosts are never compared. */
type Seen = {
  /** how long no member has been in its turn */
  restMs: number,
  /** how long the turn of that member has not changed */
  turnMs: (member: string) => number
}

/**
 * What this member may do next. It does it by compare-and-set, so NATS refuses it if the document has changed.
 * `take`: begin its turn, or roll back; `wait`: look again after this time at the latest
 */
type Next =
  | { type: 'take' }
  | { type: 'hold', reason: string, member: string }
  | { type: 'wait', ms: number }
  | { type: 'nothing' }

/** A member has to begin its turn within this time. */
export const TAKE_WITHIN_MS = 60_000

const NOTHING: Readonly<Next> = Object.freeze({ type: 'nothing' })

export function nextTurn (rollout: FleetRollout, member: string, seen: Seen): Next {
  if (rollout.state === 'rolling-back') return nextBack(rollout, member, seen)
  if (rollout.state !== 'running') return lateOnes(rollout, member, seen)
  const batch = currentBatch(rollout)
  if (!batch) return NOTHING
  const late = lateOnes(rollout, member, seen)
  if (late.type === 'hold') return late
  const isFirst = batch === rollout.batches[0]
  const hasBegun = batch.some((each) => rollout.turns[each].state !== 'pending')
  const restMs = hasBegun || isFirst ? 0 : rollout.pauseMs - seen.restMs
  if (restMs > 0) return { type: 'wait', ms: restMs }
  const due = batch.filter((each) => rollout.turns[each].state === 'pending')
  if (due.includes(member)) return { type: 'take' }
  return soonestOf(late,
    waitForUntaken(due, member, { ...seen, restMs: seen.restMs - (isFirst ? 0 : rollout.pauseMs) }))
}

/** The members that may have something to do now, and have to read the document for that. */
export function dueOf (rollout: FleetRollout): string[] {
  if (rollout.state === 'running')
    return (currentBatch(rollout) ?? []).filter((each) => rollout.turns[each].state === 'pending')
  if (rollout.state !== 'rolling-back' || Object.values(rollout.turns).some(isUnderWay)) return []
  const last = lastOwing(rollout)
  return last ? [last] : []
}

function currentBatch ({ batches, turns }: FleetRollout): string[] | undefined {
  return batches.find((members) => members.some((each) => isAhead(turns[each])))
}

/** Members roll back one at a time, the last one first. */
function nextBack (rollout: FleetRollout, member: string, seen: Seen): Next {
  const late = lateOnes(rollout, member, seen)
  if (late.type === 'hold' || Object.values(rollout.turns).some(isUnderWay)) return late
  const last = lastOwing(rollout)
  if (!last) return NOTHING
  return last === member ? { type: 'take' } : waitForUntaken([last], member, seen)
}

function lastOwing (rollout: FleetRollout) {
  return rollout.batches.flat().findLast((each) => owesReturn(rollout, rollout.turns[each]))
}

/** Holds the rollout if the turn of another member takes too long. */
function lateOnes (rollout: FleetRollout, member: string, seen: Seen): Next {
  const others = Object.keys(rollout.turns).filter((each) => each !== member && isUnderWay(rollout.turns[each]))
  const late = others.find((each) => seen.turnMs(each) >= rollout.deadlineMs)
  if (late && rollout.state !== 'held') {
    return { type: 'hold', member: late,
      reason: `${late} has not finished its turn within ${formatExactDuration(rollout.deadlineMs)}` }
  }
  return others.length === 0
    ? NOTHING
    : { type: 'wait', ms: Math.max(0, rollout.deadlineMs - Math.max(...others.map(seen.turnMs))) }
}

/** Holds the rollout if a member does not begin its turn. */
function waitForUntaken (due: string[], member: string, { restMs, turnMs }: Seen): Next {
  const others = due.filter((each) => each !== member)
  if (others.length === 0) return NOTHING
  const waitedMs = Math.min(restMs, ...others.map(turnMs))
  if (waitedMs < TAKE_WITHIN_MS) return { type: 'wait', ms: TAKE_WITHIN_MS - waitedMs }
  return { type: 'hold', member: others[0],
    reason: `${others[0]} has not begun its turn within ${formatExactDuration(TAKE_WITHIN_MS)}` }
}

function isAhead (turn: Turn) {
  return turn.state === 'pending' || isUnderWay(turn)
}

function soonestOf (one: Next, other: Next): Next {
  if (one.type !== 'wait') return other
  if (other.type === 'wait') return { type: 'wait', ms: Math.min(one.ms, other.ms) }
  return other.type === 'nothing' ? one : other
}
