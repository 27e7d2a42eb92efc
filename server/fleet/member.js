import { finishTurn, holdRollout, isUnderWay, restoreTurn, takeTurn, undoTurn } from './rollout.js'
import { STATES } from './states.js'
import { nextTurn } from './turn.js'

/**
 * What one member does about the rollouts of its fleet: state and input in, state and commands out. It changes the document
 * by `write` alone, which NATS refuses where another one was faster; then the document comes again, and it decides anew.
 * Nothing of its own begins but by what it has seen written.
 * @typedef {import('./rollout.js').FleetRollout} FleetRollout
 *
 * What outlives this master, and NATS's memory.
 * @typedef {object} Memory
 * @property {number} rollout  the newest that it has seen, 0: none
 * @property {number} revision  of that, the highest
 * @property {Task | null} task  the last one that it has begun
 *
 * @typedef {object} Task
 * @property {string} fleet  the rollout of the fleet, by its uid
 * @property {'forward' | 'back'} way
 * @property {number | null} rollout  its own; null: not begun yet
 * @property {string | null} from  the release before it
 * @property {Result | null} result  that is perhaps not written yet; null: it is not over
 *
 * @typedef {{ state: 'succeeded' | 'failed' | 'reverted', to?: string | null, reason?: string | null, isUndone?: boolean }} Result `isUndone`: it had succeeded before
 *
 * @typedef {object} State
 * @property {string} member
 * @property {string} boot  of this master
 * @property {Memory} memory
 * @property {{ document: FleetRollout, revision: number } | null} known
 * @property {boolean} isAway  NATS cannot be asked
 * @property {boolean} isNamesake  its name is that of another deck, whose turns are meant
 * @property {number} backSince  when it could be asked again
 * @property {boolean} isWriting
 * @property {boolean} isAborting
 * @property {Record<string, { state: string, at: number }>} seen  when each turn came to be as it is, by this member's monotonic clock, ms
 * @property {number} restSince  since when nobody is in a turn
 *
 * @typedef {{ type: 'seen', document: FleetRollout | null, revision: number } | { type: 'away' } | { type: 'named', isOwn: boolean } | { type: 'written', document: FleetRollout, revision: number } | { type: 'refused' }
 *   | { type: 'began', rollout: number } | { type: 'ended', result: Result } | { type: 'undone', release: string | null, reason: string } | { type: 'look' }} Input
 *   `undone`: its deck takes that release back by itself; `refused`: also where nobody knows what became of it
 *
 * @typedef {{ type: 'write', document: FleetRollout, revision: number, news?: News } | { type: 'remember', memory: Memory } | { type: 'begin', document: FleetRollout }
 *   | { type: 'roll-back', release: string | null, document: FleetRollout } | { type: 'abort', rollout: number, document: FleetRollout } | { type: 'read' } | { type: 'wake', ms: number }} Command
 *   `news`: told once NATS has taken it; an answer that was late is no truth
 * @typedef {{ event: string, message: string }} News
 *
 * @typedef {{ at: number, iso: string, release: string | null }} Now  `at`: monotonic, ms; `iso`: wall; `release`: that this member runs
 */

/** a NATS server that is back may have forgotten: whoever knows more has this long to say so. */
const SETTLE_MS = 2000

/** @type {Readonly<Memory>} */
export const NO_MEMORY = Object.freeze({ rollout: 0, revision: 0, task: null })

/** What a master before this one has not brought to its end. @type {Readonly<Result>} */
const LOST = Object.freeze({ state: 'failed', reason: 'its master ended in its turn' })

/** @param {{ member: string, boot: string, memory?: Memory }} start @returns {State} */
export function createMember ({ member, boot, memory = NO_MEMORY }) {
  const { task } = memory
  const kept = task?.result === null ? { ...memory, task: { ...task, result: LOST } } : memory
  return { member, boot, memory: kept, known: null, isAway: true, isNamesake: false, backSince: 0, isWriting: false, isAborting: false, seen: {}, restSince: 0 }
}

/**
 * @param {State} before @param {Input} input @param {Now} now
 * @returns {{ state: State, commands: Command[] }}
 */
export function reduceMember (before, input, now) {
  /** @type {Command[]} */
  const commands = []
  const state = INPUTS[input.type]({ ...before }, /** @type {any} */ (input), { now, commands })
  const after = state.isAway || state.isNamesake || state.isWriting || !state.known ? state : decideNext(state, { now, commands })
  if (after.memory !== before.memory) commands.unshift({ type: 'remember', memory: after.memory })
  return { state: after, commands }
}

/** @typedef {{ now: Now, commands: Command[] }} Turn */

/** @type {Readonly<Record<Input['type'], (state: State, input: any, turn: Turn) => State>>} */
const INPUTS = Object.freeze({
  seen: (state, { document, revision }, { now }) => {
    const back = state.isAway ? { isAway: false, backSince: now.at } : {}
    if (document === null) return { ...state, ...back, known: null }
    if (state.known && state.known.document.id === document.id && revision < state.known.revision && revision >= state.memory.revision) return { ...state, ...back }
    return { ...state, ...back, known: { document, revision }, ...noteTurnTimes(state, document, now) }
  },
  named: (state, { isOwn }) => ({ ...state, isNamesake: !isOwn }),
  away: (state) => ({ ...state, isAway: true, isWriting: false }),
  written: (state, input, turn) => INPUTS.seen({ ...state, isWriting: false }, input, turn),
  refused: (state, _, { commands }) => {
    commands.push({ type: 'read' })
    return { ...state, isWriting: false, known: null }
  },
  began: (state, { rollout }) => withTask(state, { rollout }),
  ended: (state, { result }) => ({ ...withTask(state, { result }), isAborting: false }),
  undone: (state, { release, reason }) => hasBrought(state.memory.task, release) ? withTask(state, { result: { state: 'failed', to: null, reason, isUndone: true } }) : state,
  look: (state) => state
})

/** Somebody may have deployed another one since. @param {Task | null} task @param {string | null} release */
function hasBrought (task, release) {
  return task?.way === 'forward' && task.result?.state === 'succeeded' && task.result.to === release
}

/** Ages are by arrival. @param {State} state @param {FleetRollout} document @param {Now} now */
function noteTurnTimes (state, document, { at }) {
  const isSame = state.known?.document.id === document.id
  const seen = Object.fromEntries(Object.entries(document.turns).map(([member, turn]) => {
    const told = `${turn.state} ${turn.boot} ${document.state}`
    const before = isSame ? state.seen[member] : undefined
    return [member, before?.state === told ? before : { state: told, at }]
  }))
  const wasAtRest = isSame && state.known !== null && isAtRest(state.known.document) && state.known.document.state === document.state
  return { seen, restSince: isAtRest(document) && wasAtRest && countEnded(state.known?.document) === countEnded(document) ? state.restSince : at }
}

/** @param {FleetRollout} document */
function isAtRest (document) {
  return !Object.values(document.turns).some(isUnderWay)
}

/** @param {FleetRollout | undefined} document how many turns are over */
function countEnded (document) {
  return document ? Object.values(document.turns).filter(({ state }) => state !== 'pending').length : 0
}

/** @param {State} state @param {Turn} turn @returns {State} */
function decideNext (state, turn) {
  const { document, revision } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { memory } = state
  if (document.id < memory.rollout || (document.id === memory.rollout && revision < memory.revision)) return handleForgotten(state, turn)
  const kept = document.id === memory.rollout && revision === memory.revision ? state : { ...state, memory: { ...memory, rollout: document.id, revision } }
  // Whoever is in no turn sees all the same who is late.
  if (!document.turns[state.member]) return takeNextStep(kept, turn)
  const truth = restoreOwnTurn(kept)
  if (truth) return writeDocument(kept, truth, turn)
  return reportResult(kept, turn) ?? resumeTurn(kept, turn) ?? abortOwnRollout(kept, turn) ?? takeNextStep(kept, turn)
}

/**
 * NATS has come back with less than it knew, as out of a backup: who has done what is not known any more.
 * @param {State} state @param {Turn} turn @returns {State}
 */
function handleForgotten (state, turn) {
  const { document, revision } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { memory } = state
  const truth = restoreOwnTurn(state)
  if (STATES[document.state].done) {
    const accepted = document.id === memory.rollout ? { ...state, memory: { ...memory, revision } } : state
    return truth ? writeDocument(accepted, truth, turn) : accepted
  }
  const reason = `NATS has forgotten what it knew: it has rollout ${document.id} at revision ${revision}, and ${state.member} has seen rollout ${memory.rollout} at revision ${memory.revision}`
  return writeDocument(state, holdRollout(truth ?? document, { at: turn.now.iso, reason, member: state.member }), turn, { event: 'fleet.forgotten', message: reason })
}

/** @param {State} state @returns {FleetRollout | null} the document with the turn that this member is in, where it does not say so any more */
function restoreOwnTurn ({ member, boot, known, memory: { task } }) {
  const { document } = /** @type {NonNullable<State['known']>} */ (known)
  if (task === null || task.result !== null || task.fleet !== document.uid || !document.turns[member]) return null
  const state = STATE_OF_TASK[task.way]
  return PLACES[document.turns[member].state] < PLACES[state] ? restoreTurn(document, member, { state, boot, rollout: task.rollout, from: task.from }) : null
}

/** How far a turn has come; one that went back has gone through all of them. @type {Readonly<Record<import('./rollout.js').TurnState, number>>} */
const PLACES = Object.freeze({ pending: 0, skipped: 0, running: 1, succeeded: 2, reverting: 3, failed: 4, reverted: 4 })
const STATE_OF_TASK = Object.freeze({ forward: /** @type {const} */ ('running'), back: /** @type {const} */ ('reverting') })
const PLACE_OF_RESULT = Object.freeze({ forward: PLACES.succeeded, back: PLACES.reverted })

/**
 * What has become of the last task, where the document does not say so yet, or any more.
 * @param {State} state @param {Turn} turn @returns {State | null}
 */
function reportResult (state, turn) {
  const { document } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { task } = state.memory
  const own = document.turns[state.member]
  if (!task?.result || task.fleet !== document.uid) return null
  const { isUndone, ...result } = task.result
  const at = turn.now.iso
  if (isUndone && own.state === 'succeeded') return writeDocument(state, undoTurn(document, state.member, { at, reason: String(result.reason) }), turn)
  const isGivenUp = own.state === 'failed' && own.rollout === null && task.rollout !== null
  return PLACES[own.state] >= PLACE_OF_RESULT[task.way] && !isGivenUp ? null : writeDocument(state, finishTurn(document, state.member, { at, rollout: task.rollout, ...result }), turn)
}

/**
 * A turn that the document says is under way: it begins here, once; and one that a master before this one has begun and not
 * finished is over.
 * @param {State} state @param {Turn} turn @returns {State | null}
 */
function resumeTurn (state, { now, commands }) {
  const { document } = /** @type {NonNullable<State['known']>} */ (state.known)
  const own = document.turns[state.member]
  if (!isUnderWay(own)) return null
  const way = own.state === 'running' ? 'forward' : 'back'
  const { task: last } = state.memory
  const isBegun = last !== null && last.fleet === document.uid && last.way === way
  if (own.boot !== state.boot) {
    const lost = /** @type {Task} */ ({ fleet: document.uid, way, rollout: isBegun ? last.rollout : null, from: own.from, result: LOST })
    return reportResult({ ...state, memory: { ...state.memory, task: lost } }, { now, commands })
  }
  if (isBegun) return null
  const task = /** @type {Task} */ ({ fleet: document.uid, way, rollout: null, from: own.from, result: null })
  // Meanwhile all go back: there is nothing to take back here.
  if (way === 'forward' && document.state === 'rolling-back') return reportResult({ ...state, memory: { ...state.memory, task: { ...task, result: { state: 'reverted', reason: null } } } }, { now, commands })
  const begun = { ...state, memory: { ...state.memory, task } }
  commands.push(way === 'forward' ? { type: 'begin', document } : { type: 'roll-back', release: own.from, document })
  return begun
}

/** Its own rollout goes back with all others. @param {State} state @param {Turn} turn @returns {State | null} */
function abortOwnRollout (state, { commands }) {
  const { document } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { task } = state.memory
  if (document.state !== 'rolling-back' || document.turns[state.member].state !== 'running' || !task || task.rollout === null || state.isAborting) return null
  commands.push({ type: 'abort', rollout: task.rollout, document })
  return { ...state, isAborting: true }
}

/** @param {State} state @param {Turn} turn @returns {State} */
function takeNextStep (state, turn) {
  const { document } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { at, iso } = turn.now
  const next = nextTurn(document, state.member, { restMs: at - state.restSince, turnMs: (member) => at - (state.seen[member]?.at ?? at) })
  if (next.type === 'wait') turn.commands.push({ type: 'wake', ms: next.ms })
  if (next.type === 'hold') return writeDocument(state, holdRollout(document, { at: iso, reason: next.reason, member: next.member }), turn)
  if (next.type === 'take') return takeOwnTurn(state, turn)
  return state
}

/** @param {State} state @param {Turn} turn @returns {State} */
function takeOwnTurn (state, turn) {
  const { document } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { at, iso, release } = turn.now
  // It is in a turn of a rollout that NATS has forgotten.
  if (state.memory.task?.result === null) return state
  const settleMs = SETTLE_MS - (at - state.backSince)
  if (settleMs > 0) {
    turn.commands.push({ type: 'wake', ms: settleMs })
    return state
  }
  return writeDocument(state, takeTurn(document, state.member, { at: iso, boot: state.boot, ...(document.state === 'running' && { from: release }) }), turn)
}

/** @param {State} state @param {FleetRollout} document @param {Turn} turn @param {News} [news] @returns {State} */
function writeDocument (state, document, { commands }, news) {
  const { revision } = /** @type {NonNullable<State['known']>} */ (state.known)
  commands.push({ type: 'write', document, revision, ...(news && { news }) })
  return { ...state, isWriting: true }
}

/** @param {State} state @param {Partial<Task>} changes @returns {State} */
function withTask (state, changes) {
  const { memory } = state
  return memory.task ? { ...state, memory: { ...memory, task: { ...memory.task, ...changes } } } : state
}
