import { kindOf } from '../events/kinds.js'

/**
 * A rollout of the fleet as people see it: its hosts in the order of their turns, and how far each of them is.
 * @typedef {import('../events/kinds.js').Tone} Tone
 * @typedef {import('../fleet/rollout.js').FleetRollout} FleetRollout
 * @typedef {import('../fleet/rollout.js').Turn} Turn
 * @typedef {import('../fleet/presence.js').Member} Member
 * @typedef {FleetRollout['state']} State
 * @typedef {{ label: string, tone: Tone, icon: string, isOver: boolean, orders: readonly Order[] }} StateView  `isOver`: nothing can change it any more
 * @typedef {'pause' | 'resume' | 'abort'} Order
 * @typedef {{ order: Order, label: string, className: string, isConfirmed: boolean }} Control
 * @typedef {{
 *   column: Column,
 *   isNow: boolean,
 *   label: string,
 *   tone: Tone,
 *   icon: string,
 *   at: string | null,
 *   tookMs: number | null
 * }} Cell  `at`: the clock of that host
 * @typedef {'waiting' | 'running' | 'done' | 'rolling-back' | 'back'} Column
 */

/** @type {Readonly<Record<State, StateView>>} `orders`: the safest first */
export const ROLLOUT_STATES = Object.freeze({
  running: { label: 'running', tone: 'info', icon: 'loader-circle', isOver: false, orders: ['pause', 'abort'] },
  paused: { label: 'paused', tone: 'warn', icon: 'hourglass', isOver: false, orders: ['resume', 'abort'] },
  held: { label: 'held', tone: 'bad', icon: 'triangle-alert', isOver: false, orders: ['abort', 'resume'] },
  'rolling-back': { label: 'rolling back', tone: 'warn', icon: 'loader-circle', isOver: false, orders: [] },
  succeeded: { label: 'succeeded', tone: 'ok', icon: 'circle-check', isOver: true, orders: [] },
  failed: { label: 'failed', tone: 'bad', icon: 'circle-x', isOver: true, orders: [] },
  'rolled-back': { label: 'rolled back', tone: 'warn', icon: 'undo-2', isOver: true, orders: [] }
})

const KINDS = Object.freeze({ deploy: 'Deploy to the fleet', restart: 'Restart of the fleet', rollback: 'Rollback of the fleet' })

/** @type {Readonly<Record<Turn['state'], { label: string, tone: Tone, icon: string, column: Column }>>} */
export const TURN_STATES = Object.freeze({
  pending: { label: 'waiting', tone: 'idle', icon: 'circle-dashed', column: 'waiting' },
  running: { label: 'running', tone: 'info', icon: 'loader-circle', column: 'running' },
  succeeded: { label: 'done', tone: 'ok', icon: 'circle-check', column: 'done' },
  failed: { label: 'failed', tone: 'bad', icon: 'circle-x', column: 'done' },
  reverting: { label: 'rolling back', tone: 'warn', icon: 'loader-circle', column: 'rolling-back' },
  reverted: { label: 'rolled back', tone: 'warn', icon: 'undo-2', column: 'back' },
  skipped: { label: 'not reached', tone: 'idle', icon: 'circle', column: 'waiting' }
})

const NEXT = Object.freeze({ ...TURN_STATES.pending, label: 'next', tone: 'info' })
/** @type {readonly { column: Column, label: string }[]} */
const COLUMNS = Object.freeze([
  { column: 'waiting', label: 'Waiting' },
  { column: 'running', label: 'Running' },
  { column: 'done', label: 'Done' },
  { column: 'rolling-back', label: 'Rolling back' },
  { column: 'back', label: 'Rolled back' }
])
const WAY_BACK = Object.freeze(['rolling-back', 'back'])
const UNDER_WAY = Object.freeze(['running', 'reverting'])

/** Entries of the timeline, by the names of the fleet's events. @type {Readonly<Record<string, { label: string, tone: Tone, icon: string }>>} */
const TURN_MOMENTS = Object.freeze({
  'turn-started': { label: 'started', tone: 'info', icon: 'arrow-right' },
  'turn-succeeded': { label: 'done', tone: 'ok', icon: 'circle-check' },
  'turn-failed': { label: 'failed', tone: 'bad', icon: 'circle-x' },
  'turn-reverting': { label: 'rolling back', tone: 'warn', icon: 'rotate-cw' },
  'turn-reverted': { label: 'rolled back', tone: 'warn', icon: 'undo-2' }
})

/**
 * @param {FleetRollout} rollout
 * @param {{ members?: Member[], mostRows?: number, isAway?: boolean }} [parts]
 *   `mostRows`: of more hosts, those that matter now; `isAway`: NATS is away, so the rollout is as it was last seen
 */
export function toFleetRollout (rollout, { members = [], mostRows = Infinity, isAway = false } = {}) {
  const state = ROLLOUT_STATES[rollout.state]
  const hasWayBack = Object.values(rollout.turns).some(({ state }) => WAY_BACK.includes(TURN_STATES[state].column))
  const known = new Map((isAway ? [] : members).map((member) => [member.member, member]))
  const rows = rowsOf(rollout, known)
  const shown = rows.length <= mostRows ? rows : notableRows(rows, mostRows)
  return {
    ...summaryView(rollout),
    stateView: state,
    reason: rollout.reason,
    isAway: isAway && !state.isOver,
    controls: isAway ? [] : controlsOf(rollout),
    progress: progressOf(rollout),
    plan: planOf(rollout),
    absent: rollout.absent,
    columns: COLUMNS.filter(({ column }) => hasWayBack || !WAY_BACK.includes(column)),
    hasBatches: rollout.batches.some(({ length }) => length > 1),
    batches: rollout.batches.length,
    rows: shown,
    hidden: rows.length - shown.length
  }
}

/** @param {Pick<FleetRollout, 'id' | 'kind' | 'state' | 'actor' | 'note' | 'startedAt' | 'finishedAt' | 'reason'>} rollout */
function summaryView ({ id, kind, state, actor, note, startedAt, finishedAt, reason }) {
  const { isOver, label, tone, icon } = ROLLOUT_STATES[state]
  return {
    id,
    kind,
    name: KINDS[kind],
    state,
    label,
    tone,
    icon,
    isOver,
    actor,
    note,
    reason,
    startedAt,
    finishedAt,
    tookMs: finishedAt === null ? null : Math.max(0, Date.parse(finishedAt) - Date.parse(startedAt))
  }
}

/** Shows a rollout that another one has followed: it no longer waits for an operator. @param {Parameters<typeof summaryView>[0]} rollout */
export function supersededView (rollout) {
  const view = summaryView(rollout)
  return rollout.state === 'held' ? { ...view, label: 'held', isOver: true } : view
}

/** @param {FleetRollout} rollout @returns {Control[]} */
function controlsOf ({ state }) {
  return ROLLOUT_STATES[state].orders.map((order) => ({
    order,
    label: { pause: 'Pause', resume: 'Resume', abort: 'Abort' }[order],
    className: order === 'resume' && state === 'paused' ? 'primary' : '',
    // Resuming gives up the hosts that are silent in their turns.
    isConfirmed: order === 'abort' || state === 'held'
  }))
}

/** @param {FleetRollout} rollout */
function progressOf ({ state, turns }) {
  const states = Object.values(turns).map(({ state }) => state)
  const countOf = (/** @type {Turn['state'][]} */ ...wanted) => states.filter((each) => wanted.includes(each)).length
  const isBack = state === 'rolling-back' || state === 'rolled-back'
  const reached = isBack ? countOf('reverted') : countOf('succeeded')
  const total = isBack ? countOf('reverted', 'reverting', 'succeeded', 'running') : states.length
  return { reached, total, word: isBack ? 'rolled back' : 'done', failed: countOf('failed'), underWay: countOf('running', 'reverting') }
}

/** @param {FleetRollout} rollout */
function planOf ({ kind, batches, pauseMs, onFailure }) {
  const most = Math.max(...batches.map(({ length }) => length))
  return {
    atATime: most === 1 ? 'one at a time' : `up to ${most} at a time`,
    pauseMs,
    onFailure: onFailure === 'rollback' && kind !== 'restart' ? 'a failure rolls all hosts back' : 'a failure holds the rollout'
  }
}

/** @param {FleetRollout} rollout @param {Map<string, Member>} known */
function rowsOf (rollout, known) {
  const times = timesOf(rollout)
  const current = rollout.state === 'running'
    ? rollout.batches.findIndex((batch) => batch.some((member) => ['pending', 'running'].includes(rollout.turns[member].state)))
    : -1
  return rollout.batches.flatMap((batch, index) => batch.map((member, place) => {
    const turn = rollout.turns[member]
    const own = known.get(member)?.rollout
    return {
      member,
      batch: index + 1,
      isFirst: place === 0,
      isUnderWay: UNDER_WAY.includes(turn.state),
      state: turn.state,
      cells: cellsOf(turn, { times: times.get(member) ?? {}, isNext: index === current }),
      own: own && UNDER_WAY.includes(turn.state) && own.id === turn.rollout ? own : null,
      isSilent: known.get(member)?.isSilent ?? false,
      releases: turn.to !== null && turn.from !== turn.to ? `${turn.from ?? '?'} → ${turn.to}` : turn.from,
      reason: turn.reason,
      isLate: turn.isLate
    }
  }))
}

/** @param {Turn} turn @param {{ times: Record<string, string>, isNext: boolean }} parts @returns {Cell[]} */
function cellsOf (turn, { times, isNext }) {
  const now = turn.state === 'pending' && isNext ? NEXT : TURN_STATES[turn.state]
  const reached = COLUMNS.findIndex(({ column }) => column === now.column)
  const at = {
    waiting: null,
    running: turn.startedAt,
    done: times['turn-succeeded'] ?? times['turn-failed'] ?? (now.column === 'done' ? turn.finishedAt : null),
    'rolling-back': times['turn-reverting'] ?? null,
    back: times['turn-reverted'] ?? (now.column === 'back' ? turn.finishedAt : null)
  }
  return COLUMNS.slice(0, reached + 1).flatMap(({ column }, index) => {
    const isNow = index === reached
    // A host that was rolled back in its turn was never done.
    if (!isNow && column !== 'waiting' && at[column] === null) return []
    const view = isNow ? now : pastView(column, times)
    const tookMs = column === 'done' ? msBetween(at.running, at.done) : column === 'back' ? msBetween(at['rolling-back'], at.back) : null
    return [{ column, isNow, label: view.label, tone: view.tone, icon: view.icon, at: at[column], tookMs }]
  })
}

/** @param {Column} column @param {Record<string, string>} times @returns {Pick<Cell, 'label' | 'tone' | 'icon'>} */
function pastView (column, times) {
  if (column === 'done') return times['turn-failed'] && !times['turn-succeeded'] ? TURN_STATES.failed : TURN_STATES.succeeded
  return {
    label: { waiting: 'waited', running: 'started', 'rolling-back': 'rolling back', back: 'rolled back' }[column],
    tone: 'idle',
    icon: 'circle'
  }
}

/**
 * Times of each host by its own clock, as far back as the timeline goes.
 * @param {FleetRollout} rollout
 * @returns {Map<string, Record<string, string>>}
 */
function timesOf ({ timeline }) {
  /** @type {Map<string, Record<string, string>>} */
  const times = new Map()
  for (const { type, member, at } of timeline) {
    if (member && Object.hasOwn(TURN_MOMENTS, type)) times.set(member, { ...times.get(member), [type]: at })
  }
  return times
}

/** @param {string | null} from @param {string | null} to @returns {number | null} ms */
function msBetween (from, to) {
  return from && to ? Math.max(0, Date.parse(to) - Date.parse(from)) : null
}

/**
 * Picks the hosts in their turns, those that failed, and their neighbours.
 * @template {{ state: Turn['state'], isUnderWay: boolean }} R @param {R[]} rows @param {number} most @returns {R[]}
 */
function notableRows (rows, most) {
  const wanted = new Set(rows.filter(({ state, isUnderWay }) => isUnderWay || state === 'failed').slice(0, most))
  const from = Math.max(0, rows.findIndex(({ state, isUnderWay }) => isUnderWay || state === 'pending') - 3)
  for (const row of [...rows.slice(from), ...rows.slice(0, from).reverse()]) {
    if (wanted.size >= most) break
    wanted.add(row)
  }
  return rows.filter((row) => wanted.has(row))
}

/** @param {FleetRollout} rollout @returns what happened, oldest first; each time is of the clock of its host */
export function momentsOf ({ timeline }) {
  return timeline.map(({ at, type, member, actor, message }, index) => {
    const turn = Object.hasOwn(TURN_MOMENTS, type) ? TURN_MOMENTS[type] : null
    const { icon, tone, label } = turn ?? kindOf({ type: `fleet.rollout-${type}`, cause: null })
    return { key: `${Date.parse(at)}-${type}-${index}`, at, icon, tone, label, member: turn ? member : null, actor, message }
  })
}

/** @param {FleetRollout | null} rollout @returns {string} changes with any change of the rollout */
export function versionOf (rollout) {
  const last = rollout?.timeline.at(-1)
  return rollout ? [rollout.id, rollout.state, rollout.timeline.length, last?.at, last?.type, last?.member].join(' ') : ''
}
