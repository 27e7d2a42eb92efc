import { capitalised, formatExactDuration } from '../../public/format.ts'
import { kindOf } from './kinds.ts'
import type { DeckEvent } from './stream.ts'

const SENTENCES: Readonly<Record<string, (event: DeckEvent) => string>> = Object.freeze({
  'master.started': ({ pid }) => `Master started${pid ? ` (pid ${pid})` : ''}`,
  'master.stopped': ({ message, uptimeMs }) => message ?? `Master stopped${after(uptimeMs)}`,
  'master.upgrading': (event) => `Upgrade started: ${event.message}`,
  'master.upgraded': ({ message }) => `Upgraded: ${message}`,
  'master.upgrade-failed': (event) => `Upgrade failed${because(event.message)}`,
  'worker.forked': (event) => `${who(event)} forked${event.pid ? ` (pid ${event.pid})` : ''}`,
  'worker.online': (event) => `${who(event)} is online`,
  'worker.listening': (event) => `${who(event)} listens${event.message ? ` on ${event.message}` : ''}`,
  'worker.ready': (event) => `${who(event)} is ready${after(event.uptimeMs)}${because(event.message)}`,
  'worker.warm-up-failed': (event) => `${who(event)} is ready, but ${event.message}`,
  'worker.standby': (event) => `${who(event)} is loaded${after(event.uptimeMs)}`,
  'worker.draining': (event) => `${who(event)} is draining${because(event.message)}`,
  'worker.exited': (event) => event.message ?? `${who(event)} ${manner(event)}${after(event.uptimeMs)}`,
  'worker.killed': (event) => `${who(event)} killed by an operator`,
  'worker.message': (event) =>
    event.detail?.leftOut ? `${who(event)}: ${event.message}` : `${who(event)} says "${event.message}"`,
  'worker.recycling': (event) => `${who(event)} recycled${because(event.message)}`,
  'diagnostics.started': (event) => `Diagnostics started${because(event.message)}`,
  'diagnostics.finished': (event) => `Diagnostics finished${because(event.message)}`,
  'diagnostics.downloaded': (event) => `Downloaded ${event.message}`,
  'diagnostics.deleted': (event) => `Deleted ${event.message}`,
  'diagnostics.failed': (event) => `Diagnostics failed${because(event.message)}`,
  'worker.restarted': ({ slot, detail }) =>
    `Slot ${slot} gets a new worker${detail?.delayMs ? ` in ${formatExactDuration(detail.delayMs)}` : ' at once'}`,
  'worker.recovered': ({ slot }) => `Slot ${slot} recovered from its crash loop`,
  'worker.drifted': (event) => event.message ?? `${who(event)} has drifted`,
  'slot.held': ({ slot, message }) => message ?? `Slot ${slot} is held`,
  'slot.resumed': ({ slot, message }) => message ?? `Slot ${slot} is no longer held`,
  'crash.group-new': (event) => `New crash${because(event.message)}`,
  'crash.group-returned': (event) => `Resolved crash came back${because(event.message)}`,
  'rollout.started': (event) => `${rolloutName(event)} started${because(event.message)}`,
  'rollout.held': (event) => `${rolloutName(event)} is held${because(event.message)}`,
  'rollout.paused': (event) => `${rolloutName(event)} ${event.message}`,
  'rollout.resumed': (event) => `${rolloutName(event)} ${event.message}`,
  'rollout.promoted': (event) => `${rolloutName(event)}: ${event.message}`,
  'rollout.judged': (event) => `${rolloutName(event)}: ${outcome(event)}${event.message}`,
  'rollout.rolling-back': (event) => `${rolloutName(event)} rolls back${because(event.message)}`,
  'rollout.rolled-back': (event) => `${rolloutName(event)} was rolled back${because(event.message)}`,
  'rollout.succeeded' (event) {
    if (event.actor !== 'guard') return `${rolloutName(event)} succeeded`
    return `The guard rolled back to ${event.detail?.to ?? 'the release before'}${because(event.message)}`
  },
  'start.rolled-back': ({ message }) => `The start was rolled back${because(message)}`,
  'rollout.failed': (event) => `${rolloutName(event)} failed${because(event.message)}`,
  'hook.started': (event) => `Hook ${event.message} started`,
  'hook.succeeded': (event) => `Hook ${event.message}`,
  'hook.failed': (event) => `Hook ${event.message}`,
  'clock.set-back': ({ message, detail }) =>
    `The clock was set back by ${formatExactDuration(detail?.backMs)}; planned anew: ${message}`,
  'job.started': (event) => `${whichJob(event)} started`,
  'job.step': ({ message, detail }) => `${capitalised(String(detail?.command))}: ${message}`,
  'job.continued': (event) => `${whichJob(event)} goes on under the next master`,
  'job.succeeded': whichJob,
  'job.failed': whichJob,
  'job.command-failed': whichJob,
  'job.skipped': whichJob,
  'job.missed': (event) =>
    `${whichJob(event)} was due ${formatExactDuration(event.detail?.lateMs)} ago${
      alsoMissed(event)
    }: the machine slept, its clock was set, or no master ran`,
  'job.interrupted': whichJob,
  'job.acknowledged': ({ message }) => `Failure of job ${message} acknowledged`,
  'job.paused': (event) => `${whichJob(event)} paused`,
  'job.resumed': (event) => `${whichJob(event)} resumed`,
  'app.added': ({ detail }) => `App ${detail?.app} added`,
  'app.started': ({ detail }) => `App ${detail?.app} started`,
  'app.stopped': ({ detail }) => `App ${detail?.app} stopped`,
  'app.failed': ({ detail, message }) => `App ${detail?.app} failed${because(message)}`,
  'app.removed': ({ detail }) => `App ${detail?.app} removed`,
  'notice.acknowledged': ({ message }) => `Acknowledged: ${message}`,
  'scale.changed': ({ message, detail }) => message ? `Scaled ${message}` : `Scaled to ${detail?.to} workers`,
  'config.changed': ({ message }) => `Settings changed: ${message}`,
  'release.created': ({ release }) => `Release ${release} created`
})

/** @returns for people. It may hold what an app threw, so it has to be escaped */
export function sentenceOf (event: DeckEvent): string {
  const sentence = Object.hasOwn(SENTENCES, event.type) ? SENTENCES[event.type](event) : event.message
  const { member, app } = event.detail ?? {}
  return capitalised(sentence || kindOf(event).label, String(member ?? app ?? ''))
}

function who ({ worker, slot }: DeckEvent) {
  return slot === null ? `Standby worker ${worker ?? '?'}` : `Worker ${worker ?? '?'} (slot ${slot})`
}

function manner ({ signal, code }: DeckEvent) {
  if (signal) return `was ended by ${signal}`
  return code === null ? 'exited' : `exited with code ${code}`
}

/** A command that somebody has typed is of no job. */
function whichJob ({ message, detail }: DeckEvent) {
  return `${detail?.job == null ? 'Command' : 'Job'} ${message}`
}

function alsoMissed ({ detail }: DeckEvent) {
  return detail?.missed
    ? `, and ${
      detail?.missed === 1 ? 'another time has' : `${detail?.missed} other times have`
    } passed since; this one run stands for all of them`
    : ''
}

function rolloutName ({ rollout, detail }: DeckEvent) {
  if (detail?.kind === 'deploy') return detail.to ? `Deploy of ${detail.to}` : 'Deploy'
  if (detail?.kind === 'rollback') return detail.to ? `Rollback to ${detail.to}` : 'Rollback'
  if (detail?.kind !== 'restart') return `Rollout ${rollout}`
  return detail.steps?.length === 1 ? `Restart of slot ${detail.steps[0].slot}` : 'Restart of all workers'
}

function outcome ({ detail }: DeckEvent) {
  const { passed } = detail?.verdicts?.at(-1) ?? {}
  return passed === undefined ? '' : `the canary ${passed === null ? 'was not judged' : passed ? 'passed' : 'failed'}: `
}

function after (uptimeMs: number | null) {
  return uptimeMs === null ? '' : ` after ${formatExactDuration(uptimeMs)}`
}

function because (message: string | null) {
  return message ? `: ${message}` : ''
}
