import { isOneOf, PLANNED_CAUSES } from '../causes.ts'
import { count } from '../words/health.ts'
import type { ShownEvent } from './page-shown-event.ts'
import type { EventQuery } from '../../db/event-search.ts'

/** Folds routine events of the history, and crashes that repeat, into one row that can be opened. */
type History = Pick<import('../../db/history.ts').History, 'page'>
type Page = ReturnType<History['page']>
/** `events` of a fold: the newest of them; `types`: of all of them */
export type Row<E extends ShownEvent = ShownEvent> = { id: string, summary: string, newestAt: string, oldestAt: string,
  count: number, types: string[], events: E[] } | { id: null, event: E }

const MIN_EVENTS = 4
const MIN_CRASHES = 3
/** So many are listed in a fold; a link leads to all of them. */
const MAX_LISTED = 25
/** To finish a fold, a page reads so many more events at most. */
const MAX_READ_ON = 2000
const READ_ON = 200

/** Routine events of workers, the most telling first. */
const DEEDS: Readonly<Record<string, string>> = Object.freeze({ 'worker.ready': 'became ready',
  'worker.exited': 'ended as planned', 'worker.draining': 'began to drain', 'worker.forked': 'were forked',
  'worker.online': 'came online', 'worker.listening': 'began to listen' })

/** Neither tells of workers; `one`, `many`: of such events. */
const OTHERS: Readonly<Record<string, [one: string, many: string]>> = Object.freeze({
  'rollout.step': ['rollout step', 'rollout steps'],
  'job.started': ['job run began', 'job runs began'],
  'job.succeeded': ['job run succeeded', 'job runs succeeded'],
  'access.used': ['use of access', 'uses of access']
})
const ROLLOUT_ENDS: readonly string[] = Object.freeze(['rollout.succeeded', 'rollout.failed', 'rollout.rolled-back'])
/** Sign-ins would crowd out what else happens. Their row says who it was. */
const SIGN_IN = 'access.signed-in'
const MAX_NAMED = 3

/**
 * Reads a page, and goes on to the end of the fold that it would cut: so a fold is whole, and is the same one while
 * newer events push it down. Returns `isShort`: the time for the search was spent.
 */
export function readWholeFolds (history: History, query: EventQuery & { limit: number }): Page & { isShort: boolean } {
  const { items, next } = history.page(query)
  const isShort = next !== null && items.length < query.limit
  let page: Page = { items, next }
  while (page.next !== null && isRoutineEvent(page.items[page.items.length - 1]) &&
    page.items.length < query.limit + MAX_READ_ON)
  {
    const more = readRoutine(history, { ...query, cursor: page.next, limit: READ_ON })
    if (more.items.length === 0) break
    page = { items: [...page.items, ...more.items], next: more.next }
  }
  return { ...page, isShort }
}

/** @returns the events before the first that is worth a row */
function readRoutine (history: History, query: EventQuery): Page {
  const page = history.page(query)
  const end = page.items.findIndex((event) => !isRoutineEvent(event))
  if (end < 0) return page
  // Reads again, and only up to there, for the cursor behind the last of these.
  return end === 0 ? { items: [], next: query.cursor ?? null } : history.page({ ...query, limit: end })
}

/** `events`: newest first */
export function foldEvents<E extends ShownEvent> (events: E[]): Row<E>[] {
  const rows: Row<E>[] = []
  for (let at = 0; at < events.length;) {
    const loop = crashLoopAt(events, at)
    const run = loop ?? events.slice(at, endOfRun(events, at))
    rows.push(...loop ? [toFold(run, loopText(run))] : run.length >= MIN_EVENTS ? [toFold(run)] : toSingleRows(run))
    at += run.length
  }
  return rows
}

/**
 * Leaves out what the end of a rollout tells, and what the card of the one that runs shows, as long as nothing went
 * wrong. `runningSince`: null: none runs.
 */
export function withoutRoutineOfRollouts<E extends ShownEvent> (events: E[], runningSince: string | null): E[] {
  const ends = events.filter(({ type }) => ROLLOUT_ENDS.includes(type))
  const spans = ends.map(({ rollout, at, detail }) => ({ rollout, since: String(detail?.startedAt), until: at }))
  if (runningSince !== null) spans.push({ rollout: NaN, since: runningSince, until: '~' })
  return events.filter((event) =>
    ends.includes(event) ||
    !spans.some(({ rollout, since, until }) =>
      event.at >= since && event.at <= until &&
      (isRoutineEvent(event) || event.type === 'release.created' ||
        (event.rollout === rollout && event.type.startsWith('rollout.')))
    )
  )
}

/** @returns where the routine events end that begin here, or the one event that is none */
function endOfRun (events: readonly ShownEvent[], at: number): number {
  let end = at
  while (end < events.length && isRoutineEvent(events[end]) && crashGroupOf(events[end]) === null) end++
  return Math.max(end, at + 1)
}

/** The crashes of one group that follow each other from here, with the starts between them. Null: fewer than a few. */
function crashLoopAt<E extends ShownEvent> (events: E[], at: number): E[] | null {
  const group = crashGroupOf(events[at])
  if (group === null) return null
  let [end, crashes] = [at, 0]
  for (let next = at; next < events.length; next++) {
    const event = events[next]
    if (crashGroupOf(event) === group) [end, crashes] = [next + 1, crashes + 1]
    else if (!(event.type === 'worker.restarted' || (Object.hasOwn(DEEDS, event.type) && isRoutineEvent(event)))) break
  }
  return crashes >= MIN_CRASHES ? events.slice(at, end) : null
}

function crashGroupOf ({ type, detail }: ShownEvent): number | null {
  return type === 'worker.exited' && detail?.crashGroup !== undefined ? Number(detail.crashGroup) : null
}

function loopText (events: ShownEvent[]): string {
  const crashes = events.filter((event) => crashGroupOf(event) !== null)
  return `${crashes.length} crashes of the same kind, the last: ${crashes[0].sentence}`
}

export function toSingleRows<E extends ShownEvent> (events: E[]): Row<E>[] {
  return events.map((event) => ({ id: null, event }))
}

function isRoutineEvent ({ type, cause, signal, detail }: Pick<ShownEvent, 'type' | 'cause' | 'signal' | 'detail'>) {
  // A worker that was killed or still had connections did not end as planned.
  if (type === 'worker.exited')
    return isOneOf(PLANNED_CAUSES, cause) && signal !== 'SIGKILL' && detail?.endedConnections === undefined
  return type === SIGN_IN || Object.hasOwn(DEEDS, type) || Object.hasOwn(OTHERS, type)
}

/** @returns its id stays the same while newer events join it */
function toFold<E extends ShownEvent> (events: E[], summary: string = summaryOf(events)): Row<E> {
  const oldest = events[events.length - 1]
  return { id: `fold-${oldest.key}`, summary, newestAt: events[0].at, oldestAt: oldest.at, count: events.length,
    types: [...new Set(events.map(({ type }) => type))], events: events.slice(0, MAX_LISTED) }
}

/** @returns `12 workers became ready, 12 were forked` */
function summaryOf (events: ShownEvent[]): string {
  const countOf = (type: string) => events.filter((event) => event.type === type).length
  const deeds = Object.entries(DEEDS).map(([type, deed]) => ({ deed, number: countOf(type) })).filter(({ number }) =>
    number > 0
  )
  return [
    ...deeds.map(({ deed, number }, index) =>
      `${index === 0 ? count(number, 'worker') : number} ${number === 1 ? deed.replace('were ', 'was ') : deed}`
    ),
    ...Object.entries(OTHERS).map(([type, words]) => ({ words, number: countOf(type) })).filter(({ number }) =>
      number > 0
    ).map(({ words, number }) => `${number} ${words[number === 1 ? 0 : 1]}`),
    ...signInsOf(events.filter(({ type }) => type === SIGN_IN))
  ].join(', ')
}

/** @returns `5 sign-ins by ada and bob` */
function signInsOf (events: ShownEvent[]): string[] {
  if (events.length === 0) return []
  const names = [...new Set(events.map(({ actor }) => actor ?? 'somebody'))]
  const shown = names.length > MAX_NAMED ? [...names.slice(0, MAX_NAMED), `${names.length - MAX_NAMED} more`] : names
  return [`${count(events.length, 'sign-in')} by ${shown.join(', ').replace(/, ([^,]*)$/, ' and $1')}`]
}
