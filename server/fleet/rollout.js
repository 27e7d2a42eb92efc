import { DeckError } from '../errors.js'
import { nextState, STATES } from './states.js'

/**
 * A rollout of one app over hosts is one document, changed by compare-and-set alone. Each change here is a function from a document to
 * the next one; it throws if the change is not possible, and then nothing is written.
 * @typedef {'restart' | 'deploy' | 'rollback'} Kind
 * @typedef {'pending' | 'running' | 'succeeded' | 'failed' | 'reverting' | 'reverted' | 'skipped'} TurnState
 *
 * What one member does in it.
 * @typedef {object} Turn
 * @property {TurnState} state
 * @property {string | null} boot  the master that took it
 * @property {number | null} rollout  its own
 * @property {string | null} from  the release that it rolls back to
 * @property {string | null} to
 * @property {string | null} startedAt  by the member's clock
 * @property {string | null} finishedAt  by the member's clock
 * @property {string | null} reason  why it failed
 * @property {boolean} isLate  it ended after the others had given it up
 *
 * @typedef {object} FleetRollout
 * @property {number} id
 * @property {string} uid  never used twice, while a NATS server that loses data may give an id twice
 * @property {string} app
 * @property {Kind} kind
 * @property {{ path?: string, digest?: string, release?: string }} source  what each member deploys
 * @property {string[][]} batches  members, in the order of their turns: those of one batch are in their turns at the same time
 * @property {number} pauseMs  between two batches
 * @property {number} deadlineMs  how long a turn may take
 * @property {'hold' | 'rollback'} onFailure
 * @property {import('./states.js').FleetState} state
 * @property {Record<string, Turn>} turns  by member
 * @property {string[]} absent  members that were silent when it began
 * @property {string} actor
 * @property {string | null} note
 * @property {string | null} reason  why it was held, or failed
 * @property {string} startedAt
 * @property {string | null} finishedAt
 * @property {Moment[]} timeline  oldest first, the last 200
 *
 * @typedef {{ at: string, type: string, member: string | null, actor: string | null, message: string | null }} Moment
 * @typedef {{ at: string, actor: string }} Operator  `at`: by the clock of the member that writes, ISO 8601
 */

/** A higher id is refused: after the highest safe integer no member could start a rollout. */
export const MAX_ID = 1_000_000_000
const MAX_MOMENTS = 200
const MAX_REASON_CHARS = 500

/** @type {Readonly<Turn>} */
const PENDING = Object.freeze({
  state: 'pending', boot: null, rollout: null, from: null, to: null, startedAt: null, finishedAt: null, reason: null, isLate: false
})

/**
 * @param {FleetRollout | null} before
 * @param {Operator & Pick<FleetRollout, 'id' | 'uid' | 'app' | 'kind' | 'source' | 'batches' | 'pauseMs' | 'deadlineMs' | 'onFailure' | 'absent' | 'note'>} wanted
 * @param {string[]} [silent]  members that it does not wait for, though they may still be in a turn of the rollout before
 * @returns {FleetRollout}
 * @throws {DeckError} rollout-running
 */
export function startRollout (before, { at, ...wanted }, silent = []) {
  if (before) checkOver(before, silent)
  const turns = Object.fromEntries(wanted.batches.flat().map((member) => [member, { ...PENDING }]))
  return addMoments(
    { ...wanted, state: 'running', turns, reason: null, startedAt: at, finishedAt: null, timeline: [] },
    { at, type: 'started', actor: wanted.actor, message: wanted.note }
  )
}

/** @param {FleetRollout} rollout @param {string[]} silent @throws {DeckError} rollout-running */
function checkOver ({ id, kind, actor, state, turns }, silent) {
  const details = { rollout: id }
  if (!STATES[state].done) throw new DeckError('rollout-running', `Rollout ${id} of the fleet (${kind} by ${actor}) is ${state}`, { details })
  const busy = Object.keys(turns).filter((member) => isUnderWay(turns[member]) && !silent.includes(member))
  if (busy.length === 0) return
  const who = busy.length === 1 ? `${busy[0]} is still in its turn` : `${busy.join(', ')} are still in their turns`
  throw new DeckError('rollout-running', `Rollout ${id} of the fleet is ${state}, and ${who}`, { details })
}

/**
 * @param {FleetRollout} rollout @param {'pause' | 'resume' | 'abort'} order @param {Operator} by
 * @returns {FleetRollout}
 * @throws {DeckError} rollout-ended, rollout-state
 */
export function steerRollout (rollout, order, { at, actor }) {
  const state = nextState(rollout.state, order)
  if (!state) {
    const isOver = Object.keys(STATES[rollout.state].moves).length === 0
    const message = `Rollout ${rollout.id} of the fleet is ${rollout.state}: ${order} is not possible`
    throw new DeckError(isOver ? 'rollout-ended' : 'rollout-state', message, { details: { rollout: rollout.id } })
  }
  const reason = order === 'abort' ? `aborted by ${actor}` : order === 'resume' ? null : rollout.reason
  return settleRollout(addMoments({ ...rollout, state, reason, finishedAt: null }, { at, type: PAST[order], actor }), at)
}

const PAST = Object.freeze({ pause: 'paused', resume: 'resumed', abort: 'aborted' })

/**
 * No turn begins until an operator decides.
 * @param {FleetRollout} rollout @param {{ at: string, reason: string, member?: string | null }} why
 * @returns {FleetRollout}
 */
export function holdRollout (rollout, { at, reason, member = null }) {
  const state = nextState(rollout.state, 'hold')
  if (!state || rollout.state === 'held') return rollout
  return addMoments({ ...rollout, state, reason: shortenText(reason), finishedAt: at }, { at, type: 'held', member, message: reason })
}

/**
 * An operator continues without the members that are silent in their turns. Nobody knows what these have done.
 * @param {FleetRollout} rollout @param {string[]} members @param {Operator} by
 * @returns {FleetRollout}
 */
export function giveUp (rollout, members, { at, actor }) {
  const given = members.filter((member) => isUnderWay(rollout.turns[member]))
  if (given.length === 0) return rollout
  return settleRollout(endTurns(rollout, given, { at, state: 'failed', rollout: null, reason: `given up by ${actor}: it did not answer` }), at)
}

/**
 * A member begins its turn, or begins to roll back.
 * @param {FleetRollout} rollout @param {string} member @param {{ at: string, boot: string, from?: string | null }} by
 * @returns {FleetRollout}
 */
export function takeTurn (rollout, member, { at, boot, from = null }) {
  if (rollout.turns[member].state === 'pending') {
    return addMoments(withTurns(rollout, [member], { state: 'running', from, startedAt: at, finishedAt: null, boot }), { at, type: 'turn-started', member })
  }
  return addMoments(withTurns(rollout, [member], { state: 'reverting', finishedAt: null, boot }), { at, type: 'turn-reverting', member })
}

/**
 * Writes again that a member is in its turn, after NATS has lost it.
 * @param {FleetRollout} rollout @param {string} member @param {Pick<Turn, 'boot' | 'rollout' | 'from'> & { state: 'running' | 'reverting' }} turn
 * @returns {FleetRollout}
 */
export function restoreTurn (rollout, member, turn) {
  return withTurns(rollout, [member], { ...turn, finishedAt: null })
}

/**
 * Notes the result of a member's turn. If it comes after the others have given it up, it changes nothing else.
 * @param {FleetRollout} rollout @param {string} member
 * @param {{ at: string, state: 'succeeded' | 'failed' | 'reverted', rollout?: number | null, to?: string | null, reason?: string | null }} result
 * @returns {FleetRollout}
 */
export function finishTurn (rollout, member, { at, ...result }) {
  const { state: before } = rollout.turns[member]
  const isOver = !isUnderWay(rollout.turns[member]) || STATES[rollout.state].done
  const ended = endTurns(rollout, [member], { at, ...result, isLate: isOver && !isHeldByAnother(rollout, member) })
  // A deploy that fails while all roll back leaves its member on the old release, so nothing is lost.
  const isOnItsWay = rollout.state === 'rolling-back' && before === 'running'
  return result.state !== 'failed' || isOver || isOnItsWay ? settleRollout(ended, at) : stopFor(ended, member, { at, reason: result.reason })
}

/** Another member failed, so nobody has given this turn up. @param {FleetRollout} rollout @param {string} member */
function isHeldByAnother ({ state, turns, timeline }, member) {
  return state === 'held' && isUnderWay(turns[member]) && timeline.findLast(({ type }) => type === 'held')?.member !== member
}

/**
 * The guard of a finished member has rolled back, so its turn has failed after all. A rollout that is over only notes it.
 * @param {FleetRollout} rollout @param {string} member @param {{ at: string, reason: string }} why
 * @returns {FleetRollout}
 */
export function undoTurn (rollout, member, { at, reason }) {
  const undone = endTurns(rollout, [member], { at, state: 'failed', reason })
  return STATES[rollout.state].done || rollout.state === 'rolling-back' ? settleRollout(undone, at) : stopFor(undone, member, { at, reason })
}

/**
 * After a failure the rollout is held or rolls back, as `onFailure` says.
 * @param {FleetRollout} rollout @param {string} member @param {{ at: string, reason?: string | null }} why @returns {FleetRollout}
 */
function stopFor (rollout, member, { at, reason }) {
  const move = rollout.state !== 'rolling-back' && rollout.onFailure === 'rollback' && rollout.kind !== 'restart' ? 'roll-back' : 'hold'
  const state = nextState(rollout.state, move)
  if (!state) return rollout
  const message = shortenText(`${member}: ${reason ?? 'its turn failed'}`)
  const stopped = { ...rollout, state, reason: message, finishedAt: move === 'hold' ? at : null }
  return settleRollout(addMoments(stopped, { at, type: state, member, message }), at)
}

/** Ends the rollout once no member has anything left to do. @param {FleetRollout} rollout @param {string} at @returns {FleetRollout} */
function settleRollout (rollout, at) {
  const turns = Object.values(rollout.turns)
  if (turns.some(isUnderWay)) return rollout
  if (rollout.state === 'rolling-back') {
    return turns.some((turn) => owesReturn(rollout, turn)) ? rollout : endRollout(skipPendingTurns(rollout), 'be-back', at)
  }
  if (rollout.state !== 'running' && rollout.state !== 'paused') return rollout
  if (turns.some(({ state }) => state === 'pending')) return rollout
  const reasons = [membersText(rollout, 'failed', 'failed'), membersText(rollout, 'reverted', 'rolled back')].filter((text) => text !== null)
  if (reasons.length === 0) return endRollout(rollout, 'succeed', at)
  return endRollout({ ...rollout, reason: shortenText(reasons.join('; ')) }, 'fail', at)
}

/** @param {FleetRollout} rollout @param {TurnState} state @param {string} word @returns {string | null} null: no turn is in this state */
function membersText ({ turns }, state, word) {
  const all = Object.keys(turns)
  const members = all.filter((member) => turns[member].state === state)
  return members.length === 0 ? null : `${members.length} of ${all.length} ${word}: ${members.join(', ')}`
}

/** @param {FleetRollout} rollout @param {import('./states.js').Move} move @param {string} at @returns {FleetRollout} */
function endRollout (rollout, move, at) {
  const state = nextState(rollout.state, move)
  return state ? addMoments({ ...rollout, state, finishedAt: at }, { at, type: state, message: rollout.reason }) : rollout
}

/** @param {FleetRollout} rollout @returns {FleetRollout} */
function skipPendingTurns (rollout) {
  return withTurns(rollout, Object.keys(rollout.turns).filter((member) => rollout.turns[member].state === 'pending'), { state: 'skipped' })
}

/** @param {FleetRollout} rollout @param {Turn} turn @returns {boolean} whether this member has to roll back when all do */
export function owesReturn ({ kind }, { state }) {
  return kind !== 'restart' && state === 'succeeded'
}

/** @param {Turn} turn */
export function isUnderWay ({ state }) {
  return state === 'running' || state === 'reverting'
}

/** @param {FleetRollout} rollout @param {string[]} members @param {{ at: string } & Partial<Turn>} result @returns {FleetRollout} */
function endTurns (rollout, members, { at, ...result }) {
  const reason = result.reason ? shortenText(result.reason) : null
  const message = result.isLate ? `${reason ?? ''} (late)`.trim() : reason
  const moments = members.map((member) => ({ at, type: `turn-${result.state}`, member, message }))
  return addMoments(withTurns(rollout, members, { ...result, reason, finishedAt: at }), ...moments)
}

/** @param {FleetRollout} rollout @param {string[]} members @param {Partial<Turn>} changes @returns {FleetRollout} */
function withTurns (rollout, members, changes) {
  const changed = Object.fromEntries(members.map((member) => [member, { ...rollout.turns[member], ...changes }]))
  return { ...rollout, turns: { ...rollout.turns, ...changed } }
}

/** @param {FleetRollout} rollout @param {(Partial<Moment> & { at: string, type: string })[]} moments @returns {FleetRollout} */
function addMoments (rollout, ...moments) {
  const told = moments.map(({ at, type, member = null, actor = null, message = null }) => {
    return { at, type, member, actor, message: message && shortenText(message) }
  })
  return { ...rollout, timeline: [...rollout.timeline, ...told].slice(-MAX_MOMENTS) }
}

/** @param {string} text */
function shortenText (text) {
  return text.length > MAX_REASON_CHARS ? `${text.slice(0, MAX_REASON_CHARS - 1)}…` : text
}
