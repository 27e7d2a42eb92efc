import { isUnderWay, nextState, STATES, type Crash, type FleetRollout } from './document.ts'
import { finishTurn, holdRollout, noteCrash, restoreTurn, takeTurn, undoTurn } from './rollout.ts'
import { nextTurn } from './turn.ts'

/**
 * Decides what one member does about the rollouts of its fleet: state and input in, state and commands out. It changes
 * the document by `write` alone. NATS refuses that if another member was faster; then it reads the document and decides
 * again. It begins a rollout of its own only after it has seen in the document that its turn has begun.
 */
type Known = { document: FleetRollout, revision: number }
/** What outlives this master, and what NATS may lose. */
export type Memory = {
  /** the newest that it has seen, 0: none */
  rollout: number,
  /** the highest of that rollout that it has seen */
  revision: number,
  /** the last one that it has begun */
  task: Task | null
}
type Task = {
  /** the uid of the fleet's rollout */
  fleet: string,
  way: 'forward' | 'back',
  /** its own; null: not begun yet */
  rollout: number | null,
  /** the release before it */
  from: string | null,
  /** which may not be in the document yet; null: it is not over */
  result: Result | null,
  /** the first new one of what it has deployed */
  crash: { release: string | null, crash: Crash } | null
}
/** `isUndone`: it had succeeded */
export type Result = { state: 'succeeded' | 'failed' | 'reverted', to?: string | null, reason?: string | null,
  isUndone?: boolean }
type State = {
  member: string,
  /** identifies this master */
  boot: string,
  memory: Memory,
  known: Known | null,
  /** NATS is out of reach */
  isAway: boolean,
  /** another deck has its name, and the turns of that name */
  isNamesake: boolean,
  /** when NATS was last reached again */
  backSince: number,
  isWriting: boolean,
  isAborting: boolean,
  /** when this member saw each turn change, by its monotonic clock, ms */
  seen: Record<string, { state: string, at: number }>,
  /** since when no member is in its turn */
  restSince: number
}
/**
 * `refused`: another member was faster, or the answer was lost; `undone`: the guard of its deck rolls that release
 * back; `crashed`: a release of its deck has a new fault.
 */
export type Input =
  | { type: 'seen', document: FleetRollout | null, revision: number }
  | { type: 'away' }
  | { type: 'named', isOwn: boolean }
  | { type: 'written', document: FleetRollout, revision: number }
  | { type: 'refused' }
  | { type: 'began', rollout: number }
  | { type: 'ended', result: Result }
  | { type: 'undone', release: string | null, reason: string }
  | { type: 'crashed', release: string | null, crash: Crash }
  | { type: 'look' }
/** `before`: the document that it was made from; `news`: an event to publish once NATS has taken the document. */
export type Command = { type: 'write', document: FleetRollout, before: FleetRollout, revision: number, news?: News } | {
  type: 'remember',
  memory: Memory
} | { type: 'begin', document: FleetRollout } | { type: 'roll-back', release: string | null, document: FleetRollout }
  | { type: 'abort', rollout: number, document: FleetRollout } | { type: 'read' } | { type: 'wake', ms: number }
type News = { event: string, message: string }
/** `at`: monotonic, ms; `iso`: wall; `release`: what this member runs */
type Now = { at: number, iso: string, release: string | null }

/** A NATS server may come back with old data: members that know more have this long to say so. */
const SETTLE_MS = 2000

export const NO_MEMORY: Readonly<Memory> = Object.freeze({ rollout: 0, revision: 0, task: null })

const LOST: Readonly<Result> = Object.freeze({ state: 'failed', reason: 'its master ended in its turn' })
const NOT_DEPLOYED: Readonly<Result> = Object.freeze({ state: 'reverted', reason: null })

export function createMember (
  { member, boot, memory = NO_MEMORY }: { member: string, boot: string, memory?: Memory }
): State {
  const { task } = memory
  const kept = task?.result === null ? { ...memory, task: { ...task, result: LOST } } : memory
  return { member, boot, memory: kept, known: null, isAway: true, isNamesake: false, backSince: 0, isWriting: false,
    isAborting: false, seen: {}, restSince: 0 }
}

export function reduceMember (before: State, input: Input, now: Now): { state: State, commands: Command[] } {
  const commands: Command[] = []
  const turn = { now, commands }
  const state = takeInput(before, input, turn)
  const after = state.isAway || state.isNamesake || state.isWriting || !isKnowing(state)
    ? state
    : decideNext(state, turn)
  if (after.memory !== before.memory) commands.unshift({ type: 'remember', memory: after.memory })
  return { state: after, commands }
}

type Turn = { now: Now, commands: Command[] }
type KnowingState = State & { known: Known }

function isKnowing (state: State): state is KnowingState {
  return state.known !== null
}

function takeInput (state: State, input: Input, { now, commands }: Turn): State {
  switch (input.type) {
    case 'seen':
      return noteDocument(state, input, now)
    case 'written':
      return noteDocument({ ...state, isWriting: false }, input, now)
    case 'named':
      return { ...state, isNamesake: !input.isOwn }
    case 'away':
      return { ...state, isAway: true, isWriting: false }
    case 'began':
      return withTask(state, { rollout: input.rollout })
    case 'ended':
      return { ...withTask(state, { result: input.result }), isAborting: false }
    case 'undone':
      if (!hasDeployed(state.memory.task, input.release)) return state
      return withTask(state, { result: { state: 'failed', to: null, reason: input.reason, isUndone: true } })
    case 'crashed':
      return isFirstFault(state.memory.task, input.release)
        ? withTask(state, { crash: { release: input.release, crash: input.crash } })
        : state
    case 'refused':
      commands.push({ type: 'read' })
      return { ...state, isWriting: false, known: null }
    case 'look':
      return state
  }
}

function noteDocument (state: State, { document, revision }: { document: FleetRollout | null, revision: number },
  now: Now): State
{
  const { known, memory } = state
  const back = state.isAway ? { isAway: false, backSince: now.at } : {}
  if (document === null) return { ...state, ...back, known: null }
  const isOlder = known?.document.id === document.id && revision < known.revision && revision >= memory.revision
  return isOlder
    ? { ...state, ...back }
    : { ...state, ...back, known: { document, revision }, ...noteTurnTimes(state, document, now) }
}

function isFirstFault (task: Task | null, release: string | null) {
  return task?.crash === null && release !== task.from
}

/** False if somebody has deployed another release since. */
function hasDeployed (task: Task | null, release: string | null) {
  return task?.way === 'forward' && task.result?.state === 'succeeded' && task.result.to === release
}

/** Times are those at which a change arrived here, as the clocks of hosts differ. */
function noteTurnTimes (state: State, document: FleetRollout, { at }: Now) {
  const isSame = state.known?.document.id === document.id
  const seen = Object.fromEntries(Object.entries(document.turns).map(([member, turn]) => {
    const told = `${turn.state} ${turn.boot} ${document.state}`
    const before = isSame ? state.seen[member] : undefined
    return [member, before?.state === told ? before : { state: told, at }]
  }))
  const wasAtRest = isSame && state.known !== null && isAtRest(state.known.document) &&
    state.known.document.state === document.state
  return { seen,
    restSince: isAtRest(document) && wasAtRest && countEnded(state.known?.document) === countEnded(document)
      ? state.restSince
      : at }
}

function isAtRest (document: FleetRollout) {
  return !Object.values(document.turns).some(isUnderWay)
}

function countEnded (document: FleetRollout | undefined) {
  return document ? Object.values(document.turns).filter(({ state }) => state !== 'pending').length : 0
}

function decideNext (state: KnowingState, turn: Turn): State {
  const { memory, known: { document, revision } } = state
  if (document.id < memory.rollout || (document.id === memory.rollout && revision < memory.revision))
    return handleForgotten(state, turn)
  const isSame = document.id === memory.rollout && revision === memory.revision
  const kept = isSame ? state : withMemory(state, { rollout: document.id, revision })
  // A member without a turn in this rollout can hold it too, if another one is late.
  if (!document.turns[state.member]) return takeNextStep(kept, turn)
  const truth = restoreOwnTurn(kept)
  if (truth) return writeDocument(kept, truth, turn)
  return reportResult(kept, turn) ?? resumeTurn(kept, turn) ?? abortOwnRollout(kept, turn) ?? takeNextStep(kept, turn)
}

/**
 * NATS has older data than this member has seen, for example from a backup. Nobody knows what the others have done
 * since.
 */
function handleForgotten (state: KnowingState, turn: Turn): State {
  const { member, memory, known: { document, revision } } = state
  const truth = restoreOwnTurn(state)
  if (STATES[document.state].done) {
    const accepted = document.id === memory.rollout ? withMemory(state, { revision }) : state
    return truth ? writeDocument(accepted, truth, turn) : accepted
  }
  const has = `it has rollout ${document.id} at revision ${revision}`
  const reason =
    `NATS has lost data: ${has}, but ${member} has seen rollout ${memory.rollout} at revision ${memory.revision}`
  const held = holdRollout(truth ?? document, { at: turn.now.iso, reason, member })
  return writeDocument(state, held, turn, { event: 'fleet.forgotten', message: reason })
}

/** @returns the document with the turn that this member is in, if it no longer says so */
function restoreOwnTurn ({ member, boot, known: { document }, memory: { task } }: KnowingState): FleetRollout | null {
  if (task === null || task.result !== null || task.fleet !== document.uid || !document.turns[member]) return null
  const state = STATE_OF_TASK[task.way]
  if (PLACES[document.turns[member].state] >= PLACES[state]) return null
  return restoreTurn(document, member, { state, boot, rollout: task.rollout, from: task.from })
}

/** How far a turn has come: its state changes to a higher place alone. */
const PLACES: Readonly<Record<FleetRollout['turns'][string]['state'], number>> = Object.freeze({ pending: 0, skipped: 0,
  running: 1, succeeded: 2, reverting: 3, failed: 4, reverted: 4 })
const STATE_OF_TASK: Readonly<Record<Task['way'], 'running' | 'reverting'>> = Object.freeze({ forward: 'running',
  back: 'reverting' })
const PLACE_OF_RESULT = Object.freeze({ forward: PLACES.succeeded, back: PLACES.reverted })

/** Writes the result of the last task if the document does not have it yet, or has lost it. */
function reportResult (state: KnowingState, turn: Turn): State | null {
  const { member, memory: { task }, known: { document } } = state
  const own = document.turns[member]
  if (!task?.result || task.fleet !== document.uid) return null
  const { isUndone, ...result } = task.result
  const at = turn.now.iso
  if (isUndone && own.state === 'succeeded')
    return writeDocument(state, undoTurn(document, member, { at, reason: String(result.reason) }), turn)
  const isGivenUp = own.state === 'failed' && own.rollout === null && task.rollout !== null
  if (task.crash && owesNews(document, member, task.crash.release))
    return writeDocument(state, noteCrash(document, member, { at, crash: task.crash.crash }), turn)
  if (PLACES[own.state] >= PLACE_OF_RESULT[task.way] && !isGivenUp) return null
  return writeDocument(state, finishTurn(document, member, { at, rollout: task.rollout, ...result }), turn)
}

/** Tells whether others may be spared a fault of this release, which the document does not have yet. */
function owesNews ({ kind, state, turns }: FleetRollout, member: string, release: string | null): boolean {
  const own = turns[member]
  return kind === 'deploy' && nextState(state, 'abort') !== null && own.state === 'succeeded' && own.to === release &&
    own.crash === null
}

/**
 * Begins, once, the turn that the document says is under way. A turn that an earlier master began and did not finish
 * has failed.
 */
function resumeTurn (state: KnowingState, turn: Turn): State | null {
  const { document } = state.known
  const own = document.turns[state.member]
  if (!isUnderWay(own)) return null
  const way = own.state === 'running' ? 'forward' : 'back'
  const { task: last } = state.memory
  const isBegun = last !== null && last.fleet === document.uid && last.way === way
  const task: Task = { fleet: document.uid, way, rollout: null, from: own.from, result: null, crash: null }
  if (own.boot !== state.boot)
    return reportResult(withMemory(state, { task: { ...task, rollout: isBegun ? last.rollout : null, result: LOST } }),
      turn)
  if (isBegun) return null
  // All roll back by now, and this member has not deployed anything yet.
  if (way === 'forward' && document.state === 'rolling-back')
    return reportResult(withMemory(state, { task: { ...task, result: NOT_DEPLOYED } }), turn)
  turn.commands.push(
    way === 'forward' ? { type: 'begin', document } : { type: 'roll-back', release: own.from, document }
  )
  return withMemory(state, { task })
}

/** All roll back, so the rollout that runs here is aborted. */
function abortOwnRollout (state: KnowingState, { commands }: Turn): State | null {
  const { member, isAborting, memory: { task }, known: { document } } = state
  if (document.state !== 'rolling-back' || document.turns[member].state !== 'running') return null
  if (!task || task.rollout === null || isAborting) return null
  commands.push({ type: 'abort', rollout: task.rollout, document })
  return { ...state, isAborting: true }
}

function takeNextStep (state: KnowingState, turn: Turn): State {
  const { document } = state.known
  const { at, iso } = turn.now
  const next = nextTurn(document, state.member, { restMs: at - state.restSince,
    turnMs: (member) => at - (state.seen[member]?.at ?? at) })
  if (next.type === 'wait') turn.commands.push({ type: 'wake', ms: next.ms })
  if (next.type === 'hold')
    return writeDocument(state, holdRollout(document, { at: iso, reason: next.reason, member: next.member }), turn)
  if (next.type === 'take') return takeOwnTurn(state, turn)
  return state
}

function takeOwnTurn (state: KnowingState, turn: Turn): State {
  const { document } = state.known
  const { at, iso, release } = turn.now
  // It is still in a turn of a rollout that NATS has lost.
  if (state.memory.task?.result === null) return state
  const settleMs = SETTLE_MS - (at - state.backSince)
  if (settleMs > 0) {
    turn.commands.push({ type: 'wake', ms: settleMs })
    return state
  }
  const from = document.state === 'running' ? { from: release } : {}
  return writeDocument(state, takeTurn(document, state.member, { at: iso, boot: state.boot, ...from }), turn)
}

function writeDocument (state: KnowingState, document: FleetRollout, { commands }: Turn, news?: News): State {
  const { document: before, revision } = state.known
  commands.push({ type: 'write', document, before, revision, ...(news && { news }) })
  return { ...state, isWriting: true }
}

function withMemory<S extends State> (state: S, changes: Partial<Memory>): S {
  return { ...state, memory: { ...state.memory, ...changes } }
}

function withTask (state: State, changes: Partial<Task>): State {
  const { task } = state.memory
  return task ? withMemory(state, { task: { ...task, ...changes } }) : state
}
