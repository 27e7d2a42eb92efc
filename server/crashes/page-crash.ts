import { ID } from '../config/id.ts'
import { DeckError, unless } from '../errors.ts'
import { formatBytes, formatExactDuration, formatLatency, formatPercent, optionsIn } from '../../public/format.ts'
import { HOUR_MS } from '../dashboard/bars.ts'
import { frequencyOf } from './page-frequency.ts'
import { GROUP_STATES, crashKindOf, crashLabels, headlineOf, nameOf } from './page-kinds.ts'
import { count } from '../words/health.ts'
import { firstLine, readable } from '../dashboard/readable-text.ts'
import { AFTER_MS, eventsAround } from '../events/page-around.ts'
import { readOr } from '../dashboard/read-or.ts'
import { logsUrlOf } from '../events/page-shown-event.ts'
import { SPARK_BOX, sparklineOf } from '../vitals/page-sparkline.ts'
import { foldFrames } from './page-stack.ts'
import { workerUrlOf } from '../dashboard/worker-url.ts'
import type { Deck } from '../deck.ts'
import type { CrashRecord } from '../../db/crashes.ts'

/** The page of one crash group: the group, and the evidence of one of its crashes. */
type Crashes = Deck['crashes']
type Crash =
  & Omit<CrashRecord, 'vitals'>
  & { id: number, isCut?: boolean, vitals: Sample[] }
/** of one second */
type Sample = { at: string } & Record<string, number | null>
type History = Pick<import('../../db/history.ts').History, 'page'>
type Asked = { deck: Pick<Deck, 'crashes'>, history: History, id: string, params: URLSearchParams, now: () => number }

const TITLE_CHARS = 160
const SHOWN_RELEASES = 6
const MIN_SPAN_MS = 5000
const MAX_SPAN_MS = 60_000
/** A worker reports each second. */
const SILENT_MS = 2500

/** What is live of a page that shows a chosen crash. */
const PINNED = Object.freeze(['crash-head', 'crash-when', 'crash-kept'])

const VITALS: readonly { label: string, valueOf: (sample: Sample) => number | null | undefined,
  format: (value: number | null) => string }[] = Object.freeze([
    { label: 'Memory', valueOf: ({ rssBytes }) => rssBytes, format: formatBytes },
    { label: 'Loop delay', valueOf: ({ loopDelayMaxMs }) => loopDelayMaxMs, format: formatLatency },
    { label: 'Requests/s', valueOf: countAnswered, format: numberText },
    // Shown where nobody counts requests: for another program than Node.
    { label: 'Connections', valueOf: (sample) => countAnswered(sample) === null ? sample.openConnections : null,
      format: numberText },
    { label: 'In flight', valueOf: ({ inFlight }) => inFlight, format: numberText },
    { label: 'CPU', valueOf: ({ cpuPercent }) => cpuPercent, format: formatPercent }
  ])

/**
 * Returns the model of the page; `status` is 404 if the requested crash is no longer kept.
 * @throws {DeckError} not-found, invalid-query, or the database's
 */
export function crashModel ({ deck: { crashes }, history, id, params, now: clock }: Asked) {
  const now = clock()
  if (!ID.test(id)) throw new DeckError('not-found', `Crash group ${JSON.stringify(id.slice(0, 40))} does not exist`)
  const group = crashes.find(Number(id))
  const pinned = parsePinned(params)
  const record =
    (pinned === null || pinned === group.latest?.id
      ? group.latest
      : unless('not-found', () => crashes.occurrence(group.id, pinned))) as
        | Crash
        | null
  return { now, status: pinned !== null && record === null ? 404 : 200, pinned, group: toGroup(group),
    frequencies: [frequencyOf(crashes, group.id, { now, span: 'day' }),
      frequencyOf(crashes, group.id, { now, span: 'month' })],
    crash: record && toCrash(record, { event: eventOf(history, record), history, lines: crashes.sourceLines(record) }),
    kept: toKept(group, record?.id ?? null), keptCount: group.occurrences.length }
}

/** Reads all of the group only after it has changed. */
export function followCrash (asked: Asked) {
  const { deck: { crashes }, id, params, now } = asked
  let seen = ''
  return () => {
    try {
      const known = crashes.group(Number(id))
      // The bars move each hour, and what happens right after a crash joins it.
      const sinceCrashS = Math.floor(Math.min(AFTER_MS, now() - Date.parse(known.lastSeenAt)) / 1000)
      const group = JSON.stringify([known, Math.floor(now() / HOUR_MS), sinceCrashS])
      if (group === seen) return null
      const model = crashModel(asked)
      seen = group
      return { ...model, fragments: params.get('crash') ? PINNED : undefined }
    } catch (error) {
      // The group was removed, or the database is away: the page keeps what it shows.
      if (error instanceof DeckError) return null
      throw error
    }
  }
}

/** Null: the newest */
function parsePinned (params: URLSearchParams): number | null {
  const text = params.get('crash')
  if (!text) return null
  if (!ID.test(text))
    throw new DeckError('invalid-query',
      `crash: expected a positive integer, received ${JSON.stringify(text.slice(0, 60))}`)
  return Number(text)
}

/** @returns the id of the event that reports this crash */
function eventOf (history: History, { id, worker }: Crash): number | null {
  // The page is useful without the link.
  const items = readOr(() => history.page({ type: 'worker.exited', worker: worker ?? undefined, limit: 5 }).items, [])
  return items.find(({ detail }) => detail?.crash === id)?.id ?? null
}

function toGroup (group: ReturnType<Crashes['find']>) {
  const { releases } = group
  const { name, message } = headlineOf(group)
  return { ...group, name: name === null ? null : firstLine(name, 80), title: firstLine(message, TITLE_CHARS),
    culprit: group.culprit === null ? null : readable(group.culprit), labels: crashLabels(group),
    badge: GROUP_STATES[group.state], releases: releases.slice(0, SHOWN_RELEASES),
    moreReleases: Math.max(0, releases.length - SHOWN_RELEASES) }
}

function toKept ({ id, occurrences, count }: ReturnType<Crashes['find']>, shown: number | null) {
  return occurrences.map((each, index) => ({ id: each.id, at: each.at, slot: each.slot, worker: each.worker,
    release: each.release, isShown: each.id === shown,
    place: count === 1 ? null : index === 0 ? 'newest' : index === occurrences.length - 1 ? 'first' : null,
    url: `/crashes/${id}?crash=${each.id}` })
  )
}

/** `event`: its own; `lines`: of its frames */
function toCrash (record: Crash,
  { event, history, lines }: { event: number | null, history: History, lines: ReturnType<Crashes['sourceLines']> })
{
  const frames = foldFrames(record.frames ?? [], lines)
  const message = readable(record.errorMessage)
  return {
    id: record.id,
    at: record.at,
    kind: crashKindOf(record.kind),
    frames,
    stack: record.stack === null ? null : readable(record.stack),
    // The headline already shows its first line.
    message: message.length > TITLE_CHARS || message.includes('\n') ? message : null,
    causes: (record.causes ?? []).map(toCause),
    requests: (record.requests ?? []).map((request) => ({ method: readable(request.method),
      path: readable(request.path), age: formatExactDuration(request.ageMs), isHanging: request.isHanging === true })
    ),
    stderr: saysMore(record) ? readable(record.stderr.join('\n')) : null,
    stderrLines: record.stderr?.length ?? 0,
    ...vitalsOf(record),
    sparkBox: SPARK_BOX,
    isCut: record.isCut === true,
    logsUrl: logsUrlOf(record),
    facts: factsOf(record),
    eventUrl: event === null ? null : `/history/${event}`,
    events: eventsAround(history, { at: record.at, id: event })
  }
}

/** Whether stderr has more than the stack, around which Node prints the line that threw, and its version. */
function saysMore ({ stderr, stack }: Crash): boolean {
  const lines = (stderr ?? []).join('\n').replace(/^.*\n *\^+$|^Node\.js v.*$/gm, '').split('\n')
  return lines.some((line) => !(stack ?? '').includes(line.trim()))
}

function toCause ({ depth, errorName, errorMessage, stack }: Crash['causes'][number]) {
  return { depth: Math.min(Number(depth) || 1, 4), name: firstLine(nameOf(errorName), 80),
    message: firstLine(errorMessage, TITLE_CHARS), stack: stack ? readable(stack) : null }
}

/** Draws the last minute of the worker, or less if it lived for less. */
function vitalsOf ({ at, vitals }: Crash) {
  const samples = withGaps((vitals ?? []).map((sample) => ({ sample, ageMs: Date.parse(at) - Date.parse(sample.at) })))
  if (samples.length === 0) return { vitals: [], span: '', silence: null }
  const spanMs = Math.min(Math.max(samples[0].ageMs, MIN_SPAN_MS), MAX_SPAN_MS)
  const last = samples[samples.length - 1]
  const lines = VITALS.map(({ label, valueOf, format }) => {
    const line = sparklineOf(
      samples.map(({ sample, ageMs }) => ({ ageMs, value: sample && (valueOf(sample) ?? null) })),
      spanMs
    )
    // What it said before it fell silent is not of its end.
    const lastText = format(last.sample && (valueOf(last.sample) ?? null))
    return { label, ...line, lastText, maxText: format(line.max) }
  })
  return { vitals: lines.filter(({ max }) => max !== null),
    silence: last.sample ? null : formatExactDuration(samples[samples.length - 2].ageMs),
    span: spanMs === MAX_SPAN_MS ? 'minute' : count(Math.round(spanMs / 1000), 'second') }
}

/** Puts an empty sample wherever the worker was silent, also before its end: a worker that hangs says nothing. */
function withGaps (samples: { sample: Sample, ageMs: number }[]): { sample: Sample | null, ageMs: number }[] {
  return samples.flatMap((each, index) => {
    const nextMs = samples[index + 1]?.ageMs ?? 0
    return each.ageMs - nextMs > SILENT_MS ? [each, { sample: null, ageMs: nextMs }] : [each]
  })
}

/** @returns requests that ended in that second, whatever their status */
function countAnswered (sample: Sample): number | null {
  const counts = Object.entries(sample).filter(([name]) => name.startsWith('requests')).map(([, value]) => value)
    .filter((value) => typeof value === 'number')
  return counts.length === 0 ? null : counts.reduce((sum, value) => sum + value, 0)
}

function numberText (number: number | null): string {
  return number === null ? '–' : String(number)
}

function factsOf (
  { at, worker, slot, pid, release, rollout, uptimeMs, code, signal, nodeVersion, memory, vitals, errorMessage }: Crash
): { name: string, value: string, url: string | null }[] {
  const heap = memory?.heapTotalBytes
    ? `${formatBytes(memory.heapUsedBytes)} of ${formatBytes(memory.heapTotalBytes)}`
    : null
  const rows: [string, string | number | null | undefined, (string | null | false)?][] = [['Release', release,
    release !== null && `/releases/${encodeURIComponent(release)}`], ['Worker', worker === null ? null : `#${worker}`,
    worker !== null && workerUrlOf(worker, at)], ['Slot', slot, `/history?slot=${slot}`], ['Lived for',
    uptimeMs === null ? null : formatExactDuration(uptimeMs)], ['Memory',
    memory?.rssBytes && !vitals?.length ? formatBytes(memory.rssBytes) : null], ['Heap', heap], ['Exit code', code], [
    'Signal',
    signal
  ], ['PID', pid], ['Rollout', rollout, `/history?rollout=${rollout}`], ['Node.js', nodeVersion], ['Option',
    optionsIn(errorMessage) || null, '/settings']]
  return rows.filter(([, value]) => value !== null && value !== undefined).map(([name, value, url]) => ({ name,
    value: readable(value), url: url || null })
  )
}
