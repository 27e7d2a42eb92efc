import { DeckError } from '../errors.ts'
import { crashText, isHeldByCrash, isUnderWay, nextState, owesReturn, STATES, type Crash, type FleetRollout,
  type Moment, type Move, type Turn } from './document.ts'

/**
 * A rollout of one app over hosts is one document, changed by compare-and-set alone. Each change here is a function
 * from a document to the next one; it throws if the change is not possible, and then nothing is written.
 */
/** `at`: by the clock of the member that writes, ISO 8601 */
type Operator = { at: string, actor: string }

const MAX_MOMENTS = 200
const MAX_REASON_CHARS = 500

const PENDING: Readonly<Turn> = Object.freeze({ state: 'pending', boot: null, rollout: null, from: null, to: null,
  startedAt: null, finishedAt: null, reason: null, crash: null, isLate: false })

/**
 * `silent`: members that it does not wait for, though they may still be in a turn of the rollout before.
 * @throws {DeckError} rollout-running
 */
export function startRollout (before: FleetRollout | null,
  { at, ...wanted }: Operator & Pick<FleetRollout,
    'id' | 'uid' | 'app' | 'kind' | 'source' | 'batches' | 'pauseMs' | 'deadlineMs' | 'onFailure' | 'absent' | 'note'>,
  silent: string[] = []): FleetRollout
{
  if (before) checkOver(before, silent)
  const turns = Object.fromEntries(wanted.batches.flat().map((member) => [member, { ...PENDING }]))
  return addMoments({ ...wanted, state: 'running', turns, reason: null, startedAt: at, finishedAt: null, timeline: [] },
    { at, type: 'started', actor: wanted.actor, message: wanted.note })
}

/** @throws {DeckError} rollout-running */
function checkOver ({ id, kind, actor, state, turns }: FleetRollout, silent: string[]) {
  const details = { rollout: id }
  if (!STATES[state].done)
    throw new DeckError('rollout-running', `Rollout ${id} of the fleet (${kind} by ${actor}) is ${state}`, { details })
  const busy = Object.keys(turns).filter((member) => isUnderWay(turns[member]) && !silent.includes(member))
  if (busy.length === 0) return
  const who = busy.length === 1 ? `${busy[0]} is still in its turn` : `${busy.join(', ')} are still in their turns`
  throw new DeckError('rollout-running', `Rollout ${id} of the fleet is ${state}, and ${who}`, { details })
}

/** @throws {DeckError} rollout-ended, rollout-state */
export function steerRollout (rollout: FleetRollout, order: 'pause' | 'resume' | 'abort',
  { at, actor }: Operator): FleetRollout
{
  const state = nextState(rollout.state, order)
  if (!state) {
    const isOver = Object.keys(STATES[rollout.state].moves).length === 0
    const message = `Rollout ${rollout.id} of the fleet is ${rollout.state}: ${order} is not possible`
    throw new DeckError(isOver ? 'rollout-ended' : 'rollout-state', message, { details: { rollout: rollout.id } })
  }
  const reason = order === 'abort' ? `aborted by ${actor}` : order === 'resume' ? null : rollout.reason
  return settleRollout(addMoments({ ...rollout, state, reason, finishedAt: null }, { at, type: PAST[order], actor }),
    at)
}

const PAST = Object.freeze({ pause: 'paused', resume: 'resumed', abort: 'aborted' })

/** No turn begins until an operator decides. */
export function holdRollout (rollout: FleetRollout,
  { at, reason, member = null }: { at: string, reason: string, member?: string | null }): FleetRollout
{
  const state = nextState(rollout.state, 'hold')
  if (!state || rollout.state === 'held') return rollout
  return addMoments({ ...rollout, state, reason: shortenText(reason), finishedAt: at }, { at, type: 'held', member,
    message: reason })
}

/** An operator continues without the members that are silent in their turns. Nobody knows what these have done. */
export function giveUp (rollout: FleetRollout, members: string[], { at, actor }: Operator): FleetRollout {
  const given = members.filter((member) => isUnderWay(rollout.turns[member]))
  if (given.length === 0) return rollout
  return settleRollout(
    endTurns(rollout, given, { at, state: 'failed', rollout: null, reason: `given up by ${actor}: it did not answer` }),
    at
  )
}

/** A member begins its turn, or begins to roll back. */
export function takeTurn (rollout: FleetRollout, member: string,
  { at, boot, from = null }: { at: string, boot: string, from?: string | null }): FleetRollout
{
  if (rollout.turns[member].state === 'pending') {
    return addMoments(withTurns(rollout, [member], { state: 'running', from, startedAt: at, finishedAt: null, boot }), {
      at,
      type: 'turn-started',
      member
    })
  }
  return addMoments(withTurns(rollout, [member], { state: 'reverting', finishedAt: null, boot }), { at,
    type: 'turn-reverting', member })
}

/** Writes again that a member is in its turn, after NATS has lost it. */
export function restoreTurn (rollout: FleetRollout, member: string,
  turn: Pick<Turn, 'boot' | 'rollout' | 'from'> & { state: 'running' | 'reverting' }): FleetRollout
{
  return withTurns(rollout, [member], { ...turn, finishedAt: null })
}

/** Notes the result of a member's turn. If it comes after the others have given it up, it changes nothing else. */
export function finishTurn (rollout: FleetRollout, member: string,
  { at, ...result }: { at: string, state: 'succeeded' | 'failed' | 'reverted', rollout?: number | null,
    to?: string | null, reason?: string | null }): FleetRollout
{
  const { state: before } = rollout.turns[member]
  const isOver = !isUnderWay(rollout.turns[member]) || isSettled(rollout)
  const ended = endTurns(rollout, [member], { at, ...result, isLate: isOver && !isHeldByAnother(rollout, member) })
  // A deploy that fails while all roll back leaves its member on the old release, so nothing is lost.
  const isOnItsWay = rollout.state === 'rolling-back' && before === 'running'
  return result.state !== 'failed' || isOver || isOnItsWay
    ? settleRollout(ended, at)
    : stopFor(ended, member, { at, reason: result.reason })
}

/** Tells whether a further failure changes nothing. One after a hold by a crash is the first failure. */
function isSettled (rollout: FleetRollout) {
  return STATES[rollout.state].done && !isHeldByCrash(rollout)
}

/** Another member failed, so nobody has given this turn up. */
function isHeldByAnother ({ state, turns, timeline }: FleetRollout, member: string) {
  return state === 'held' && isUnderWay(turns[member]) &&
    timeline.findLast(({ type }) => type === 'held')?.member !== member
}

/**
 * The guard of a finished member has rolled back, so its turn has failed after all. A rollout that is over only notes
 * it.
 */
export function undoTurn (rollout: FleetRollout, member: string,
  { at, reason }: { at: string, reason: string }): FleetRollout
{
  const undone = endTurns(rollout, [member], { at, state: 'failed', reason })
  return isSettled(rollout) || rollout.state === 'rolling-back'
    ? settleRollout(undone, at)
    : stopFor(undone, member, { at, reason })
}

/**
 * The new release of a finished member has crashed as no earlier one had. Its host serves on, so a person decides whether
 * the others get that release too; nobody is asked twice about one fault.
 */
export function noteCrash (rollout: FleetRollout, member: string,
  { at, crash }: { at: string, crash: Crash }): FleetRollout
{
  const isKnown = Object.values(rollout.turns).some((turn) => turn.crash?.fingerprint === crash.fingerprint)
  const noted = addMoments(withTurns(rollout, [member], { crash }), { at, type: 'turn-crashed', member,
    message: crash.text })
  return isKnown ? noted : holdRollout(noted, { at, reason: crashText(member, noted.turns[member]), member })
}

/** After a failure the rollout is held or rolls back, as `onFailure` says. */
function stopFor (rollout: FleetRollout, member: string,
  { at, reason }: { at: string, reason?: string | null }): FleetRollout
{
  const move = rollout.state !== 'rolling-back' && rollout.onFailure === 'rollback' && rollout.kind !== 'restart'
    ? 'roll-back'
    : 'hold'
  const state = nextState(rollout.state, move)
  if (!state) return rollout
  const message = shortenText(`${member}: ${reason ?? 'its turn failed'}`)
  const stopped = { ...rollout, state, reason: message, finishedAt: move === 'hold' ? at : null }
  return settleRollout(addMoments(stopped, { at, type: state, member, message }), at)
}

/** Ends the rollout once no member has anything left to do. */
function settleRollout (rollout: FleetRollout, at: string): FleetRollout {
  const turns = Object.values(rollout.turns)
  if (turns.some(isUnderWay)) return rollout
  if (rollout.state === 'rolling-back') {
    return turns.some((turn) => owesReturn(rollout, turn))
      ? rollout
      : endRollout(skipPendingTurns(rollout), 'be-back', at)
  }
  if (rollout.state !== 'running' && rollout.state !== 'paused') return rollout
  if (turns.some(({ state }) => state === 'pending')) return rollout
  const reasons = [membersText(rollout, 'failed', 'failed'), membersText(rollout, 'reverted', 'rolled back')].filter((
    text
  ) => text !== null)
  if (reasons.length === 0) return endRollout(rollout, 'succeed', at)
  return endRollout({ ...rollout, reason: shortenText(reasons.join('; ')) }, 'fail', at)
}

/** Null: no turn is in this state */
function membersText ({ turns }: FleetRollout, state: Turn['state'], word: string): string | null {
  const all = Object.keys(turns)
  const members = all.filter((member) => turns[member].state === state)
  return members.length === 0 ? null : `${members.length} of ${all.length} ${word}: ${members.join(', ')}`
}

function endRollout (rollout: FleetRollout, move: Move, at: string): FleetRollout {
  const state = nextState(rollout.state, move)
  return state
    ? addMoments({ ...rollout, state, finishedAt: at }, { at, type: state, message: rollout.reason })
    : rollout
}

function skipPendingTurns (rollout: FleetRollout): FleetRollout {
  return withTurns(rollout, Object.keys(rollout.turns).filter((member) => rollout.turns[member].state === 'pending'), {
    state: 'skipped'
  })
}

function endTurns (rollout: FleetRollout, members: string[],
  { at, ...result }: { at: string } & Partial<Turn>): FleetRollout
{
  const reason = result.reason ? shortenText(result.reason) : null
  const message = result.isLate ? `${reason ?? ''} (late)`.trim() : reason
  const moments = members.map((member) => ({ at, type: `turn-${result.state}`, member, message }))
  return addMoments(withTurns(rollout, members, { ...result, reason, finishedAt: at }), ...moments)
}

function withTurns (rollout: FleetRollout, members: string[], changes: Partial<Turn>): FleetRollout {
  const changed = Object.fromEntries(members.map((member) => [member, { ...rollout.turns[member], ...changes }]))
  return { ...rollout, turns: { ...rollout.turns, ...changed } }
}

function addMoments (rollout: FleetRollout,
  ...moments: (Partial<Moment> & { at: string, type: string })[]): FleetRollout
{
  const told = moments.map(({ at, type, member = null, actor = null, message = null }) => {
    return { at, type, member, actor, message: message && shortenText(message) }
  })
  return { ...rollout, timeline: [...rollout.timeline, ...told].slice(-MAX_MOMENTS) }
}

function shortenText (text: string) {
  return text.length > MAX_REASON_CHARS ? `${text.slice(0, MAX_REASON_CHARS - 1)}…` : text
}
