import { causeText } from '../../public/cause-words.ts'
import { formatPercent, formatRate } from '../../public/format.ts'
import { readVitals } from '../vitals/api.ts'
import { readOr } from './read-or.ts'
import type { Deck as WholeDeck } from '../deck.ts'
import type { DeckEvent } from '../events/stream.ts'

/**
 * The last hours as a strip of load and of what happened, above the pages of an app: a press chooses a time, which goes
 * along from page to page in the address.
 */
type Deck = Pick<WholeDeck, 'snapshot' | 'vitals'>
type History = Pick<import('../../db/history.ts').History, 'page'>
export type Span = { sinceMs: number, untilMs: number }
type Mark = { rank: number, tone: string, label?: string, events: DeckEvent[] }

const BINS = 60
/** The load has so much of the height: marks and their labels are above it. */
const LOAD_PERCENT = 54
/** For how many characters of a label, and some more, a bin has room: on every screen, and on a wide one. */
const ROOM = [1, 3]
const LABEL_MARGIN = 3
const HOUR_MS = 3_600_000
/** The shortest one that has all that was measured. */
const LENGTHS_MS = [HOUR_MS / 4, HOUR_MS, 3 * HOUR_MS] as const
const LEAST_MS = HOUR_MS / 2
/** So much is shown around a chosen time. */
const AROUND = 4
const MAX_EVENTS = 300

/** What is marked, the worst first. */
export const MARKS: Readonly<Record<string, (event: DeckEvent) => string>> = Object.freeze({
  'worker.restarted': ({ cause }) => cause === 'hung' ? 'hang' : causeText(cause ?? 'restart'),
  'rollout.failed': (event) => `${rolloutName(event)} failed`,
  'rollout.rolled-back': (event) => `${rolloutName(event)} rolled back`,
  'job.failed': () => 'failed job',
  'route.slowed': () => 'slow spell',
  'master.started': () => 'master start',
  'rollout.succeeded': rolloutName
})
const ORDINARY: readonly string[] = ['master.started', 'rollout.succeeded']
/** What pages show of a chosen time; null: that time. */
const SHOWN: readonly [path: RegExp, shows: string | null][] = [[/^\/(?:|history|logs|routes?|profiles)$/, null], [
  /^\/workers\//,
  'the charts show it, and all else the whole life of the worker'
], [/^\/(?:deploys|crashes)$/, 'the list goes on up to now'], [/^\/(?:history|rollouts|releases|crashes|jobs\/runs)\//,
  'this page has a time of its own'], [/^/, 'this page shows now']]
const LEFT_OUT = ['since', 'until', 'range', 'cursor', 'around', 'line', 'at']

/** `path`: of the page; null where its time is none of the app's */
export function timeStrip (
  { deck, history, params, path, now: clock }: { deck: Deck, history: History, params: URLSearchParams, path: string,
    now: () => number }
) {
  const now = clock()
  const chosen = spanIn(params, now)
  const isProgram = deck.snapshot().release.runtime === 'other'
  const load = (span: Span) => loadIn(deck, span, { isProgram, now })
  const window = chosen ? around(chosen, now) : newest(now, load)
  const events = readOr(
    () =>
      history.page({ type: [...Object.keys(MARKS), 'route.recovered'], since: window.sinceMs, until: window.untilMs,
        limit: MAX_EVENTS }).items,
    []
  )
  const lastSpell = events.find(({ type }) => type.startsWith('route.'))
  const current = Map.groupBy(chosen ? [] : marksOfNow(deck, lastSpell),
    ({ at }) => binOf(Date.parse(String(at)), window))
  const eventsByBin = Map.groupBy(events, ({ at }) => binOf(Date.parse(at), window))
  const values = load(window)
  const known = values.filter((value) => value !== null)
  const most = known.length === 0 ? null : Math.max(...known)
  const binMs = (window.untilMs - window.sinceMs) / BINS
  const marks = Array.from({ length: BINS },
    (_, index) => current.get(index)?.[0] ?? markOf(eventsByBin.get(index) ?? []))
  return { labels: labelsOf(marks), window: isoOf(window),
    label: `${most === null ? '' : 'highest: '}${loadText(most, isProgram)}; press a time to see it`,
    chosen: chosen &&
      { ...isoOf(chosen), release: releaseThen(history, chosen.untilMs), said: marksText(events.filter(isIn(chosen))),
        shows: SHOWN.find(([page]) => page.test(path))?.[1] },
    query: chosen ? `?${new URLSearchParams(isoOf(chosen))}` : '', back: urlWith(path, params, null),
    refresh: `/time-strip?${new URLSearchParams({ ...Object.fromEntries(params), path })}`,
    bins: values.map((value, index) => {
      const span = { sinceMs: Math.round(window.sinceMs + index * binMs),
        untilMs: Math.round(window.sinceMs + (index + 1) * binMs) }
      const inside = eventsByBin.get(index) ?? []
      const height = value === null ? 0 : Math.max(2, LOAD_PERCENT * value / Math.max(1, Number(most)))
      return { x: index * 100 / BINS, width: 100 / BINS, height: Math.round(height * 10) / 10,
        tone: marks[index]?.tone ?? null,
        isChosen: chosen !== null && span.sinceMs < chosen.untilMs && span.untilMs > chosen.sinceMs,
        title: [`${isoOf(span).since.slice(11, 19)} UTC`, loadText(value, isProgram),
          current.get(index)?.find(({ rank }) => rank < -1)?.label, marksText(inside)].filter(Boolean).join(', '),
        url: urlWith(path, params, span) }
    }) }
}

/** Null: the page shows now */
export function spanIn (params: URLSearchParams, now: number): Span | null {
  const [sinceMs, untilMs] = ['since', 'until'].map((name) => Date.parse(params.get(name) ?? ''))
  return sinceMs < untilMs && sinceMs < now ? { sinceMs, untilMs: Math.min(untilMs, now) } : null
}

function newest (now: number, load: (span: Span) => (number | null)[]): Span {
  const spans = LENGTHS_MS.map((ms) => ({ sinceMs: now - ms, untilMs: now }))
  const [last] = spans.slice(-1)
  const first = load(last).findIndex((value) => value !== null)
  const knownMs = (BINS - first) / BINS * (now - last.sinceMs)
  return first < 0 ? spans[0] : spans.find(({ sinceMs }) => now - sinceMs >= knownMs) ?? last
}

/** What a page that shows a time offers in its own filter. `more`: beside the usual */
export function timeChoices (params: URLSearchParams, now: number, more: [value: string, label: string][] = []) {
  const chosen = spanIn(params, now)
  return [...chosen ? [[isoOf(chosen).since, 'Chosen time']] : [], ['5m', 'Last 5 minutes'], ['15m', 'Last 15 minutes'],
    ['60m', 'Last hour'], ...more]
}

function around (chosen: Span, now: number): Span {
  const lengthMs = Math.max(LEAST_MS, AROUND * (chosen.untilMs - chosen.sinceMs))
  const untilMs = Math.min(now, (chosen.sinceMs + chosen.untilMs + lengthMs) / 2)
  return { sinceMs: untilMs - lengthMs, untilMs }
}

/** The mean of each bin: requests a second, or the CPU of a program whose requests nobody counts. */
function loadIn ({ vitals }: Deck, window: Span,
  { isProgram, now }: { isProgram: boolean, now: number }): (number | null)[]
{
  const column = isProgram ? 'cpuPercent' : 'requestsPerSecond'
  const series = readOr(
    () => readVitals(vitals, { since: window.sinceMs, until: window.untilMs, columns: [column], slots: 'none' }, now),
    null
  )
  const sums = Array.from({ length: BINS }, () => ({ sum: 0, count: 0 }))
  for (const [index, second] of series?.time.entries() ?? []) {
    const value = series?.cluster[column]?.[index] ?? null
    const bin = sums[binOf(second * 1000, window)]
    if (value === null || !bin) continue
    bin.sum += value
    bin.count++
  }
  return sums.map(({ sum, count: known }) => known === 0 ? null : sum / known)
}

/** What goes on, at its start. */
function marksOfNow ({ snapshot }: Deck, lastSpell: DeckEvent | undefined) {
  const { rollout } = snapshot()
  const isHeld = rollout?.state === 'held'
  return [{ at: rollout?.startedAt, tone: isHeld ? 'warn' : 'info',
    label: `${rolloutName({ detail: rollout })}${isHeld ? ' held' : ''}` }, {
    at: lastSpell?.type === 'route.slowed' ? lastSpell.at : undefined,
    tone: 'warn',
    label: 'slow now'
  }].map((mark, index) => ({ ...mark, rank: index - 2, events: [] }))
}

/** Of what happened in a bin, the worst: all of it is past. */
function markOf (events: DeckEvent[]): Mark | null {
  const rank = Object.keys(MARKS).findIndex((type) => events.some((event) => event.type === type))
  if (rank < 0) return null
  const type = Object.keys(MARKS)[rank]
  return { rank, tone: ORDINARY.includes(type) ? 'info' : 'idle',
    events: events.filter((event) => event.type === type) }
}

export function rolloutName ({ detail }: { detail?: { kind?: unknown, to?: unknown } | null }): string {
  const { kind, to } = detail ?? {}
  return kind === 'restart' || !to ? String(kind ?? 'restart') : `${kind} ${to}`
}

/** Above the marks, the worst first, as far as there is room for them: neighbours of one kind share one. */
function labelsOf (marks: (Mark | null)[]) {
  const all = marks.flatMap((mark, bin) => {
    if (!mark || marks[bin - 1]?.rank === mark.rank) return []
    const after = marks.findIndex((other, index) => index > bin && other?.rank !== mark.rank)
    const run = marks.slice(bin, after < 0 ? BINS : after)
    const label = mark.label ?? marksText(run.flatMap((each) => each?.events ?? []))
    const isLeft = bin + label.length + LABEL_MARGIN > BINS
    return { ...mark, label, bin, isLeft, isWide: false, x: (isLeft ? bin + 1 : bin) * 100 / BINS }
  }).toSorted((one, other) => one.rank - other.rank)
  const kept: typeof all = []
  for (const perBin of ROOM) {
    const spanOf = ({ bin, label, isLeft }: typeof all[number]) => {
      const room = Math.ceil((label.length + LABEL_MARGIN) / perBin)
      return { from: isLeft ? bin - room : bin, to: isLeft ? bin : bin + room }
    }
    for (const each of all) {
      const { from, to } = spanOf(each)
      if (kept.map(spanOf).every((other) => to < other.from || from > other.to))
        kept.push({ ...each, isWide: perBin > ROOM[0] })
    }
  }
  return kept
}

function binOf (ms: number, { sinceMs, untilMs }: Span): number {
  return Math.floor((ms - sinceMs) / (untilMs - sinceMs) * BINS)
}

function loadText (value: number | null, isProgram: boolean): string {
  if (value === null) return 'nothing measured'
  return isProgram ? `${formatPercent(value)} CPU` : `${formatRate(value)} requests/s`
}

/** @returns `hang, crash ×2, deploy r6` */
export function marksText (events: DeckEvent[]): string {
  const names = Object.entries(MARKS).flatMap(([type, nameOf]) =>
    events.filter((event) => event.type === type).map(nameOf)
  )
  return Array.from(Map.groupBy(names, (name) => name),
    ([name, { length }]) => length > 1 ? `${name} ×${length}` : name).join(', ')
}

/** Null: it is not known any more */
function releaseThen (history: History, untilMs: number): string | null {
  const [last] = readOr(() => history.page({ type: ['rollout.succeeded'], until: untilMs, limit: 1 }).items, [])
  return typeof last?.detail?.to === 'string' ? last.detail.to : last?.release ?? null
}

function isIn ({ sinceMs, untilMs }: Span) {
  return ({ at }: DeckEvent) => Date.parse(at) >= sinceMs && Date.parse(at) < untilMs
}

export function isoOf ({ sinceMs, untilMs }: Span) {
  return { since: new Date(sinceMs).toISOString(), until: new Date(untilMs).toISOString() }
}

function urlWith (path: string, params: URLSearchParams, span: Span | null): string {
  const wanted = new URLSearchParams(params)
  for (const name of [...LEFT_OUT, 'path']) wanted.delete(name)
  for (const [name, value] of Object.entries(span ? isoOf(span) : {})) wanted.set(name, value)
  return `${path}${wanted.size > 0 ? `?${wanted}` : ''}`
}
