import { kindOf, type Tone } from '../events/kinds.ts'
import { doneWord, progressOf } from './progress.ts'
import { groupsOf } from './api-builds.ts'
import { isHeldByCrash, isUnderWay, type FleetRollout, type Turn } from './document.ts'
import { urlOn } from './page-members.ts'
import { count, listText } from '../words/health.ts'
import type { Member } from './presence.ts'

/** A rollout of the fleet as people see it: its hosts in the order of their turns, and how far each of them is. */
type State = FleetRollout['state']
/** `isOver`: nothing can change it any more */
type StateView = { label: string, tone: Tone, icon: string, isOver: boolean, orders: readonly Order[] }
export type Order = 'pause' | 'resume' | 'abort'
type Control = { order: Order, label: string, className: string, isConfirmed: boolean }
/** `at`: the clock of that host */
type Cell = { column: Column, isNow: boolean, label: string, tone: Tone, icon: string, at: string | null,
  tookMs: number | null }
type Column = 'waiting' | 'running' | 'done' | 'rolling-back' | 'back'

/** `orders`: the safest first */
export const ROLLOUT_STATES: Readonly<Record<State, StateView>> = Object.freeze({
  running: { label: 'running', tone: 'info', icon: 'loader-circle', isOver: false, orders: ['pause', 'abort'] },
  paused: { label: 'paused', tone: 'warn', icon: 'hourglass', isOver: false, orders: ['resume', 'abort'] },
  held: { label: 'held', tone: 'bad', icon: 'triangle-alert', isOver: false, orders: ['abort', 'resume'] },
  'rolling-back': { label: 'rolling back', tone: 'warn', icon: 'loader-circle', isOver: false, orders: [] },
  succeeded: { label: 'succeeded', tone: 'ok', icon: 'circle-check', isOver: true, orders: [] },
  failed: { label: 'failed', tone: 'bad', icon: 'circle-x', isOver: true, orders: [] },
  'rolled-back': { label: 'rolled back', tone: 'warn', icon: 'undo-2', isOver: true, orders: [] }
})

const KINDS = Object.freeze({ deploy: 'Deploy to the fleet', restart: 'Restart of the fleet',
  rollback: 'Rollback of the fleet' })

export const TURN_STATES: Readonly<Record<Turn['state'], { label: string, tone: Tone, icon: string, column: Column }>> =
  Object.freeze({ pending: { label: 'waiting', tone: 'idle', icon: 'circle-dashed', column: 'waiting' },
    running: { label: 'running', tone: 'info', icon: 'loader-circle', column: 'running' },
    succeeded: { label: 'done', tone: 'ok', icon: 'circle-check', column: 'done' },
    failed: { label: 'failed', tone: 'bad', icon: 'circle-x', column: 'done' },
    reverting: { label: 'rolling back', tone: 'warn', icon: 'loader-circle', column: 'rolling-back' },
    reverted: { label: 'rolled back', tone: 'warn', icon: 'undo-2', column: 'back' },
    skipped: { label: 'not reached', tone: 'idle', icon: 'circle', column: 'waiting' } })

const NEXT = Object.freeze({ ...TURN_STATES.pending, label: 'next', tone: 'info' })
const COLUMNS: readonly { column: Column, label: string }[] = Object.freeze([{ column: 'waiting', label: 'Waiting' }, {
  column: 'running',
  label: 'Running'
}, { column: 'done', label: 'Done' }, { column: 'rolling-back', label: 'Rolling back' }, { column: 'back',
  label: 'Rolled back' }])
/** More hosts with one fault are counted. */
const MOST_NAMED = 3
const WAY_BACK = Object.freeze(['rolling-back', 'back'])

/** Entries of the timeline, by the names of the fleet's events. */
const TURN_MOMENTS: Readonly<Record<string, { label: string, tone: Tone, icon: string }>> = Object.freeze({
  'turn-started': { label: 'started', tone: 'info', icon: 'arrow-right' },
  'turn-succeeded': { label: 'done', tone: 'ok', icon: 'circle-check' },
  'turn-failed': { label: 'failed', tone: 'bad', icon: 'circle-x' },
  'turn-crashed': { label: 'new crash', tone: 'bad', icon: 'circle-alert' },
  'turn-reverting': { label: 'rolling back', tone: 'warn', icon: 'rotate-cw' },
  'turn-reverted': { label: 'rolled back', tone: 'warn', icon: 'undo-2' }
})

/**
 * @param parts `mostRows`: of more hosts, those that matter now; `isAway`: NATS is away, so the rollout is as it was
 * last seen
 */
export function toFleetRollout (rollout: FleetRollout,
  { members = [], mostRows = Infinity, isAway = false }: { members?: Member[], mostRows?: number, isAway?: boolean } =
    {})
{
  const state = ROLLOUT_STATES[rollout.state]
  const hasWayBack = Object.values(rollout.turns).some(({ state }) => WAY_BACK.includes(TURN_STATES[state].column))
  const known = new Map((isAway ? [] : members).map((member) => [member.member, member]))
  const rows = rowsOf(rollout, known)
  const shown = rows.length <= mostRows ? rows : notableRows(rows, mostRows)
  return { ...summaryView(rollout), stateView: state, ...whyOf(rollout, known), isAway: isAway && !state.isOver,
    controls: isAway ? [] : controlsOf(rollout), progress: { ...progressOf(rollout), word: doneWord(rollout) },
    plan: planOf(rollout), absent: rollout.absent,
    columns: COLUMNS.filter(({ column }) => hasWayBack || !WAY_BACK.includes(column)),
    hasBatches: rollout.batches.some(({ length }) => length > 1), batches: rollout.batches.length, rows: shown,
    hidden: rows.length - shown.length }
}

/** What went wrong. `faults`: new ones of the release, each once, with a way to it where it was first */
function whyOf (rollout: FleetRollout, known: Map<string, Member>) {
  const crashed = rollout.batches.flat().flatMap((member) => {
    const { crash, to } = rollout.turns[member]
    return crash ? [{ member, crash, release: to }] : []
  })
  const faults = groupsOf(crashed, ({ crash }) => crash.fingerprint).map((hosts) => {
    const [{ member, crash, release }] = hosts
    return { release, text: crash.text,
      hosts: hosts.length > MOST_NAMED ? count(hosts.length, 'host') : listText(hosts.map((each) => each.member)),
      url: urlOn(known.get(member), `/crashes/${crash.group}`) ?? `/crashes?member=${member}` }
  })
  return { reason: isHeldByCrash(rollout) ? null : rollout.reason, faults }
}

function summaryView (
  { id, kind, state, actor, note, startedAt, finishedAt, reason }: Pick<FleetRollout,
    'id' | 'kind' | 'state' | 'actor' | 'note' | 'startedAt' | 'finishedAt' | 'reason'>
) {
  const { isOver, label, tone, icon } = ROLLOUT_STATES[state]
  return { id, kind, name: KINDS[kind], state, label, tone, icon, isOver, actor, note, reason, startedAt, finishedAt,
    tookMs: finishedAt === null ? null : Math.max(0, Date.parse(finishedAt) - Date.parse(startedAt)) }
}

/** Shows a rollout that another one has followed: it no longer waits for an operator. */
export function supersededView (rollout: Parameters<typeof summaryView>[0]) {
  const view = summaryView(rollout)
  return rollout.state === 'held' ? { ...view, label: 'held', isOver: true } : view
}

function controlsOf ({ state }: FleetRollout): Control[] {
  return ROLLOUT_STATES[state].orders.map((order) => ({
    order,
    label: { pause: 'Pause', resume: 'Resume', abort: 'Abort' }[order],
    className: order === 'resume' && state === 'paused' ? 'primary' : '',
    // Resuming gives up the hosts that are silent in their turns.
    isConfirmed: order === 'abort' || state === 'held'
  }))
}

function planOf ({ kind, batches, pauseMs, onFailure, state, timeline, turns }: FleetRollout) {
  const isDeploy = kind === 'deploy'
  const most = Math.max(...batches.map(({ length }) => length))
  return { atATime: most === 1 ? 'one at a time' : `up to ${most} at a time`, pauseMs,
    onFailure: state === 'running' && Object.values(turns).some(({ crash }) => crash !== null)
      ? `resumed by ${timeline.findLast(({ type }) => type === 'resumed')?.actor ?? 'somebody'} after a new crash`
      : onFailure === 'rollback' && kind !== 'restart'
      ? `a failure rolls all hosts back${isDeploy ? ', a new crash holds the rollout' : ''}`
      : `a failure ${isDeploy ? 'or a new crash ' : ''}holds the rollout` }
}

function rowsOf (rollout: FleetRollout, known: Map<string, Member>) {
  const times = timesOf(rollout)
  const current = rollout.state === 'running'
    ? rollout.batches.findIndex((batch) =>
      batch.some((member) => ['pending', 'running'].includes(rollout.turns[member].state))
    )
    : -1
  return rollout.batches.flatMap((batch, index) =>
    batch.map((member, place) => {
      const turn = rollout.turns[member]
      const { turnOf, rollout: own = null, isSilent = false } = known.get(member) ?? {}
      return { member, batch: index + 1, isFirst: place === 0, isUnderWay: isUnderWay(turn), state: turn.state,
        cells: cellsOf(turn, { times: times.get(member) ?? {}, isNext: index === current }),
        own: isUnderWay(turn) && turnOf === rollout.uid ? own : null, isSilent,
        releases: turn.to !== null && turn.from !== turn.to ? `${turn.from ?? '?'} → ${turn.to}` : turn.from,
        reason: turn.reason, hasCrashed: turn.crash !== null, isLate: turn.isLate }
    })
  )
}

function cellsOf (turn: Turn, { times, isNext }: { times: Record<string, string>, isNext: boolean }): Cell[] {
  const now = turn.state === 'pending' && isNext ? NEXT : TURN_STATES[turn.state]
  const reached = COLUMNS.findIndex(({ column }) => column === now.column)
  const at = { waiting: null, running: turn.startedAt,
    done: times['turn-succeeded'] ?? times['turn-failed'] ?? (now.column === 'done' ? turn.finishedAt : null),
    'rolling-back': times['turn-reverting'] ?? null,
    back: times['turn-reverted'] ?? (now.column === 'back' ? turn.finishedAt : null) }
  return COLUMNS.slice(0, reached + 1).flatMap(({ column }, index) => {
    const isNow = index === reached
    // A host that was rolled back in its turn was never done.
    if (!isNow && column !== 'waiting' && at[column] === null) return []
    const view = isNow ? now : pastView(column, times)
    const tookMs = column === 'done'
      ? msBetween(at.running, at.done)
      : column === 'back'
      ? msBetween(at['rolling-back'], at.back)
      : null
    return [{ column, isNow, label: view.label, tone: view.tone, icon: view.icon, at: at[column], tookMs }]
  })
}

function pastView (column: Column, times: Record<string, string>): Pick<Cell, 'label' | 'tone' | 'icon'> {
  if (column === 'done')
    return times['turn-failed'] && !times['turn-succeeded'] ? TURN_STATES.failed : TURN_STATES.succeeded
  return {
    label: { waiting: 'waited', running: 'started', 'rolling-back': 'rolling back', back: 'rolled back' }[column],
    tone: 'idle',
    icon: 'circle'
  }
}

/** Times of each host by its own clock, as far back as the timeline goes. */
function timesOf ({ timeline }: FleetRollout): Map<string, Record<string, string>> {
  const times: Map<string, Record<string, string>> = new Map()
  for (const { type, member, at } of timeline) {
    if (member && Object.hasOwn(TURN_MOMENTS, type)) times.set(member, { ...times.get(member), [type]: at })
  }
  return times
}

function msBetween (from: string | null, to: string | null): number | null {
  return from && to ? Math.max(0, Date.parse(to) - Date.parse(from)) : null
}

/** Picks the hosts in their turns, those that failed, and their neighbours. */
function notableRows<R extends { state: Turn['state'], isUnderWay: boolean }> (rows: R[], most: number): R[] {
  const wanted = new Set(rows.filter(({ state, isUnderWay }) => isUnderWay || state === 'failed').slice(0, most))
  const from = Math.max(0, rows.findIndex(({ state, isUnderWay }) => isUnderWay || state === 'pending') - 3)
  for (const row of [...rows.slice(from), ...rows.slice(0, from).reverse()]) {
    if (wanted.size >= most) break
    wanted.add(row)
  }
  return rows.filter((row) => wanted.has(row))
}

/** @returns what happened, oldest first; each time is of the clock of its host */
export function momentsOf ({ timeline }: FleetRollout) {
  return timeline.map(({ at, type, member, actor, message }, index) => {
    const turn = Object.hasOwn(TURN_MOMENTS, type) ? TURN_MOMENTS[type] : null
    const { icon, tone, label } = turn ?? kindOf({ type: `fleet.rollout-${type}`, cause: null })
    return { key: `${Date.parse(at)}-${type}-${index}`, at, icon, tone, label, member: turn ? member : null, actor,
      message }
  })
}

/** @returns changes with any change of the rollout */
export function versionOf (rollout: FleetRollout | null): string {
  const last = rollout?.timeline.at(-1)
  return rollout
    ? [rollout.id, rollout.state, rollout.timeline.length, last?.at, last?.type, last?.member].join(' ')
    : ''
}
