import { finish, halt, isUnderWay, take } from './rollout.js'
import { STATES } from './states.js'
import { nextTurn } from './turn.js'

/**
 * What one member does about the rollouts of its fleet: state and input in, state and commands out. It changes the document
 * by `write` alone, which the engine refuses where another one was faster; then the document comes again, and it decides anew.
 * Nothing of its own begins but by what it has seen written.
 * @typedef {import('./rollout.js').FleetRollout} FleetRollout
 *
 * What outlives this master, and the engine's memory.
 * @typedef {object} Memory
 * @property {number} rollout  the newest that it has seen, 0: none
 * @property {number} revision  of that, the highest
 * @property {Task | null} task  the last one that it has begun
 *
 * @typedef {object} Task
 * @property {number} fleet  the rollout of the fleet
 * @property {'forward' | 'back'} way
 * @property {number | null} rollout  its own; null: not begun yet
 * @property {string | null} from  the release before it
 * @property {Result | null} result  that is perhaps not written yet
 *
 * @typedef {{ state: 'succeeded' | 'failed' | 'reverted', to?: string | null, reason?: string | null }} Result
 *
 * @typedef {object} State
 * @property {string} member
 * @property {string} boot  of this master
 * @property {Memory} memory
 * @property {{ document: FleetRollout, revision: number } | null} known
 * @property {boolean} isAway  the engine cannot be asked
 * @property {boolean} isWriting
 * @property {boolean} isAborting
 * @property {Record<string, { state: string, at: number }>} seen  when each turn came to be as it is, by this member's monotonic clock, ms
 * @property {number} restSince  since when nobody is in a turn
 *
 * @typedef {{ type: 'seen', document: FleetRollout | null, revision: number } | { type: 'away' } | { type: 'written' } | { type: 'refused' }
 *   | { type: 'began', rollout: number } | { type: 'ended', result: Result } | { type: 'look' }} Input
 *   `refused`: also where nobody knows what became of it
 *
 * @typedef {{ type: 'write', document: FleetRollout, revision: number } | { type: 'remember', memory: Memory } | { type: 'begin', document: FleetRollout }
 *   | { type: 'go-back', release: string | null, document: FleetRollout } | { type: 'abort', rollout: number, document: FleetRollout } | { type: 'read' } | { type: 'wake', ms: number }
 *   | { type: 'tell', event: string, message: string }} Command
 *
 * @typedef {{ at: number, iso: string, release: string | null }} Now  `at`: monotonic, ms; `iso`: wall; `release`: that this member runs
 */

/** @type {Readonly<Memory>} */
export const NO_MEMORY = Object.freeze({ rollout: 0, revision: 0, task: null })

/** @param {{ member: string, boot: string, memory?: Memory }} start @returns {State} */
export function createMember ({ member, boot, memory = NO_MEMORY }) {
  return { member, boot, memory, known: null, isAway: true, isWriting: false, isAborting: false, seen: {}, restSince: 0 }
}

/**
 * @param {State} before @param {Input} input @param {Now} now
 * @returns {{ state: State, commands: Command[] }}
 */
export function reduce (before, input, now) {
  /** @type {Command[]} */
  const commands = []
  const state = INPUTS[input.type]({ ...before }, /** @type {any} */ (input), { now, commands })
  const after = state.isAway || state.isWriting || !state.known ? state : advance(state, { now, commands })
  if (after.memory !== before.memory) commands.unshift({ type: 'remember', memory: after.memory })
  return { state: after, commands }
}

/** @typedef {{ now: Now, commands: Command[] }} Turn */

/** @type {Readonly<Record<Input['type'], (state: State, input: any, turn: Turn) => State>>} */
const INPUTS = Object.freeze({
  seen: (state, { document, revision }, { now }) => {
    if (document === null) return { ...state, isAway: false, known: null }
    if (state.known && state.known.document.id === document.id && revision < state.known.revision && revision >= state.memory.revision) return state
    return { ...state, isAway: false, known: { document, revision }, ...watch(state, document, now) }
  },
  away: (state) => ({ ...state, isAway: true, isWriting: false }),
  written: (state) => ({ ...state, isWriting: false }),
  refused: (state, _, { commands }) => {
    commands.push({ type: 'read' })
    return { ...state, isWriting: false, known: null }
  },
  began: (state, { rollout }) => withTask(state, { rollout }),
  ended: (state, { result }) => ({ ...withTask(state, { result }), isAborting: false }),
  look: (state) => state
})

/** Ages are by arrival. @param {State} state @param {FleetRollout} document @param {Now} now */
function watch (state, document, { at }) {
  const isSame = state.known?.document.id === document.id
  const seen = Object.fromEntries(Object.entries(document.turns).map(([member, turn]) => {
    const told = `${turn.state} ${turn.boot} ${document.state}`
    const before = isSame ? state.seen[member] : undefined
    return [member, before?.state === told ? before : { state: told, at }]
  }))
  const wasAtRest = isSame && state.known !== null && isAtRest(state.known.document) && state.known.document.state === document.state
  return { seen, restSince: isAtRest(document) && wasAtRest && ended(state.known?.document) === ended(document) ? state.restSince : at }
}

/** @param {FleetRollout} document */
function isAtRest (document) {
  return !Object.values(document.turns).some(isUnderWay)
}

/** @param {FleetRollout | undefined} document how many turns are over */
function ended (document) {
  return document ? Object.values(document.turns).filter(({ state }) => state !== 'pending').length : 0
}

/** @param {State} state @param {Turn} turn @returns {State} */
function advance (state, turn) {
  const { document, revision } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { memory } = state
  if (document.id < memory.rollout || (document.id === memory.rollout && revision < memory.revision)) return forgotten(state, turn)
  const kept = document.id === memory.rollout && revision === memory.revision ? state : { ...state, memory: { ...memory, rollout: document.id, revision } }
  const own = document.turns[state.member]
  if (!own) return kept
  return report(kept, turn) ?? resume(kept, turn) ?? abort(kept, turn) ?? move(kept, turn)
}

/**
 * The engine has come back with less than it knew, as out of a backup: who has done what is not known any more.
 * @param {State} state @param {Turn} turn @returns {State}
 */
function forgotten (state, turn) {
  const { document, revision } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { memory } = state
  if (STATES[document.state].done) return document.id === memory.rollout ? { ...state, memory: { ...memory, revision } } : state
  const reason = `the engine has forgotten what it knew: it has rollout ${document.id} at revision ${revision}, and ${state.member} has seen rollout ${memory.rollout} at revision ${memory.revision}`
  turn.commands.push({ type: 'tell', event: 'fleet.forgotten', message: reason })
  return write(state, halt(document, { at: turn.now.iso, reason, member: state.member }), turn)
}

/** What has become of the last task, where the document does not say so yet. @param {State} state @param {Turn} turn @returns {State | null} */
function report (state, turn) {
  const { document } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { task } = state.memory
  const own = document.turns[state.member]
  if (!task?.result || task.fleet !== document.id) return null
  // Written already; or begun anew by nobody else.
  if (isTold(own, task)) return { ...state, memory: { ...state.memory, task: { ...task, result: null } } }
  return write(state, finish(document, state.member, { at: turn.now.iso, rollout: task.rollout, ...task.result }), turn)
}

/** @param {import('./rollout.js').Turn} own @param {Task} task */
function isTold (own, { rollout, result }) {
  return own.rollout === rollout && own.state === result?.state && (own.reason ?? null) === (result.reason ?? null)
}

/**
 * A turn that the document says is under way: it begins here, once; and one that a master before this one has begun and not
 * finished is over.
 * @param {State} state @param {Turn} turn @returns {State | null}
 */
function resume (state, { now, commands }) {
  const { document } = /** @type {NonNullable<State['known']>} */ (state.known)
  const own = document.turns[state.member]
  if (!isUnderWay(own)) return null
  const way = own.state === 'running' ? 'forward' : 'back'
  const { task } = state.memory
  const isBegun = task !== null && task.fleet === document.id && task.way === way
  if (own.boot !== state.boot) {
    const lost = { fleet: document.id, way, rollout: isBegun ? task.rollout : null, from: own.from }
    return withResult(state, /** @type {Task} */ ({ ...lost, result: { state: 'failed', reason: 'its master ended in its turn' } }), { now, commands })
  }
  if (isBegun) return null
  const begun = { ...state, memory: { ...state.memory, task: { fleet: document.id, way: /** @type {'forward' | 'back'} */ (way), rollout: null, from: own.from, result: null } } }
  commands.push(way === 'forward' ? { type: 'begin', document } : { type: 'go-back', release: own.from, document })
  return begun
}

/** @param {State} state @param {Task} task @param {Turn} turn */
function withResult (state, task, turn) {
  const told = { ...state, memory: { ...state.memory, task } }
  return report(told, turn)
}

/** Its own rollout goes back with all others. @param {State} state @param {Turn} turn @returns {State | null} */
function abort (state, { commands }) {
  const { document } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { task } = state.memory
  if (document.state !== 'going-back' || document.turns[state.member].state !== 'running' || !task || task.rollout === null || state.isAborting) return null
  commands.push({ type: 'abort', rollout: task.rollout, document })
  return { ...state, isAborting: true }
}

/** @param {State} state @param {Turn} turn @returns {State} */
function move (state, turn) {
  const { document } = /** @type {NonNullable<State['known']>} */ (state.known)
  const { at, iso, release } = turn.now
  const next = nextTurn(document, state.member, { restMs: at - state.restSince, turnMs: (member) => at - (state.seen[member]?.at ?? at) })
  if (next.type === 'wait') turn.commands.push({ type: 'wake', ms: next.ms })
  if (next.type === 'halt') return write(state, halt(document, { at: iso, reason: next.reason, member: next.member }), turn)
  if (next.type === 'take') return write(state, take(document, state.member, { at: iso, boot: state.boot, ...(document.state === 'running' && { from: release }) }), turn)
  return state
}

/** @param {State} state @param {FleetRollout} document @param {Turn} turn @returns {State} */
function write (state, document, { commands }) {
  const { revision } = /** @type {NonNullable<State['known']>} */ (state.known)
  commands.push({ type: 'write', document, revision })
  return { ...state, isWriting: true }
}

/** @param {State} state @param {Partial<Task>} changes @returns {State} */
function withTask (state, changes) {
  const { memory } = state
  return memory.task ? { ...state, memory: { ...memory, task: { ...memory.task, ...changes } } } : state
}
