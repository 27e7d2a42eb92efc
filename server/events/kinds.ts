import { FAULTS, isOneOf } from '../causes.ts'
import type { DeckEvent, Detail } from './stream.ts'

/** Every type of event: how it looks, how much it matters and who is told. */
/** a colour with a meaning */
export type Tone = 'ok' | 'info' | 'drain' | 'warn' | 'bad' | 'idle'
/**
 * `routine`: a step of something that has an event of its own, in the history alone; `notable`: also on the overview;
 * `problem`: also in the filter for problems; `alert`: also sent by an alert that names no events
 */
type Weight = 'routine' | 'notable' | 'problem' | 'alert'
type EventKind = {
  /** of icons.svg */
  icon: string,
  tone: Tone,
  label: string,
  /** default: notable */
  weight?: Weight,
  /** of another problem: the filter for problems shows only that one */
  isConsequence?: boolean,
  /** whether the master prints it in its terminal */
  inTerminal?: boolean | ((event: Seen) => boolean)
}
/** The types of events follow from the table below, so it cannot know events by their types. */
type Seen = { cause: string | null, slot: number | null, detail: Detail | null }
export type EventType = keyof typeof ROWS

const ROWS = { 'master.started': { icon: 'power', tone: 'info', label: 'Master started' },
  'master.waiting': { icon: 'hourglass', tone: 'warn', label: 'Slow start', inTerminal: true },
  'master.stopped': { icon: 'power', tone: 'idle', label: 'Master stopped' },
  'master.upgrading': { icon: 'rocket', tone: 'info', label: 'Upgrade started', inTerminal: true },
  'master.upgraded': { icon: 'circle-check', tone: 'ok', label: 'Upgraded', inTerminal: true },
  'master.upgrade-failed': { icon: 'triangle-alert', tone: 'bad', label: 'Upgrade failed', weight: 'alert',
    inTerminal: true },
  'keeper.lost': { icon: 'triangle-alert', tone: 'bad', label: 'Keeper lost', weight: 'alert', inTerminal: true },
  'app.adopted': { icon: 'package', tone: 'ok', label: 'Moved into the host', inTerminal: true },
  'app.added': { icon: 'package', tone: 'info', label: 'App added', inTerminal: true },
  'app.started': { icon: 'power', tone: 'info', label: 'App started', inTerminal: true },
  'app.stopped': { icon: 'power', tone: 'idle', label: 'App stopped', inTerminal: true },
  'app.failed': { icon: 'triangle-alert', tone: 'bad', label: 'App failed', weight: 'alert', inTerminal: true },
  'app.recovered': { icon: 'circle-check', tone: 'ok', label: 'App recovered', weight: 'alert', inTerminal: true },
  'app.removed': { icon: 'circle-x', tone: 'idle', label: 'App removed', inTerminal: true },
  'worker.forked': { icon: 'git-fork', tone: 'idle', label: 'Worker forked', weight: 'routine' },
  'worker.online': { icon: 'radio', tone: 'idle', label: 'Worker online', weight: 'routine' },
  'worker.listening': { icon: 'plug', tone: 'idle', label: 'Worker listening', weight: 'routine' },
  'worker.ready': { icon: 'circle-check', tone: 'ok', label: 'Worker ready' },
  'worker.no-server': { icon: 'circle-alert', tone: 'warn', label: 'Ready without listening', inTerminal: true },
  'worker.listens-late': { icon: 'circle-alert', tone: 'warn', label: 'Listens after all', inTerminal: true },
  'worker.thread-port-taken': { icon: 'circle-alert', tone: 'warn', label: 'Port of a thread is in use',
    weight: 'problem', inTerminal: true },
  'worker.warm-up-failed': { icon: 'circle-alert', tone: 'warn', label: 'Warm-up failed' },
  'worker.standby': { icon: 'hourglass', tone: 'idle', label: 'Worker on standby', weight: 'routine' },
  'worker.promoted': { icon: 'arrow-right', tone: 'info', label: 'Standby took over' },
  'worker.draining': { icon: 'hourglass', tone: 'drain', label: 'Worker draining', weight: 'routine' },
  'worker.kept': { icon: 'radio', tone: 'drain', label: 'Old worker kept' },
  'worker.closing': { icon: 'unplug', tone: 'drain', label: 'Connections closing' },
  'worker.exited': { icon: 'circle-x', tone: 'idle', label: 'Worker exited',
    inTerminal: (event) => isOneOf(FAULTS, event.cause) || event.detail?.endedConnections !== undefined },
  'worker.unresponsive': { icon: 'triangle-alert', tone: 'bad', label: 'Worker unresponsive', weight: 'alert' },
  'worker.responsive': { icon: 'heart-pulse', tone: 'ok', label: 'Worker responsive again' },
  'worker.killed': { icon: 'circle-x', tone: 'warn', label: 'Worker killed' },
  'worker.recycling': { icon: 'rotate-cw', tone: 'info', label: 'Worker recycled' },
  'memory.growing': { icon: 'triangle-alert', tone: 'bad', label: 'Growing memory', weight: 'alert', inTerminal: true },
  'memory.examined': { icon: 'database', tone: 'warn', label: 'What held the memory', weight: 'problem',
    inTerminal: true }, 'worker.recycle-failed': { icon: 'triangle-alert', tone: 'warn', label: 'Recycling failed' },
  'recycling.slowed': { icon: 'hourglass', tone: 'warn', label: 'Recycling slowed', weight: 'problem',
    inTerminal: true },
  'worker.message': { icon: 'message', tone: 'info', label: 'Message of the app', weight: 'routine' },
  'worker.unanswered': { icon: 'circle-alert', tone: 'warn', label: 'Nobody answers the app', weight: 'problem',
    inTerminal: true }, 'worker.orphaned': { icon: 'circle-alert', tone: 'warn', label: 'Worker without master' },
  'worker.restarted': { icon: 'rotate-cw', tone: 'warn', label: 'Worker restarted', inTerminal: true },
  'worker.crash-looping': { icon: 'repeat', tone: 'bad', label: 'Crash loop', weight: 'alert', inTerminal: true },
  'worker.recovered': { icon: 'heart-pulse', tone: 'ok', label: 'Crash loop ended', inTerminal: true },
  'worker.drifted': { icon: 'triangle-alert', tone: 'warn', label: 'Worker drifted', weight: 'problem',
    inTerminal: true },
  'route.slowed': { icon: 'triangle-alert', tone: 'bad', label: 'Slow requests', weight: 'alert', inTerminal: true },
  'route.recovered': { icon: 'heart-pulse', tone: 'ok', label: 'Requests as fast as usual', inTerminal: true },
  'standby.useless': { icon: 'circle-alert', tone: 'warn', label: 'No standby', inTerminal: true },
  'slot.finished': { icon: 'circle-check', tone: 'ok', label: 'Slot finished', inTerminal: true },
  'slot.held': { icon: 'hourglass', tone: 'bad', label: 'Slot held', weight: 'alert', inTerminal: true },
  'slot.resumed': { icon: 'circle-check', tone: 'ok', label: 'Slot resumed', inTerminal: true },
  'crash.group-new': { icon: 'circle-alert', tone: 'bad', label: 'New crash', weight: 'alert', isConsequence: true },
  'crash.group-returned': { icon: 'repeat', tone: 'bad', label: 'Crash came back', weight: 'alert',
    isConsequence: true }, 'crash.group-resolved': { icon: 'circle-check', tone: 'ok', label: 'Crash resolved' },
  'crash.group-muted': { icon: 'circle-check', tone: 'idle', label: 'Crash muted' },
  'crash.group-reopened': { icon: 'circle-alert', tone: 'warn', label: 'Crash reopened' },
  'crash.records-lost': { icon: 'database', tone: 'warn', label: 'Crash records lost', weight: 'problem',
    inTerminal: true },
  'fleet.connected': { icon: 'radio', tone: 'idle', label: 'Fleet connected', weight: 'routine', inTerminal: true },
  'fleet.away': { icon: 'circle-alert', tone: 'warn', label: 'Cut off from the fleet', weight: 'problem',
    inTerminal: true },
  'fleet.host-silent': { icon: 'unplug', tone: 'bad', label: 'Host silent', weight: 'alert', inTerminal: true },
  'fleet.host-back': { icon: 'heart-pulse', tone: 'ok', label: 'Host is back', inTerminal: true },
  'fleet.host-left': { icon: 'log-out', tone: 'idle', label: 'Host left the fleet', inTerminal: true },
  'fleet.host-forgotten': { icon: 'log-out', tone: 'idle', label: 'Host forgotten', inTerminal: true },
  'fleet.name-taken': { icon: 'circle-alert', tone: 'warn', label: 'Name taken in the fleet', weight: 'problem',
    inTerminal: true },
  'fleet.forgotten': { icon: 'triangle-alert', tone: 'bad', label: 'Fleet forgot', weight: 'alert' },
  'fleet.abort-refused': { icon: 'circle-alert', tone: 'idle', label: 'Fleet abort came late', weight: 'routine' },
  'fleet.rollout-started': { icon: 'rocket', tone: 'info', label: 'Fleet rollout started' },
  'fleet.rollout-paused': { icon: 'hourglass', tone: 'warn', label: 'Fleet rollout paused' },
  'fleet.rollout-resumed': { icon: 'arrow-right', tone: 'info', label: 'Fleet rollout resumed' },
  'fleet.rollout-aborted': { icon: 'rotate-cw', tone: 'warn', label: 'Fleet rollout aborted' },
  'fleet.rollout-held': { icon: 'triangle-alert', tone: 'bad', label: 'Fleet rollout held', weight: 'alert' },
  'fleet.rollout-rolling-back': { icon: 'rotate-cw', tone: 'warn', label: 'Fleet rollout rolls back',
    weight: 'problem' },
  'fleet.rollout-succeeded': { icon: 'circle-check', tone: 'ok', label: 'Fleet rollout succeeded' },
  'fleet.rollout-failed': { icon: 'triangle-alert', tone: 'bad', label: 'Fleet rollout failed', weight: 'alert' },
  'fleet.rollout-rolled-back': { icon: 'rotate-cw', tone: 'warn', label: 'Fleet rolled back', weight: 'problem' },
  'clock.set-back': { icon: 'hourglass', tone: 'warn', label: 'Clock set back', inTerminal: true },
  'restart.skipped': { icon: 'circle-alert', tone: 'warn', label: 'Restart skipped', inTerminal: true },
  'rollout.started': { icon: 'rocket', tone: 'info', label: 'Rollout started', inTerminal: true },
  'rollout.step': { icon: 'arrow-right', tone: 'info', label: 'Rollout step', weight: 'routine',
    inTerminal: isEndOfStep },
  'rollout.held': { icon: 'hourglass', tone: 'bad', label: 'Rollout held', weight: 'alert', inTerminal: true },
  'rollout.paused': { icon: 'circle-alert', tone: 'warn', label: 'Rollout paused', inTerminal: true },
  'rollout.resumed': { icon: 'arrow-right', tone: 'info', label: 'Rollout resumed', inTerminal: true },
  'rollout.promoted': { icon: 'arrow-right', tone: 'info', label: 'Canary promoted' },
  'rollout.judged': { icon: 'heart-pulse', tone: 'info', label: 'Canary judged', inTerminal: true },
  'rollout.rolling-back': { icon: 'repeat', tone: 'warn', label: 'Rollout rolling back', inTerminal: true },
  'rollout.rolled-back': { icon: 'triangle-alert', tone: 'bad', label: 'Rolled back', weight: 'alert',
    inTerminal: true },
  'rollout.succeeded': { icon: 'circle-check', tone: 'ok', label: 'Rollout succeeded', inTerminal: true },
  'rollout.failed': { icon: 'triangle-alert', tone: 'bad', label: 'Rollout failed', weight: 'alert', inTerminal: true },
  'start.rolled-back': { icon: 'triangle-alert', tone: 'bad', label: 'Start rolled back', weight: 'alert',
    inTerminal: true },
  'rollback.refused': { icon: 'triangle-alert', tone: 'bad', label: 'Not rolled back', weight: 'alert',
    inTerminal: true }, 'hook.started': { icon: 'terminal', tone: 'info', label: 'Hook started', weight: 'routine' },
  'hook.succeeded': { icon: 'terminal', tone: 'ok', label: 'Hook succeeded' },
  'hook.failed': { icon: 'terminal', tone: 'bad', label: 'Hook failed', weight: 'problem', inTerminal: true },
  'job.started': { icon: 'terminal', tone: 'info', label: 'Job started', weight: 'routine' },
  'job.step': { icon: 'terminal', tone: 'info', label: 'Step of a run', weight: 'routine' },
  'job.continued': { icon: 'terminal', tone: 'info', label: 'Job goes on', weight: 'routine' },
  'job.succeeded': { icon: 'terminal', tone: 'ok', label: 'Job succeeded' },
  'job.failed': { icon: 'terminal', tone: 'bad', label: 'Job failed', weight: 'alert', inTerminal: true },
  'job.command-failed': { icon: 'terminal', tone: 'bad', label: 'Command failed', weight: 'problem', inTerminal: true },
  'job.skipped': { icon: 'hourglass', tone: 'warn', label: 'Job skipped' },
  'job.missed': { icon: 'hourglass', tone: 'warn', label: 'Job was late', weight: 'problem', inTerminal: true },
  'job.interrupted': { icon: 'terminal', tone: 'warn', label: 'Job interrupted', weight: 'problem', inTerminal: true },
  'job.acknowledged': { icon: 'circle-check', tone: 'idle', label: 'Job failure acknowledged' },
  'job.paused': { icon: 'hourglass', tone: 'warn', label: 'Job paused' },
  'job.resumed': { icon: 'arrow-right', tone: 'info', label: 'Job resumed' },
  'notice.acknowledged': { icon: 'circle-check', tone: 'idle', label: 'Notice acknowledged' },
  'message.sent': { icon: 'message', tone: 'info', label: 'Message sent' },
  'diagnostics.started': { icon: 'info', tone: 'info', label: 'Diagnostics started', weight: 'routine' },
  'diagnostics.finished': { icon: 'download', tone: 'ok', label: 'Diagnostics finished' },
  'diagnostics.failed': { icon: 'triangle-alert', tone: 'warn', label: 'Diagnostics failed' },
  'diagnostics.downloaded': { icon: 'download', tone: 'info', label: 'Diagnostics downloaded' },
  'diagnostics.deleted': { icon: 'circle-x', tone: 'idle', label: 'Diagnostics deleted' },
  'alert.failed': { icon: 'circle-alert', tone: 'warn', label: 'Alert not delivered' },
  'access.signed-in': { icon: 'info', tone: 'info', label: 'Signed in', weight: 'routine' },
  'access.switched': { icon: 'arrow-right', tone: 'info', label: 'Switched to another deck', weight: 'routine' },
  'access.used': { icon: 'info', tone: 'idle', label: 'Access used', weight: 'routine' },
  'access.refused': { icon: 'circle-alert', tone: 'warn', label: 'Access refused', weight: 'problem' },
  'token.created': { icon: 'info', tone: 'info', label: 'Token created' },
  'token.revoked': { icon: 'circle-x', tone: 'warn', label: 'Token revoked' },
  'alert.added': { icon: 'bell', tone: 'info', label: 'Alert added' },
  'alert.changed': { icon: 'bell', tone: 'info', label: 'Alert changed' },
  'alert.deleted': { icon: 'bell-off', tone: 'warn', label: 'Alert deleted' },
  'alert.tested': { icon: 'bell', tone: 'info', label: 'Alert tested' },
  'alert.retried': { icon: 'repeat', tone: 'info', label: 'Alert sent again' },
  'scale.changed': { icon: 'scaling', tone: 'info', label: 'Scale changed', inTerminal: true },
  'config.changed': { icon: 'settings-2', tone: 'info', label: 'Settings changed', inTerminal: true },
  'socket.unused': { icon: 'plug', tone: 'warn', label: 'Socket unused', inTerminal: true },
  'secrets.failed': { icon: 'triangle-alert', tone: 'bad', label: 'Secrets not read', weight: 'alert',
    inTerminal: true }, 'secrets.read': { icon: 'circle-check', tone: 'ok', label: 'Secrets read', inTerminal: true },
  'release.created': { icon: 'package', tone: 'info', label: 'Release created' },
  'telemetry.failed': { icon: 'circle-alert', tone: 'warn', label: 'Telemetry not delivered', weight: 'problem',
    inTerminal: true }, 'telemetry.recovered': { icon: 'circle-check', tone: 'ok', label: 'Telemetry delivered again' },
  'heartbeat.failed': { icon: 'circle-alert', tone: 'warn', label: 'Heartbeat not delivered', weight: 'problem',
    inTerminal: true }, 'heartbeat.recovered': { icon: 'circle-check', tone: 'ok', label: 'Heartbeat delivered again' },
  'history.degraded': { icon: 'database', tone: 'bad', label: 'History degraded', weight: 'alert', inTerminal: true },
  'history.recovered': { icon: 'database', tone: 'ok', label: 'History recovered', inTerminal: true },
  unexpected: { icon: 'circle-alert', tone: 'warn', label: 'Unexpected', weight: 'problem',
    inTerminal: true } } satisfies Record<string, EventKind>
const KINDS: Readonly<Record<string, EventKind>> = Object.freeze(ROWS)

/** What a cause changes, by `type:cause`. */
const BY_CAUSE: Readonly<Record<string, Partial<EventKind>>> = Object.freeze({
  'master.stopped:master-lost': { tone: 'bad', label: 'Master lost', weight: 'alert' },
  'worker.exited:finished': { icon: 'circle-check', tone: 'ok', label: 'Worker finished' },
  ...Object.fromEntries(
    [...FAULTS, 'operator'].map((cause) => [`slot.finished:${cause}`, { icon: 'triangle-alert', tone: 'bad' }])
  ),
  ...Object.fromEntries(FAULTS.map((cause) => [`worker.exited:${cause}`, { tone: 'bad', weight: 'problem' }]))
})

export const EVENT_TYPES = Object.freeze(Object.keys(ROWS) as EventType[])
export const NOTABLE_TYPES = Object.freeze(ofWeight(KINDS, 'notable', 'problem', 'alert'))
/** Each is `type` or `type:cause`. */
export const PROBLEMS = Object.freeze([
  ...ofWeight(KINDS, 'problem', 'alert').filter((type) => !KINDS[type].isConsequence),
  ...ofWeight(BY_CAUSE, 'problem', 'alert')
])
/** Each is `type` or `type:cause`, as alerts name them. */
export const ALERTS = Object.freeze([...ofWeight(KINDS, 'alert'), ...ofWeight(BY_CAUSE, 'alert')])

/** `detail`: of a verdict, which has its tone from it. Returns also for unknown types */
export function kindOf (
  { type, cause, detail }: Pick<DeckEvent, 'type' | 'cause'> & Partial<Pick<DeckEvent, 'detail'>>
): EventKind {
  const passed = type === 'rollout.judged' ? detail?.verdicts?.at(-1)?.passed : undefined
  return { icon: 'circle', tone: 'idle', label: type, ...(Object.hasOwn(KINDS, type) && KINDS[type]),
    ...BY_CAUSE[`${type}:${cause}`], ...(passed !== undefined && { tone: passed ? 'ok' : 'warn' }) }
}

export function isInTerminal (event: DeckEvent) {
  const { inTerminal = false } = kindOf(event)
  return typeof inTerminal === 'function' ? inTerminal(event) : inTerminal
}

function isEndOfStep ({ slot, detail }: Seen) {
  const step = detail?.steps?.find((each) => each.slot === slot)
  return ['done', 'failed', 'reverted'].includes(String(step?.state))
}

function ofWeight (kinds: Readonly<Record<string, Partial<EventKind>>>, ...weights: Weight[]) {
  return Object.keys(kinds).filter((name) => weights.includes(kinds[name].weight ?? 'notable'))
}
