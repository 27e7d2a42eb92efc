import { DeckError } from '../errors.js'
import { nextState, STATES } from './states.js'

/**
 * A rollout over hosts: one document, changed by compare-and-set alone. Each change here is a function from a document to
 * the next one; what is not possible throws, and then nothing is written.
 * @typedef {'restart' | 'deploy' | 'rollback'} Kind
 * @typedef {'pending' | 'running' | 'succeeded' | 'failed' | 'reverting' | 'reverted' | 'skipped'} TurnState
 *
 * What one member does in it.
 * @typedef {object} Turn
 * @property {TurnState} state
 * @property {string | null} boot  of the master that took it
 * @property {number | null} rollout  its own
 * @property {string | null} from  the release that it goes back to
 * @property {string | null} to
 * @property {string | null} startedAt  by the member's clock
 * @property {string | null} finishedAt  by the member's clock
 * @property {string | null} reason  why it has failed
 * @property {boolean} isLate  it has ended after the others had given it up
 *
 * @typedef {object} FleetRollout
 * @property {number} id
 * @property {string} uid  of this one alone: a NATS server that forgets may give a number twice
 * @property {Kind} kind
 * @property {{ path?: string, digest?: string, release?: string }} source  what each member deploys
 * @property {string[][]} batches  members, in the order of their turns: those of one batch are in their turns at the same time
 * @property {number} pauseMs  between two batches
 * @property {number} deadlineMs  how long a turn may take
 * @property {'hold' | 'rollback'} onFailure
 * @property {import('./states.js').FleetState} state
 * @property {Record<string, Turn>} turns  by member
 * @property {string[]} absent  members that are known and were silent when it began
 * @property {string} actor
 * @property {string | null} note
 * @property {string | null} reason  why it was held, or has failed
 * @property {string} startedAt
 * @property {string | null} finishedAt
 * @property {Moment[]} timeline  oldest first, the last 200
 *
 * @typedef {{ at: string, type: string, member: string | null, actor: string | null, message: string | null }} Moment
 * @typedef {{ at: string, actor: string }} Operator  `at`: by the clock of the member that writes, ISO 8601
 */

/** Of a rollout: one that is said to be higher is none, for nobody could count on from there. */
export const MAX_ID = 1_000_000_000
const MAX_MOMENTS = 200
const MAX_REASON_CHARS = 500

/** @type {Readonly<Turn>} */
const PENDING = Object.freeze({ state: 'pending', boot: null, rollout: null, from: null, to: null, startedAt: null, finishedAt: null, reason: null, isLate: false })

/**
 * @param {FleetRollout | null} before
 * @param {Operator & Pick<FleetRollout, 'id' | 'uid' | 'kind' | 'source' | 'batches' | 'pauseMs' | 'deadlineMs' | 'onFailure' | 'absent' | 'note'>} wanted
 * @param {string[]} [silent]  members that are not waited for, though they may still be in a turn of the rollout before
 * @returns {FleetRollout}
 * @throws {DeckError} rollout-running
 */
export function startRollout (before, { at, ...wanted }, silent = []) {
  if (before && !STATES[before.state].done) {
    throw new DeckError('rollout-running', `Rollout ${before.id} of the fleet (${before.kind} by ${before.actor}) is ${before.state}`, { details: { rollout: before.id } })
  }
  const busy = Object.keys(before?.turns ?? {}).filter((member) => isUnderWay(/** @type {FleetRollout} */ (before).turns[member]) && !silent.includes(member))
  if (before && busy.length > 0) {
    throw new DeckError('rollout-running', `Rollout ${before.id} of the fleet is ${before.state}, and ${busy.join(', ')} ${busy.length === 1 ? 'is' : 'are'} still in ${busy.length === 1 ? 'its turn' : 'their turns'}`, { details: { rollout: before.id } })
  }
  const turns = Object.fromEntries(wanted.batches.flat().map((member) => [member, { ...PENDING }]))
  return addMoments({ ...wanted, state: 'running', turns, reason: null, startedAt: at, finishedAt: null, timeline: [] }, { at, type: 'started', actor: wanted.actor, message: wanted.note })
}

/**
 * What an operator does to it.
 * @param {FleetRollout} rollout @param {'pause' | 'resume' | 'abort'} order @param {Operator} by
 * @returns {FleetRollout}
 * @throws {DeckError} rollout-ended, rollout-state
 */
export function steerRollout (rollout, order, { at, actor }) {
  const state = nextState(rollout.state, order)
  if (!state) {
    const isOver = Object.keys(STATES[rollout.state].moves).length === 0
    throw new DeckError(isOver ? 'rollout-ended' : 'rollout-state', `Rollout ${rollout.id} of the fleet is ${rollout.state}: ${order} is not possible`, { details: { rollout: rollout.id } })
  }
  const reason = order === 'abort' ? `aborted by ${actor}` : order === 'resume' ? null : rollout.reason
  return settleRollout(addMoments({ ...rollout, state, reason, finishedAt: null }, { at, type: PAST[order], actor }), at)
}

const PAST = Object.freeze({ pause: 'paused', resume: 'resumed', abort: 'aborted' })

/**
 * Nothing more begins until a person says so.
 * @param {FleetRollout} rollout @param {{ at: string, reason: string, member?: string | null }} why
 * @returns {FleetRollout}
 */
export function holdRollout (rollout, { at, reason, member = null }) {
  const state = nextState(rollout.state, 'hold')
  if (!state || rollout.state === 'held') return rollout
  return addMoments({ ...rollout, state, reason: shortenText(reason), finishedAt: at }, { at, type: 'held', member, message: reason })
}

/**
 * A person goes on without those that do not answer in their turns: what these do is not known.
 * @param {FleetRollout} rollout @param {string[]} members @param {Operator} by
 * @returns {FleetRollout}
 */
export function giveUp (rollout, members, { at, actor }) {
  const given = members.filter((member) => isUnderWay(rollout.turns[member]))
  return given.length === 0 ? rollout : settleRollout(endTurns(rollout, given, { at, state: 'failed', rollout: null, reason: `given up by ${actor}: it was silent` }), at)
}

/**
 * A member begins its turn: forward, or back to the release that it had.
 * @param {FleetRollout} rollout @param {string} member @param {{ at: string, boot: string, from?: string | null }} by
 * @returns {FleetRollout}
 */
export function takeTurn (rollout, member, { at, boot, from = null }) {
  const turn = rollout.turns[member]
  const changes = turn.state === 'pending' ? { state: /** @type {const} */ ('running'), from, startedAt: at, finishedAt: null } : { state: /** @type {const} */ ('reverting'), finishedAt: null }
  return addMoments(withTurns(rollout, [member], { ...changes, boot }), { at, type: changes.state === 'running' ? 'turn-started' : 'turn-reverting', member })
}

/**
 * NATS has forgotten that a member is in its turn.
 * @param {FleetRollout} rollout @param {string} member @param {Pick<Turn, 'boot' | 'rollout' | 'from'> & { state: 'running' | 'reverting' }} turn
 * @returns {FleetRollout}
 */
export function restoreTurn (rollout, member, turn) {
  return withTurns(rollout, [member], { ...turn, finishedAt: null })
}

/**
 * What has become of a member's turn. One that comes after the others have gone on is told, and changes nothing else.
 * @param {FleetRollout} rollout @param {string} member
 * @param {{ at: string, state: 'succeeded' | 'failed' | 'reverted', rollout?: number | null, to?: string | null, reason?: string | null }} result
 * @returns {FleetRollout}
 */
export function finishTurn (rollout, member, { at, ...result }) {
  const { state: before } = rollout.turns[member]
  const isOver = !isUnderWay(rollout.turns[member]) || STATES[rollout.state].done
  const ended = endTurns(rollout, [member], { at, ...result, isLate: isOver && !isHaltedByAnother(rollout, member) })
  // Who fails on the way there, while all go back, is where they go to.
  const isOnItsWay = rollout.state === 'rolling-back' && before === 'running'
  return result.state !== 'failed' || isOver || isOnItsWay ? settleRollout(ended, at) : stopFor(ended, member, { at, reason: result.reason })
}

/** Its turn goes on, and nobody has given it up. @param {FleetRollout} rollout @param {string} member */
function isHaltedByAnother ({ state, turns, timeline }, member) {
  return state === 'held' && isUnderWay(turns[member]) && timeline.findLast(({ type }) => type === 'held')?.member !== member
}

/**
 * A host that was done has gone back by itself: what it has deployed did not last. A rollout that is over is told, and no more.
 * @param {FleetRollout} rollout @param {string} member @param {{ at: string, reason: string, rollout?: number | null }} why
 * @returns {FleetRollout}
 */
export function undoTurn (rollout, member, { at, reason }) {
  const undone = endTurns(rollout, [member], { at, state: 'failed', reason })
  return STATES[rollout.state].done || rollout.state === 'rolling-back' ? settleRollout(undone, at) : stopFor(undone, member, { at, reason })
}

/** No other begins, or those that are done go back. @param {FleetRollout} rollout @param {string} member @param {{ at: string, reason?: string | null }} why @returns {FleetRollout} */
function stopFor (rollout, member, { at, reason }) {
  const move = rollout.state !== 'rolling-back' && rollout.onFailure === 'rollback' && rollout.kind !== 'restart' ? 'roll-back' : 'hold'
  const state = nextState(rollout.state, move)
  if (!state) return rollout
  const message = shortenText(`${member}: ${reason ?? 'its turn has failed'}`)
  return settleRollout(addMoments({ ...rollout, state, reason: message, finishedAt: move === 'hold' ? at : null }, { at, type: state, member, message }), at)
}

/** @param {FleetRollout} rollout @returns {FleetRollout} as it is once nobody has anything left to do */
function settleRollout (rollout, at = rollout.startedAt) {
  const turns = Object.values(rollout.turns)
  if (turns.some(isUnderWay)) return rollout
  if (rollout.state === 'rolling-back') return turns.some((turn) => owesReturn(rollout, turn)) ? rollout : endRollout(skipPendingTurns(rollout), 'be-back', at)
  if (rollout.state !== 'running' && rollout.state !== 'paused') return rollout
  if (turns.some(({ state }) => state === 'pending')) return rollout
  const reasons = Object.entries({ failed: 'failed', reverted: 'went back' }).flatMap(([state, text]) => {
    const members = Object.keys(rollout.turns).filter((member) => rollout.turns[member].state === state)
    return members.length === 0 ? [] : `${members.length} of ${turns.length} ${text}: ${members.join(', ')}`
  })
  return reasons.length === 0 ? endRollout(rollout, 'succeed', at) : endRollout({ ...rollout, reason: shortenText(reasons.join('; ')) }, 'fail', at)
}

/** @param {FleetRollout} rollout @param {import('./states.js').Move} move @param {string} at @returns {FleetRollout} */
function endRollout (rollout, move, at) {
  const state = nextState(rollout.state, move)
  return state ? addMoments({ ...rollout, state, finishedAt: at }, { at, type: state, message: rollout.reason }) : rollout
}

/** Those whose turn will not come. @param {FleetRollout} rollout @returns {FleetRollout} */
function skipPendingTurns (rollout) {
  return { ...rollout, turns: Object.fromEntries(Object.entries(rollout.turns).map(([member, turn]) => [member, turn.state === 'pending' ? { ...turn, state: 'skipped' } : turn])) }
}

/** @param {FleetRollout} rollout @param {Turn} turn whether it has something to take back */
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
  return addMoments(withTurns(rollout, members, { ...result, reason, finishedAt: at }), ...members.map((member) => ({ at, type: `turn-${result.state}`, member, message })))
}

/** @param {FleetRollout} rollout @param {string[]} members @param {Partial<Turn>} changes @returns {FleetRollout} */
function withTurns (rollout, members, changes) {
  return { ...rollout, turns: { ...rollout.turns, ...Object.fromEntries(members.map((member) => [member, { ...rollout.turns[member], ...changes }])) } }
}

/** @param {FleetRollout} rollout @param {(Partial<Moment> & { at: string, type: string })[]} moments @returns {FleetRollout} */
function addMoments (rollout, ...moments) {
  const told = moments.map(({ at, type, member = null, actor = null, message = null }) => ({ at, type, member, actor, message: message && shortenText(message) }))
  return { ...rollout, timeline: [...rollout.timeline, ...told].slice(-MAX_MOMENTS) }
}

/** @param {string} text */
function shortenText (text) {
  return text.length > MAX_REASON_CHARS ? `${text.slice(0, MAX_REASON_CHARS - 1)}…` : text
}
