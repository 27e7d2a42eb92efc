import { formatExactDuration } from '../../public/format.js'
import { kindOf } from '../events/kinds.js'

/**
 * What happened in a rollout: to it as a whole, and in each slot.
 * @typedef {import('../deck.js').RolloutView} RolloutView
 * @typedef {RolloutView['steps'][number]} Step
 * @typedef {{ startMs: number, endMs: number, lengthMs: number }} Axis wall time, ms
 * @typedef {{ startMs: number, endMs: number }} Span wall time, ms
 * @typedef {{ kind: string, x: number, width: number, title: string }} Bar in units of the box
 */

/** The box of a bar in its own units; the browser stretches it to the room that there is. */
const BAR_BOX = Object.freeze({ width: 1000, height: 10 })

/** Of what is over at once it shows that it was there. */
const MIN_WIDTH = 4
/** What follows at once needs no word. */
const NOTABLE_MS = 100

/** Its label and its actor say the same. */
const SAID_BY_LABEL = /^(paused|resumed) by /

const STOPS = Object.freeze(['rollout.paused', 'rollout.held'])
const GOES_ON = Object.freeze(['rollout.resumed', 'rollout.rolling-back', 'rollout.rolled-back', 'rollout.failed', 'rollout.succeeded'])

/**
 * While it waited for a person.
 * @param {RolloutView} rollout @param {Axis} axis
 * @returns {Span[]} oldest first
 */
export function stillSpansOf ({ timeline }, axis) {
  /** @type {Span[]} */
  const spans = []
  let startMs = /** @type {number | null} */ (null)
  for (const { at, type } of timeline ?? []) {
    if (STOPS.includes(type)) startMs ??= Date.parse(at)
    else if (startMs !== null && GOES_ON.includes(type)) {
      spans.push({ startMs, endMs: Math.max(startMs, Date.parse(at)) })
      startMs = null
    }
  }
  return startMs === null ? spans : [...spans, { startMs, endMs: Math.max(startMs, axis.endMs) }]
}

/** @param {RolloutView} rollout @param {Span[]} still @returns what happened to it as a whole, oldest first; of one of which nothing was kept, its two ends */
export function momentsOf (rollout, still) {
  const startMs = Date.parse(rollout.startedAt)
  return (rollout.timeline ?? endsOf(rollout)).map(({ at, type, actor, message }, index) => {
    const { icon, tone, label } = kindOf({ type, cause: null })
    const pause = STOPS.includes(type) ? still.find((span) => span.startMs === Date.parse(at)) : undefined
    return {
      key: `${Date.parse(at)}-${type.replaceAll('.', '-')}-${index}`,
      at,
      afterMs: Math.max(0, Date.parse(at) - startMs),
      icon,
      tone: type === 'rollout.judged' ? toneOfVerdict(rollout, message) : tone,
      // A step of the whole has no name but its message.
      label: type === 'rollout.step' && message ? capitalised(withDurations(message)) : label,
      message: type === 'rollout.step' || SAID_BY_LABEL.test(message ?? '') ? null : message,
      actor,
      stoodStillMs: pause ? pause.endMs - pause.startMs : null
    }
  })
}

/** @param {RolloutView} rollout @returns {import('../lifecycle/state.js').Moment[]} */
function endsOf ({ startedAt, finishedAt, state, actor, note, reason }) {
  const began = { at: startedAt, type: 'rollout.started', actor, message: note }
  return finishedAt === null ? [began] : [began, { at: finishedAt, type: `rollout.${state}`, actor: null, message: reason }]
}

/** @param {RolloutView} rollout @param {string | null} message as the timeline keeps it, which is a part of a long one */
function toneOfVerdict ({ verdicts = [] }, message) {
  const passed = verdicts.findLast((verdict) => message !== null && verdict.message.startsWith(message))?.passed ?? null
  return passed === null ? 'warn' : passed ? 'ok' : 'bad'
}

/** @param {RolloutView} rollout @param {{ axis: Axis, still: Span[] }} parts */
export function slotsOf (rollout, { axis, still }) {
  const bands = still.map((span) => barOf('still', span, axis, 'stood still'))
  return rollout.steps.map((step) => ({ slot: step.slot, bands, bars: phasesOf(step, axis).map(({ kind, span, title }) => barOf(kind, span, axis, title)), facts: factsOf(step) }))
}

/** @param {string} kind @param {Span} span @param {Axis} axis @param {string} name @returns {Bar} */
function barOf (kind, { startMs, endMs }, { startMs: originMs, lengthMs }, name) {
  const x = clamp(BAR_BOX.width * (startMs - originMs) / lengthMs, 0, BAR_BOX.width - MIN_WIDTH)
  const width = clamp(BAR_BOX.width * (endMs - startMs) / lengthMs, MIN_WIDTH, BAR_BOX.width - x)
  return { kind, x: Math.round(x), width: Math.round(width), title: `${name}: ${formatExactDuration(Math.max(0, endMs - startMs))}` }
}

/** @param {Step} step @param {Axis} axis @returns {{ kind: string, span: Span, title: string }[]} */
function phasesOf (step, axis) {
  const { startedAt, readyAt, promotedAt, drainedAt, revertingAt, finishedAt } = step
  if (!startedAt) return []
  const isStopFirst = oldGoesFirst(step)
  const marks = /** @type {[string, string, string | null | undefined][]} */ ([
    isStopFirst ? ['draining', 'old worker drained', startedAt] : ['starting', readyAt === undefined ? 'took' : 'started', startedAt],
    ...isStopFirst ? [['starting', 'started', drainedAt]] : [],
    ['ready', step.isCanary ? 'on trial' : 'ready, waited', readyAt],
    ...isStopFirst ? [] : [['draining', 'old worker drained', promotedAt]],
    ['reverting', 'went back', revertingAt]
  ]).flatMap(([kind, title, at]) => at ? [{ kind, title, startMs: Date.parse(at) }] : [])
  return marks.map(({ kind, title, startMs }, index) => {
    const until = kind === 'draining' ? drainedAt ?? finishedAt : marks[index + 1] ? null : finishedAt
    const endMs = Math.min(marks[index + 1]?.startMs ?? axis.endMs, until ? Date.parse(until) : axis.endMs)
    return { kind, title, span: { startMs, endMs: Math.max(startMs, endMs) } }
  })
}

/** @param {Step} step @returns {string[]} its times in words, oldest first */
function factsOf (step) {
  const { state, isCanary, startedAt, readyAt, promotedAt, drainedAt, revertingAt, finishedAt } = step
  if (!startedAt) return []
  const took = between(startedAt, finishedAt)
  if (readyAt === undefined) return took === null ? [] : [`took ${formatExactDuration(took)}`]
  const waited = between(readyAt, promotedAt)
  const isStopFirst = oldGoesFirst(step)
  const drained = between(isStopFirst ? startedAt : promotedAt, drainedAt)
  const back = between(revertingAt, finishedAt)
  return [
    readyAt && `ready after ${formatExactDuration(between(isStopFirst ? drainedAt ?? startedAt : startedAt, readyAt))}`,
    waited !== null && waited >= NOTABLE_MS && `${isCanary ? 'on trial' : 'waited'} for ${formatExactDuration(waited)}`,
    drained !== null && `old one left after ${formatExactDuration(drained)}`,
    state === 'failed' && took !== null && !revertingAt && `failed after ${formatExactDuration(took)}`,
    back !== null && `taken back within ${formatExactDuration(back)}`
  ].filter((fact) => typeof fact === 'string')
}

/** @param {Step} step @returns {boolean} whether its new worker is not started before the old one has left */
function oldGoesFirst ({ state, promotedAt, drainedAt }) {
  return state === 'stopping' || Boolean(drainedAt && (!promotedAt || drainedAt < promotedAt))
}

/** @param {string | null | undefined} from @param {string | null | undefined} to @returns {number | null} ms */
function between (from, to) {
  return from && to ? Math.max(0, Date.parse(to) - Date.parse(from)) : null
}

/** @param {number} value @param {number} least @param {number} most */
function clamp (value, least, most) {
  return Math.min(Math.max(value, least), Math.max(least, most))
}

/** @param {string} message of the lifecycle, which knows no other unit */
function withDurations (message) {
  return message.replace(/\b(\d{1,12}) ms\b/g, (_, ms) => formatExactDuration(Number(ms)))
}

/** @param {string} text */
function capitalised (text) {
  return text.charAt(0).toUpperCase() + text.slice(1)
}
