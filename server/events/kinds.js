/**
 * How each type of event is shown: an icon of the sprite, a tone (a colour with a meaning) and a name.
 * @typedef {'ok' | 'info' | 'drain' | 'warn' | 'bad' | 'idle'} Tone
 * @typedef {{ icon: string, tone: Tone, label: string }} EventKind
 * @typedef {import('./stream.js').DeckEvent} DeckEvent
 */

/** @type {Readonly<Record<string, EventKind>>} */
const KINDS = Object.freeze({
  'master.started': { icon: 'power', tone: 'info', label: 'Master started' },
  'master.waiting': { icon: 'hourglass', tone: 'warn', label: 'Start takes long' },
  'master.stopped': { icon: 'power', tone: 'idle', label: 'Master stopped' },
  'master.upgrading': { icon: 'rocket', tone: 'info', label: 'Upgrade started' },
  'master.upgraded': { icon: 'circle-check', tone: 'ok', label: 'Upgraded' },
  'master.upgrade-failed': { icon: 'triangle-alert', tone: 'bad', label: 'Upgrade failed' },
  'keeper.lost': { icon: 'triangle-alert', tone: 'bad', label: 'Keeper lost' },
  'worker.forked': { icon: 'git-fork', tone: 'idle', label: 'Worker forked' },
  'worker.online': { icon: 'radio', tone: 'idle', label: 'Worker online' },
  'worker.listening': { icon: 'plug', tone: 'idle', label: 'Worker listening' },
  'worker.ready': { icon: 'circle-check', tone: 'ok', label: 'Worker ready' },
  'worker.no-server': { icon: 'circle-alert', tone: 'warn', label: 'Ready without listening' },
  'worker.warm-up-failed': { icon: 'circle-alert', tone: 'warn', label: 'Warm-up failed' },
  'worker.draining': { icon: 'hourglass', tone: 'drain', label: 'Worker draining' },
  'worker.exited': { icon: 'circle-x', tone: 'idle', label: 'Worker exited' },
  'worker.unresponsive': { icon: 'triangle-alert', tone: 'bad', label: 'Worker unresponsive' },
  'worker.responsive': { icon: 'heart-pulse', tone: 'ok', label: 'Worker answers again' },
  'worker.killed': { icon: 'circle-x', tone: 'warn', label: 'Worker killed' },
  'worker.recycling': { icon: 'rotate-cw', tone: 'info', label: 'Worker recycled' },
  'worker.recycle-failed': { icon: 'triangle-alert', tone: 'warn', label: 'Recycling failed' },
  'worker.orphaned': { icon: 'circle-alert', tone: 'warn', label: 'Worker without master' },
  'worker.restarted': { icon: 'rotate-cw', tone: 'warn', label: 'Worker restarted' },
  'worker.crash-looping': { icon: 'repeat', tone: 'bad', label: 'Crash loop' },
  'worker.recovered': { icon: 'heart-pulse', tone: 'ok', label: 'Worker recovered' },
  'worker.drifted': { icon: 'triangle-alert', tone: 'warn', label: 'Worker drifted' },
  'slot.held': { icon: 'hourglass', tone: 'bad', label: 'Slot held' },
  'slot.resumed': { icon: 'circle-check', tone: 'ok', label: 'Slot goes on' },
  'crash.group-new': { icon: 'circle-alert', tone: 'bad', label: 'New crash' },
  'crash.group-returned': { icon: 'repeat', tone: 'bad', label: 'Crash came back' },
  'crash.group-resolved': { icon: 'circle-check', tone: 'ok', label: 'Crash resolved' },
  'crash.group-muted': { icon: 'circle-check', tone: 'idle', label: 'Crash muted' },
  'crash.group-reopened': { icon: 'circle-alert', tone: 'warn', label: 'Crash reopened' },
  'rollout.started': { icon: 'rocket', tone: 'info', label: 'Rollout started' },
  'rollout.step': { icon: 'arrow-right', tone: 'info', label: 'Rollout step' },
  'rollout.held': { icon: 'hourglass', tone: 'bad', label: 'Rollout held' },
  'rollout.paused': { icon: 'circle-alert', tone: 'warn', label: 'Rollout paused' },
  'rollout.resumed': { icon: 'arrow-right', tone: 'info', label: 'Rollout resumed' },
  'rollout.promoted': { icon: 'arrow-right', tone: 'info', label: 'Trial ended' },
  'rollout.judged': { icon: 'heart-pulse', tone: 'info', label: 'Trial judged' },
  'rollout.aborting': { icon: 'repeat', tone: 'warn', label: 'Rollout goes back' },
  'rollout.rolled-back': { icon: 'triangle-alert', tone: 'bad', label: 'Rolled back' },
  'rollout.succeeded': { icon: 'circle-check', tone: 'ok', label: 'Rollout succeeded' },
  'rollout.failed': { icon: 'triangle-alert', tone: 'bad', label: 'Rollout failed' },
  'diagnostics.started': { icon: 'info', tone: 'info', label: 'Diagnostics started' },
  'diagnostics.finished': { icon: 'download', tone: 'ok', label: 'Diagnostics finished' },
  'diagnostics.failed': { icon: 'triangle-alert', tone: 'warn', label: 'Diagnostics failed' },
  'diagnostics.downloaded': { icon: 'download', tone: 'info', label: 'Diagnostics downloaded' },
  'diagnostics.deleted': { icon: 'circle-x', tone: 'idle', label: 'Diagnostics deleted' },
  'notify.failed': { icon: 'circle-alert', tone: 'warn', label: 'Webhook failed' },
  'scale.changed': { icon: 'scaling', tone: 'info', label: 'Scale changed' },
  'socket.unused': { icon: 'plug', tone: 'warn', label: 'Socket unused' },
  'release.created': { icon: 'package', tone: 'info', label: 'Release created' },
  'history.degraded': { icon: 'database', tone: 'bad', label: 'History degraded' },
  'history.recovered': { icon: 'database', tone: 'ok', label: 'History recovered' },
  unexpected: { icon: 'circle-alert', tone: 'warn', label: 'Unexpected' }
})

/** Exits that nobody asked for. */
const FAULTS = new Set(['crash', 'boot-failure', 'hung', 'out-of-memory', 'killed', 'memory-limit'])

/** Every type that has a name here. */
export const EVENT_TYPES = Object.freeze(Object.keys(KINDS))

/** Steps of something that has an event of its own: in the history, but not among the few that the overview has room for. */
const ROUTINE_TYPES = ['worker.forked', 'worker.online', 'worker.listening', 'worker.draining', 'rollout.step', 'diagnostics.started']

/** What is worth a line on the overview. */
export const NOTABLE_TYPES = Object.freeze(EVENT_TYPES.filter((type) => !ROUTINE_TYPES.includes(type)))

/** What an operator looks for first. A `worker.restarted` is decided only after a death that nobody asked for. */
export const PROBLEM_TYPES = Object.freeze(['worker.restarted', 'worker.unresponsive', 'worker.crash-looping', 'worker.drifted', 'slot.held', 'rollout.held', 'crash.group-new', 'crash.group-returned', 'rollout.failed', 'rollout.rolled-back', 'history.degraded', 'master.upgrade-failed', 'keeper.lost', 'unexpected'])

/** Every cause that an event may have. */
export const CAUSES = Object.freeze(['crash', 'boot-failure', 'hung', 'out-of-memory', 'killed', 'memory-limit', 'max-age', 'max-requests',
  'deploy', 'rollback', 'restart', 'scale-down', 'operator', 'shutdown', 'upgrade', 'master-lost'])

/** @param {Pick<DeckEvent, 'type' | 'cause'>} event @returns {EventKind} also for types that are not known here */
export function kindOf ({ type, cause }) {
  const kind = Object.hasOwn(KINDS, type) ? KINDS[type] : { icon: 'circle', tone: /** @type {Tone} */ ('idle'), label: type }
  if (type === 'master.stopped' && cause === 'master-lost') return { ...kind, tone: 'bad', label: 'Master lost' }
  return type === 'worker.exited' && cause !== null && FAULTS.has(cause) ? { ...kind, tone: 'bad' } : kind
}
