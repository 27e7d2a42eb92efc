import { capitalised, formatExactDuration } from '../../public/format.js'
import { kindOf } from '../events/kinds.js'

/**
 * What happened in a rollout, as a whole and in each slot.
 * @typedef {import('../lifecycle/rollout/record.js').RolloutView} RolloutView
 * @typedef {RolloutView['steps'][number]} Step
 * @typedef {{ startMs: number, endMs: number, lengthMs: number }} Axis wall time, ms
 * @typedef {{ state: 'paused' | 'held', startMs: number, endMs: number }} Span wall time, ms
 * @typedef {{ kind: string, x: number, width: number, title: string }} Bar in units of the box
 */

/** The box of a bar in its own units; the browser stretches it to the room that there is. */
const BAR_BOX = Object.freeze({ width: 1000, height: 10 })

/** A phase that took no time stays visible. */
const MIN_WIDTH = 4
/** A shorter wait is not mentioned. */
const NOTABLE_MS = 100

/** @type {Readonly<Record<string, Span['state']>>} */
const STOPS = Object.freeze({ 'rollout.paused': 'paused', 'rollout.held': 'held' })
const GOES_ON = Object.freeze(['rollout.resumed', 'rollout.rolling-back', 'rollout.rolled-back', 'rollout.failed', 'rollout.succeeded'])

/**
 * When it was paused or held.
 * @param {RolloutView} rollout @param {Axis} axis
 * @returns {Span[]} oldest first
 */
export function stillSpansOf ({ timeline }, axis) {
  /** @type {Span[]} */
  const spans = []
  /** @type {Omit<Span, 'endMs'> | null} */
  let open = null
  const endAt = (/** @type {number} */ ms) => {
    if (open) spans.push({ ...open, endMs: Math.max(open.startMs, ms) })
    open = null
  }
  for (const { at, type } of timeline ?? []) {
    if (Object.hasOwn(STOPS, type)) open ??= { state: STOPS[type], startMs: Date.parse(at) }
    else if (GOES_ON.includes(type)) endAt(Date.parse(at))
  }
  endAt(axis.endMs)
  return spans
}

/** @param {RolloutView} rollout @param {Span[]} still @returns what happened to it as a whole, oldest first; its start and end, if nothing else was kept */
export function momentsOf (rollout, still) {
  const startMs = Date.parse(rollout.startedAt)
  /** Why it failed is said when it does, and again at its end. @type {string[]} */
  const told = []
  return (rollout.timeline ?? endsOf(rollout)).map(({ at, type, actor, message, passed }, index) => {
    const isKnown = type === 'rollout.step' || message === null || told.some((text) => text.startsWith(message)) || message === labelAndActor(type, actor)
    if (message !== null) told.push(message)
    const { icon, tone, label } = kindOf({ type, cause: null })
    const pause = Object.hasOwn(STOPS, type) ? still.find((span) => span.startMs === Date.parse(at)) : undefined
    return {
      key: `${Date.parse(at)}-${type.replaceAll('.', '-')}-${index}`,
      at,
      afterMs: Math.max(0, Date.parse(at) - startMs),
      icon,
      tone: type === 'rollout.judged' ? toneOfVerdict(passed) : tone,
      // A step of the whole rollout has no label of its own.
      label: type === 'rollout.step' && message ? capitalised(message) : label,
      message: isKnown ? null : capitalised(message),
      actor,
      pausedMs: pause ? pause.endMs - pause.startMs : null
    }
  })
}

/** @param {string} type @param {string | null} actor @returns {string} what both already say: `paused by ada` */
function labelAndActor (type, actor) {
  return `${type.slice('rollout.'.length)} by ${actor}`
}

/** @param {RolloutView} rollout @returns {import('../lifecycle/state.js').Moment[]} */
function endsOf ({ startedAt, finishedAt, state, actor, note, reason }) {
  const began = { at: startedAt, type: 'rollout.started', actor, message: note, passed: null }
  return finishedAt === null ? [began] : [began, { at: finishedAt, type: `rollout.${state}`, actor: null, message: reason, passed: null }]
}

/** @param {boolean | null} passed */
function toneOfVerdict (passed) {
  return passed === null ? 'warn' : passed ? 'ok' : 'bad'
}

/** @param {RolloutView} rollout @param {{ axis: Axis, still: Span[] }} parts */
export function slotsOf (rollout, { axis, still }) {
  const bands = still.map((span) => barOf('still', span, axis, span.state))
  return rollout.steps.map((step) => ({
    slot: step.slot,
    bands,
    bars: phasesOf(step, axis).map(({ kind, span, title }) => barOf(kind, span, axis, title)),
    facts: factsOf(step)
  }))
}

/** @param {string} kind @param {Omit<Span, 'state'>} span @param {Axis} axis @param {string} name @returns {Bar} */
function barOf (kind, { startMs, endMs }, { startMs: originMs, lengthMs }, name) {
  const x = clamp(BAR_BOX.width * (startMs - originMs) / lengthMs, 0, BAR_BOX.width - MIN_WIDTH)
  const width = clamp(BAR_BOX.width * (endMs - startMs) / lengthMs, MIN_WIDTH, BAR_BOX.width - x)
  return { kind, x: Math.round(x), width: Math.round(width), title: `${name}: ${formatExactDuration(Math.max(0, endMs - startMs))}` }
}

/** @param {Step} step @param {Axis} axis @returns {{ kind: string, span: Omit<Span, 'state'>, title: string }[]} */
function phasesOf (step, axis) {
  const { startedAt, readyAt, promotedAt, drainedAt, revertingAt, finishedAt } = step
  if (!startedAt) return []
  const isStopFirst = oldGoesFirst(step)
  /** @type {[string, string, string | null | undefined][]} */
  const phases = [
    isStopFirst ? ['draining', 'old worker drained', startedAt] : ['starting', readyAt === undefined ? 'took' : 'started', startedAt],
    ['starting', 'started', isStopFirst ? drainedAt : null],
    ['ready', step.isCanary ? 'canary' : 'ready, waited', readyAt],
    ['draining', 'old worker drained', isStopFirst ? null : promotedAt],
    ['reverting', 'rolled back', revertingAt]
  ]
  const marks = phases.flatMap(([kind, title, at]) => at ? [{ kind, title, startMs: Date.parse(at) }] : [])
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
  const took = msBetween(startedAt, finishedAt)
  if (readyAt === undefined) return took === null ? [] : [`took ${formatExactDuration(took)}`]
  const waited = msBetween(readyAt, promotedAt)
  const isStopFirst = oldGoesFirst(step)
  const drained = msBetween(isStopFirst ? startedAt : promotedAt, drainedAt)
  const back = msBetween(revertingAt, finishedAt)
  return [
    readyAt && `ready after ${formatExactDuration(msBetween(isStopFirst ? drainedAt ?? startedAt : startedAt, readyAt))}`,
    waited !== null && waited >= NOTABLE_MS && `${isCanary ? 'canary' : 'waited'} for ${formatExactDuration(waited)}`,
    drained !== null && `old worker drained in ${formatExactDuration(drained)}`,
    state === 'failed' && took !== null && !revertingAt && `failed after ${formatExactDuration(took)}`,
    back !== null && `rolled back in ${formatExactDuration(back)}`
  ].filter((fact) => typeof fact === 'string')
}

/** @param {Step} step @returns {boolean} whether the old worker leaves before the new one starts */
function oldGoesFirst ({ state, promotedAt, drainedAt }) {
  return state === 'stopping' || Boolean(drainedAt && (!promotedAt || drainedAt < promotedAt))
}

/** @param {string | null | undefined} from @param {string | null | undefined} to @returns {number | null} ms */
function msBetween (from, to) {
  return from && to ? Math.max(0, Date.parse(to) - Date.parse(from)) : null
}

/** @param {number} value @param {number} least @param {number} most */
function clamp (value, least, most) {
  return Math.min(Math.max(value, least), Math.max(least, most))
}
