import { causeText } from '../../public/cause-words.ts'
import { listText } from '../words/health.ts'
import { isoOf, MARKS, marksText, rolloutName, type Span } from './time-strip.ts'
import { exitOf } from './worker-story.ts'
import { workerUrlOf } from './worker-url.ts'
import type { WorkerRow } from '../deck.ts'
import type { DeckEvent } from '../events/stream.ts'

/** The overview at a chosen time: who served and what was wrong, by the history, and what was measured. */
type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'vitals'>
type History = Pick<import('../../db/history.ts').History, 'page'>
/** `readyMs`: when it began to serve; `end`: also a later one; null: it lives, or nobody has seen its end */
type Life = ReturnType<typeof lifeOf>

const COLUMNS = ['requestsPerSecond', 'latencyP99Ms', 'cpuPercent', 'rssBytes', 'openConnections', 'threads'] as const
const MEANS: readonly string[] = ['requestsPerSecond', 'cpuPercent']
/** Those of a second are in memory alone, and of days there are too many of ten. */
const STEPS_MS = [10_000, 60_000]
const MAX_EVENTS = 1000
/** A slot whose last worker has ended so wants no other. */
const UNWANTED: readonly unknown[] = ['scale-down', 'shutdown', 'finished']

/** @throws {DeckError} history-unavailable */
export function overviewThen ({ deck, history }: { deck: Deck, history: History }, span: Span) {
  const { sinceMs: since, untilMs: until } = span
  const series = seriesIn(deck, span)
  const all = livesUntil(history, until, deck.snapshot().workers)
  const lives = all.filter(({ toMs }) => toMs >= since).toReversed().toSorted((one, other) => one.slot - other.slot)
  const newest = all.filter(({ slot }, index) => all.findIndex((life) => life.slot === slot) === index)
  const slots = newest.filter(({ toMs, end }) => toMs >= since || !UNWANTED.includes(end?.cause)).length
  const changes = lives.flatMap(({ readyMs, toMs }) => [readyMs, toMs]).filter((at) => at > since && at < until)
  const served = Math.min(
    ...[since, ...changes].map((at) =>
      new Set(lives.filter(({ readyMs, toMs }) => readyMs <= at && toMs > at).map(({ slot }) => slot)).size
    )
  )
  const marks = history.page({ type: Object.keys(MARKS), since, until, limit: MAX_EVENTS }).items
  const [last] = history.page({ type: 'rollout.*', until, limit: 1 }).items
  const who = served < slots ? `${served} of ${slots} workers` : slots === 1 ? 'The worker' : `All ${slots} workers`
  const releases = listText([...new Set(lives.map(({ release }) => String(release)))])
  const texts = [
    lives.length > 0 ? `${who} served${served < slots ? ' throughout' : ''}, running ${releases}` : 'No worker ran',
    marksText(marks),
    last && last.detail?.done !== true ? `${rolloutName(last)} was running` : ''
  ].filter(Boolean)
  return { slots, served: all.length > 0 ? served : '–', workers: lives.map((life) => {
    const mates = lives.filter(({ slot }) => slot === life.slot)
    // What is measured of a slot is of all of its workers.
    const isAlone = (index: number) => {
      const at = Number(series?.time[index]) * 1000
      return mates.every((each) => (each === life) === (each.fromMs < at + Number(series?.stepMs) && each.toMs > at))
    }
    return toWorker(life, span, figuresOf(series?.slots.find(({ slot }) => slot === life.slot)?.columns, isAlone))
  }),
    totals: { ...figuresOf(series?.cluster),
      restarts: all.length > 0 ? marks.filter(({ type }) => type === 'worker.restarted').length : '–' },
    health: { tone: 'idle' as const, hintUrl: null, reasons: [],
      hint: series ? '' : 'No figures are kept of this time.',
      text: all.length > 0 ? texts.join('; ') : 'Nothing is kept of this time' } }
}

/** In steps that cover all of the time. */
function seriesIn ({ vitals }: Deck, { sinceMs, untilMs }: Span) {
  return STEPS_MS.map((stepMs) =>
    vitals.series({ sinceMs: sinceMs - sinceMs % stepMs, untilMs, stepMs, columns: COLUMNS })
  ).find(({ time, nextMs }) => time.length > 0 && nextMs === null)
}

function figuresOf (columns?: Record<string, (number | null)[]>, isWanted: (index: number) => boolean = () => true) {
  return Object.fromEntries(COLUMNS.map((name) => {
    const known = columns?.[name].filter((value, index) => value !== null && isWanted(index)).map(Number) ?? []
    if (known.length === 0) return [name, null]
    return [name, MEANS.includes(name) ? known.reduce((sum, each) => sum + each, 0) / known.length : Math.max(...known)]
  })) as Record<typeof COLUMNS[number], number | null>
}

/** Newest first. `now`: the workers that live: they may have begun before all that is kept */
function livesUntil (history: History, until: number, now: readonly WorkerRow[]): Life[] {
  const events = history.page({ type: ['worker.ready', 'worker.exited'], until, limit: MAX_EVENTS }).items
  const lives = events.filter(({ type }) => type === 'worker.ready').map((begin) => {
    const known = events.findLast(({ id, type, worker }) =>
      type === 'worker.exited' && worker === begin.worker && id > begin.id
    )
    return lifeOf(begin, known ?? exitOf(history, begin))
  })
  const old = now.filter(({ id, readyAt }) =>
    Date.parse(String(readyAt)) < until && lives.every(({ worker }) => worker !== id)
  ).map(({ id, readyAt, ...row }) => lifeOf({ ...row, worker: id, at: String(readyAt), uptimeMs: 0 }, null))
  // Of one that neither lives nor is the last of its slot, nobody has seen the end.
  return [...lives, ...old].filter(({ end, slot, pid }, index, all) =>
    end || now.some((worker) => worker.pid === pid) || all.findIndex((life) => life.slot === slot) === index
  )
}

type Begin = Pick<DeckEvent, 'worker' | 'slot' | 'pid' | 'release' | 'at' | 'uptimeMs'>

/** `at`: when it was ready, so long after its fork */
function lifeOf ({ worker, slot, pid, release, at, uptimeMs }: Begin, end: DeckEvent | null) {
  const readyMs = Date.parse(at)
  return { worker, slot: Number(slot), pid, release, end, fromMs: readyMs - Number(uptimeMs), readyMs,
    toMs: end ? Date.parse(end.at) : Infinity }
}

/** Makes the row of a worker as the table shows workers of now. */
function toWorker ({ worker, slot, pid, release, fromMs, toMs, end }: Life, span: Span, vitals: object) {
  const startedAt = new Date(fromMs).toISOString()
  return { id: worker, slot, pid, release, startedAt, restarts: 0, logSlot: slot, vitals,
    state: toMs < span.untilMs ? 'gone' : 'ready', ranMs: Math.min(toMs, span.untilMs) - fromMs,
    url: `${workerUrlOf(Number(worker), end?.at ?? startedAt)}&${new URLSearchParams(isoOf(span))}`,
    finished: end &&
      { code: null, cause: `${toMs < span.untilMs ? '' : 'ended: '}${causeText(end.cause ?? 'ended')}`, at: end.at,
        succeeded: true } } as unknown as WorkerRow
}
