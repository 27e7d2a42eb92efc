import { isOneOf, PLANNED_CAUSES } from '../causes.js'
import { count } from '../health.js'

/**
 * Folds routine events of the history into one row that can be opened.
 * @typedef {import('./shown-event.js').ShownEvent} ShownEvent
 * @typedef {Pick<import('../../db/history.js').History, 'page'>} History
 * @typedef {ReturnType<History['page']>} Page
 */
/**
 * @template {ShownEvent} [E=ShownEvent]
 * @typedef {{ id: string, summary: string, newestAt: string, oldestAt: string, count: number, types: string[], events: E[] } | { id: null, event: E }} Row
 *   `events` of a fold: the newest of them; `types`: of all of them
 */

const MIN_EVENTS = 4
/** So many are listed in a fold; a link leads to all of them. */
const MAX_LISTED = 100
/** To finish a fold, a page reads so many more events at most. */
const MAX_READ_ON = 2000
const READ_ON = 200

/** Routine events of workers, the most telling first. @type {Readonly<Record<string, string>>} */
const DEEDS = Object.freeze({
  'worker.ready': 'became ready',
  'worker.exited': 'ended as planned',
  'worker.draining': 'began to drain',
  'worker.forked': 'were forked',
  'worker.online': 'came online',
  'worker.listening': 'began to listen'
})

/** Sign-ins would crowd out what else happens. Their row says who it was. */
const SIGN_IN = 'access.signed-in'
const MAX_NAMED = 3

/**
 * Reads a page, and goes on to the end of the fold that it would cut: so a fold is whole, and is the same one while newer events
 * push it down.
 * @param {History} history @param {import('../../db/event-search.js').EventQuery & { limit: number }} query
 * @returns {Page & { isShort: boolean }} `isShort`: the time for the search was spent
 */
export function readWholeFolds (history, query) {
  const { items, next } = history.page(query)
  const isShort = next !== null && items.length < query.limit
  /** @type {Page} */
  let page = { items, next }
  while (page.next !== null && isRoutineEvent(page.items[page.items.length - 1]) && page.items.length < query.limit + MAX_READ_ON) {
    const more = readRoutine(history, { ...query, cursor: page.next, limit: READ_ON })
    if (more.items.length === 0) break
    page = { items: [...page.items, ...more.items], next: more.next }
  }
  return { ...page, isShort }
}

/** @param {History} history @param {import('../../db/event-search.js').EventQuery} query @returns {Page} the events before the first that is worth a row */
function readRoutine (history, query) {
  const page = history.page(query)
  const end = page.items.findIndex((event) => !isRoutineEvent(event))
  if (end < 0) return page
  // Reads again, and only up to there, for the cursor behind the last of these.
  return end === 0 ? { items: [], next: query.cursor ?? null } : history.page({ ...query, limit: end })
}

/** @template {ShownEvent} E @param {E[]} events newest first @returns {Row<E>[]} */
export function foldEvents (events) {
  /** @type {{ isRoutine: boolean, events: E[] }[]} */
  const runs = []
  for (const event of events) {
    const isRoutine = isRoutineEvent(event)
    const last = runs.at(-1)
    if (isRoutine && last?.isRoutine) last.events.push(event)
    else runs.push({ isRoutine, events: [event] })
  }
  return runs.flatMap(({ isRoutine, events }) => isRoutine && events.length >= MIN_EVENTS ? [toFold(events)] : toSingleRows(events))
}

/** @template {ShownEvent} E @param {E[]} events @returns {Row<E>[]} */
export function toSingleRows (events) {
  return events.map((event) => ({ id: null, event }))
}

/** @param {Pick<ShownEvent, 'type' | 'cause' | 'signal' | 'detail'>} event */
function isRoutineEvent ({ type, cause, signal, detail }) {
  // A worker that was killed or still had connections did not end as planned.
  if (type === 'worker.exited') return isOneOf(PLANNED_CAUSES, cause) && signal !== 'SIGKILL' && detail?.endedConnections === undefined
  return type === 'rollout.step' || type === SIGN_IN || Object.hasOwn(DEEDS, type)
}

/** @template {ShownEvent} E @param {E[]} events @returns {Row<E>} its id stays the same while newer events join it */
function toFold (events) {
  const oldest = events[events.length - 1]
  return { id: `fold-${oldest.id}`, summary: summaryOf(events), newestAt: events[0].at, oldestAt: oldest.at, count: events.length, types: [...new Set(events.map(({ type }) => type))], events: events.slice(0, MAX_LISTED) }
}

/** @param {ShownEvent[]} events @returns {string} `12 workers became ready, 12 were forked` */
function summaryOf (events) {
  const countOf = (/** @type {string} */ type) => events.filter((event) => event.type === type).length
  const deeds = Object.entries(DEEDS).map(([type, deed]) => ({ deed, number: countOf(type) })).filter(({ number }) => number > 0)
  const steps = countOf('rollout.step')
  return [
    ...deeds.map(({ deed, number }, index) => `${index === 0 ? count(number, 'worker') : number} ${number === 1 ? deed.replace('were ', 'was ') : deed}`),
    ...(steps > 0 ? [count(steps, 'rollout step')] : []),
    ...signInsOf(events.filter(({ type }) => type === SIGN_IN))
  ].join(', ')
}

/** @param {ShownEvent[]} events @returns {string[]} `5 sign-ins by ada and bob` */
function signInsOf (events) {
  if (events.length === 0) return []
  const names = [...new Set(events.map(({ actor }) => actor ?? 'somebody'))]
  const shown = names.length > MAX_NAMED ? [...names.slice(0, MAX_NAMED), `${names.length - MAX_NAMED} more`] : names
  return [`${count(events.length, 'sign-in')} by ${shown.join(', ').replace(/, ([^,]*)$/, ' and $1')}`]
}
