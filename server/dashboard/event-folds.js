import { isOneOf, PLANNED_CAUSES } from '../causes.js'
import { count } from '../health.js'

/**
 * Folds routine events of the history into one row that can be opened.
 * @typedef {import('./shown-event.js').ShownEvent} ShownEvent
 * @typedef {{ id: string, summary: string, newestAt: string, oldestAt: string, events: ShownEvent[] } | { id: null, event: ShownEvent }} Row
 */

const MIN_EVENTS = 4

/** Routine events of workers, the most telling first. @type {Readonly<Record<string, string>>} */
const DEEDS = Object.freeze({
  'worker.ready': 'became ready',
  'worker.exited': 'ended as planned',
  'worker.draining': 'began to drain',
  'worker.forked': 'were forked',
  'worker.online': 'came online',
  'worker.listening': 'began to listen'
})

/** @param {ShownEvent[]} events newest first @returns {Row[]} */
export function foldEvents (events) {
  /** @type {{ isRoutine: boolean, events: ShownEvent[] }[]} */
  const runs = []
  for (const event of events) {
    const isRoutine = isRoutineEvent(event)
    const last = runs.at(-1)
    if (isRoutine && last?.isRoutine) last.events.push(event)
    else runs.push({ isRoutine, events: [event] })
  }
  return runs.flatMap(({ isRoutine, events }) => isRoutine && events.length >= MIN_EVENTS ? [toFold(events)] : toSingleRows(events))
}

/** @param {ShownEvent[]} events @returns {Row[]} */
export function toSingleRows (events) {
  return events.map((event) => ({ id: null, event }))
}

/** @param {ShownEvent} event */
function isRoutineEvent ({ type, cause, signal, detail }) {
  // A worker that was killed or still had connections did not end as planned.
  if (type === 'worker.exited') return isOneOf(PLANNED_CAUSES, cause) && signal !== 'SIGKILL' && detail?.endedConnections === undefined
  return type === 'rollout.step' || Object.hasOwn(DEEDS, type)
}

/** @param {ShownEvent[]} events @returns {Row} its id stays the same while newer events join it */
function toFold (events) {
  const oldest = events[events.length - 1]
  return { id: `fold-${oldest.id}`, summary: summaryOf(events), newestAt: events[0].at, oldestAt: oldest.at, events }
}

/** @param {ShownEvent[]} events @returns {string} `12 workers became ready, 12 were forked` */
function summaryOf (events) {
  const countOf = (/** @type {string} */ type) => events.filter((event) => event.type === type).length
  const deeds = Object.entries(DEEDS).map(([type, deed]) => ({ deed, number: countOf(type) })).filter(({ number }) => number > 0)
  const steps = countOf('rollout.step')
  return [
    ...deeds.map(({ deed, number }, index) => `${index === 0 ? count(number, 'worker') : number} ${number === 1 ? deed.replace('were ', 'was ') : deed}`),
    ...(steps > 0 ? [count(steps, 'rollout step')] : [])
  ].join(', ')
}
