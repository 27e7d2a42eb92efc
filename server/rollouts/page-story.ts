import { capitalised, formatExactDuration, withoutOptions } from '../../public/format.ts'
import { kindOf } from '../events/kinds.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'

/** What happened in a rollout, as a whole and in each slot. */
type Step = RolloutView['steps'][number]
/** wall time, ms */
export type Axis = { startMs: number, endMs: number, lengthMs: number }
/** wall time, ms */
export type Span = { state: 'paused' | 'held', startMs: number, endMs: number }
/** in units of the box */
type Bar = { kind: string, x: number, width: number, ms: number, title: string }

/** The box of a bar in its own units; the browser stretches it to the room that there is. */
const BAR_BOX = Object.freeze({ width: 1000, height: 10 })

/** A phase that took no time stays visible. */
const MIN_WIDTH = 4
/** A shorter wait is not mentioned. */
const NOTABLE_MS = 100

const STOPS: Readonly<Record<string, Span['state']>> = Object.freeze({ 'rollout.paused': 'paused',
  'rollout.held': 'held' })
const GOES_ON = Object.freeze(['rollout.resumed', 'rollout.rolling-back', 'rollout.rolled-back', 'rollout.failed',
  'rollout.succeeded'])

/** When it was paused or held. @returns oldest first */
export function stillSpansOf ({ timeline }: RolloutView, axis: Axis): Span[] {
  const spans: Span[] = []
  let open: Omit<Span, 'endMs'> | null = null
  const endAt = (ms: number) => {
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

/** @returns what happened to it as a whole, oldest first */
export function momentsOf (rollout: RolloutView, still: Span[]) {
  const startMs = Date.parse(rollout.startedAt)
  /** Why it failed is said when it does, and again at its end; what the judge found stands above. */
  const told = rollout.kind === 'deploy' ? (rollout.verdicts ?? []).map(({ message }) => message) : []
  return (rollout.timeline ?? []).map(({ at, type, actor, message, passed }, index) => {
    const isKnown = type === 'rollout.step' || message === null || told.some((text) => text.startsWith(message)) ||
      message === labelAndActor(type, actor)
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
      message: isKnown ? null : capitalised(withoutOptions(message)),
      actor,
      pausedMs: pause ? pause.endMs - pause.startMs : null
    }
  })
}

/** @returns what both already say: `paused by ada` */
function labelAndActor (type: string, actor: string | null): string {
  return `${type.slice('rollout.'.length)} by ${actor}`
}

function toneOfVerdict (passed: boolean | null) {
  return passed === null ? 'warn' : passed ? 'ok' : 'bad'
}

export function slotsOf (rollout: RolloutView, { axis, still }: { axis: Axis, still: Span[] }) {
  const bands = still.map((span) => barOf('still', span, axis, span.state))
  return rollout.steps.map((step) => {
    const bars = phasesOf(step, axis).map(({ kind, span, title }) => barOf(kind, span, axis, title))
    return { slot: step.slot, bands, bars,
      facts: bars.flatMap(({ kind, title, ms }) => kind === 'ready' && ms < NOTABLE_MS ? [] : [title]) }
  })
}

function barOf (kind: string, { startMs, endMs }: Omit<Span, 'state'>, { startMs: originMs, lengthMs }: Axis,
  name: string): Bar
{
  const x = clamp(BAR_BOX.width * (startMs - originMs) / lengthMs, 0, BAR_BOX.width - MIN_WIDTH)
  const width = clamp(BAR_BOX.width * (endMs - startMs) / lengthMs, MIN_WIDTH, BAR_BOX.width - x)
  const ms = Math.max(0, endMs - startMs)
  return { kind, x: Math.round(x), width: Math.round(width), ms, title: `${name}: ${formatExactDuration(ms)}` }
}

function phasesOf (step: Step, axis: Axis): { kind: string, span: Omit<Span, 'state'>, title: string }[] {
  const { startedAt, readyAt, promotedAt, drainedAt, revertingAt, finishedAt } = step
  if (!startedAt) return []
  const isStopFirst = oldGoesFirst(step)
  const phases: [string, string, string | null | undefined][] = [
    isStopFirst ? ['draining', 'drain', startedAt] : ['starting', 'start', startedAt],
    ['starting', 'start', isStopFirst ? drainedAt : null],
    ['ready', step.isCanary ? 'canary' : 'wait', readyAt],
    ['draining', 'drain', isStopFirst ? null : promotedAt],
    ['reverting', 'rollback', revertingAt]
  ]
  const marks = phases.flatMap(([kind, title, at]) => at ? [{ kind, title, startMs: Date.parse(at) }] : [])
  return marks.map(({ kind, title, startMs }, index) => {
    const until = kind === 'draining' ? drainedAt ?? finishedAt : marks[index + 1] ? null : finishedAt
    const endMs = Math.min(marks[index + 1]?.startMs ?? axis.endMs, until ? Date.parse(until) : axis.endMs)
    return { kind, title, span: { startMs, endMs: Math.max(startMs, endMs) } }
  })
}

/** Tells whether the old worker leaves before the new one starts */
function oldGoesFirst ({ state, promotedAt, drainedAt }: Step): boolean {
  return state === 'stopping' || Boolean(drainedAt && (!promotedAt || drainedAt < promotedAt))
}

function clamp (value: number, least: number, most: number) {
  return Math.min(Math.max(value, least), Math.max(least, most))
}
