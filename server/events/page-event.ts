import { toIso } from '../api/fields.ts'
import { readWhatRan, type Deck } from './api-what-ran.ts'
import { ID } from '../config/id.ts'
import { DeckError } from '../errors.ts'
import { causeText } from '../../public/cause-words.ts'
import { capitalised, formatBytes, formatCommit, formatCount, formatExactDuration,
  optionsIn } from '../../public/format.ts'
import { crashUrlOf } from '../crashes/page-kinds.ts'
import { eventsAround } from './page-around.ts'
import { readOr } from '../dashboard/read-or.ts'
import { firstLine, readable } from '../dashboard/readable-text.ts'
import { urlOf } from './page-filters.ts'
import { toShownEvent, type ShownEvent } from './page-shown-event.ts'
import type { DeckEvent } from './stream.ts'
import type { History } from '../../db/history.ts'
import type { Powers } from '../dashboard/powers.ts'

/** The page of one event: a sentence, and everything else as facts. */
type Fact = { name: string, value: string, url: string | null, isTime?: boolean }

const HEADLINE_CHARS = 240
const MAX_FACT_CHARS = 200
/** A worker is profiled once in a minute, so two minutes before an event hold a slice of its worker. */
const RAN_BEFORE_MS = 2 * 60_000
/** So many exits of a slot are read: some may be later than the event, but of the same millisecond. */
const MAX_EXITS = 5
/** A slow spell ends within this time, and so many others may have come since. */
const MAX_SPELL_MS = 2 * 60 * 60_000
const MAX_ENDS = 200
/**
 * Busy for less of the time, and with no function that got so much more of it, the workers have waited for something.
 */
const WAITING_PERCENT = 50
const MORE_PERCENT = 10
const HASH = /^[0-9a-f]{40}$/
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

/** What is told of a detail that has a page of its own, by the first word of the type. */
const TOLD: Readonly<Record<string, readonly string[]>> = Object.freeze({ rollout: ['from', 'note'],
  release: ['note'] })
/** Numbers by which the page links to something. */
const IDS: readonly string[] = ['crash', 'crashGroup', 'run', 'id']

export async function eventPageModel (
  { deck, can, now, ...asked }: Omit<Asked, 'now'> & { deck: Deck, can?: Powers, now: () => number }
) {
  const model = eventModel({ ...asked, now: now() })
  return { ...model, ...await ranModel(model.event, { deck, can, history: asked.history }) }
}

type Asked = { history: Pick<History, 'event' | 'page'>, id: string, now: number }
/** @throws {DeckError} not-found; and what the database throws */
export function eventModel ({ history, id, now }: Asked) {
  const event = ID.test(id) ? history.event(Number(id)) : null
  if (!event)
    throw new DeckError('not-found', `Event ${JSON.stringify(id.slice(0, 40))} does not exist or is no longer kept`)
  const shown = { ...toShownEvent(event), ...linkOfLoop(event, history) }
  const { errorName, stack, output, holders, ...detail } = event.detail ?? {}
  const { headline, message } = headlineOf(shown.sentence)
  const told = Object.entries(detail).filter(([name, value]) => isFact(value) && !isSaid(event, headline, name, value))
  const neighbourUrl = (step: number) => history.event(event.id + step) ? `/history/${event.id + step}` : null
  return { now, event: shown, headline, message,
    facts: [...factsOf(shown, { headline, errorName }), ...told.map(toFact), { name: 'Type', value: shown.kind.label,
      url: `/history?type=${event.type}` }], stack: stack === undefined ? null : String(stack),
    output: output === undefined ? null : readable(output), holders: Array.isArray(holders) ? holders : [],
    json: JSON.stringify(event, null, 2),
    runUrl: event.type.startsWith('job.') && Number.isSafeInteger(detail.run) ? `/jobs/runs/${detail.run}` : null,
    routeUrl: typeof detail.route === 'string' ? urlOf('/route', { route: detail.route }) : null,
    events: eventsAround(history, event), links: { newer: neighbourUrl(1), older: neighbourUrl(-1) } }
}

/** What the workers ran while requests were slow, or this worker before the event. */
async function ranModel (event: DeckEvent,
  { deck, can, history }: Pick<Parameters<typeof eventPageModel>[0], 'deck' | 'can' | 'history'>)
{
  const isSpell = event.type.startsWith('route.')
  const window = profiledWindow({ ...event, ...(isSpell && spellOf(event, history)) }, deck.profiling)
  if (window === null) return { profilesUrl: null, ran: null, isSpell }
  const ran = can?.operate ? await readWhatRan(deck, window) : null
  return { profilesUrl: profilesUrlOf(window),
    ran: ran &&
      { ...ran, isSpell,
        isWaiting: isSpell && ran.busyPercent < WAITING_PERCENT && !ran.functions.some(({ percent, beforePercent }) =>
          percent - (beforePercent ?? 0) >= MORE_PERCENT
        ) }, isSpell }
}

/**
 * When a worker was profiled before a moment. `since`: all workers count from then on. Returns null: no slice of that
 * time is kept.
 */
function profiledWindow ({ worker, at, since }: { worker?: number | null, at: string, since?: number },
  profiling: Deck['profiling'])
{
  const until = Date.parse(at)
  const window = { since: since ?? until - RAN_BEFORE_MS, until, ...(worker && { worker }) }
  const isMeant = worker || since !== undefined
  return !isMeant || Number.isNaN(window.since) || profiling.list(window).length === 0 ? null : window
}

function profilesUrlOf ({ since, until, worker }: { since: number, until: number, worker?: number }) {
  return `/profiles?${new URLSearchParams({ since: toIso(since), until: toIso(until),
    ...(worker !== undefined && { worker: String(worker) }) })}`
}

/** The end of a slow spell is in an event of its own. */
function spellOf ({ id, at, detail }: DeckEvent, history: Pick<History, 'page'>) {
  const ends = detail?.until
    ? []
    : readOr(() =>
      history.page({ type: 'route.recovered', since: Date.parse(at), until: Date.parse(at) + MAX_SPELL_MS,
        limit: MAX_ENDS }).items, [])
  const end = ends.filter((each) => each.id > id).at(-1)
  return { since: Date.parse(String(detail?.since)),
    at: String(detail?.until ?? end?.detail?.until ?? new Date(Date.parse(at) + MAX_SPELL_MS).toISOString()) }
}

/** Of a crash loop somebody wants to know the last crash. */
function linkOfLoop ({ type, slot, at, id }: DeckEvent, history: Pick<History, 'page'>) {
  if (type !== 'worker.crash-looping' || slot === null) return {}
  const exits = readOr(
    () => history.page({ type: 'worker.exited', slot, until: Date.parse(at) + 1, limit: MAX_EXITS }).items,
    []
  )
  const last = exits.find((exit) => exit.id < id)
  return last ? { crashUrl: crashUrlOf(last) } : {}
}

/** @returns `message`: the whole sentence, if the headline is cut */
function headlineOf (sentence: string): { headline: string, message: string | null } {
  const headline = firstLine(sentence, HEADLINE_CHARS)
  return { headline, message: headline === readable(sentence).trim() ? null : sentence }
}

/** @returns what the headline does not say already */
function factsOf ({ cause, slot, worker, release, pid, code, signal, uptimeMs, actor, message }: ShownEvent,
  { headline, errorName }: { headline: string, errorName: unknown }): Fact[]
{
  return [factOf('Cause', cause && causeText(cause), `/history?cause=${encodeURIComponent(String(cause))}`),
    factOf('Slot', slot, `/history?slot=${slot}`), factOf('Worker', worker),
    factOf('Release', release, `/releases/${encodeURIComponent(String(release))}`), factOf('PID', pid),
    factOf('Exit code', code), factOf('Signal', signal),
    factOf('Lived for', uptimeMs === null ? null : formatExactDuration(uptimeMs)),
    factOf('By', actor === 'system' ? null : actor), factOf('Error', errorName),
    factOf('Option', optionsIn(message), '/settings')].flat()

  function factOf (name: string, value: unknown, url: string | null = null): Fact[] {
    const isKnown = value !== null && value !== undefined && value !== ''
    // A number means nothing without its noun, and the release is where to go from here.
    const said = typeof value === 'number' ? `${name.split(' ').at(-1)} ${value}` : String(value)
    return isKnown && (name === 'Release' || !says(headline, said)) ? [{ name, value: String(value), url }] : []
  }
}

function isSaid (event: DeckEvent, headline: string, name: string, value: unknown) {
  const { type, cause, release } = event
  const told = TOLD[type.split('.')[0]]
  const own = { ...event, kind: cause, to: release } as Record<string, unknown>
  return IDS.includes(name) || (told && !told.includes(name)) || value === own[name] ||
    (typeof value === 'string' && says(headline, value))
}

/** Tells whether the text has these words, whatever stands between them */
function says (text: string, words: string): boolean {
  return wordsOf(text).includes(wordsOf(words))
}

function wordsOf (text: string): string {
  return ` ${text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean).join(' ')} `
}

/** Whether the value is short enough to stand in a list of facts: the rest is in the JSON alone. */
function isFact (value: unknown): boolean {
  return ['number', 'boolean'].includes(typeof value) ||
    (typeof value === 'string' && value !== '' && value.length <= MAX_FACT_CHARS && !value.includes('\n')) ||
    (Array.isArray(value) && value.length > 0 && value.every((each) => !Array.isArray(each) && isFact(each)))
}

/** Names in the detail end with their unit: `delayMs`, `rssBytes`. */
function toFact ([name, value]: [string, unknown]): Fact {
  if (typeof value === 'string' && TIME.test(value)) return { name: toWords(name), value, url: null, isTime: true }
  const [, stem = name, unit = ''] = (typeof value === 'number' && /^(.+)(Ms|Bytes)$/s.exec(name)) || []
  const format = { Ms: formatExactDuration, Bytes: formatBytes }[unit]
  return { name: toWords(stem), value: format ? format(Number(value)) : toText(value), url: null }
}

/** `name`: `crashGroup`, `per1000Requests`. Returns `Crash group`, `Per 1000 requests`. */
function toWords (name: string): string {
  return capitalised(
    name.slice(0, MAX_FACT_CHARS).replace(/(?<=[a-z\d])[A-Z]|(?<=[a-z]{2})\d/g, (letter) => ` ${letter.toLowerCase()}`)
  )
}

function toText (value: unknown) {
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Number.isInteger(value)) return formatCount(Number(value))
  return String(Array.isArray(value) ? value.join(', ') : value).replace(HASH, formatCommit)
}
