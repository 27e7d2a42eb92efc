import { kindOf } from '../events/kinds.js'
import { sentenceOf } from '../events/sentences.js'
import { crashUrlOf } from './crash-kinds.js'
import { workerUrlOf } from './worker-url.js'

/** @typedef {ReturnType<typeof toShownEvent>} ShownEvent */

/** Adds the texts and links that a page shows with an event. @param {import('../events/stream.js').DeckEvent} event */
export function toShownEvent (event) {
  const isEnd = event.type === 'worker.exited' || event.type.startsWith('crash.group-')
  return {
    ...event,
    kind: kindOf(event),
    sentence: sentenceOf(event),
    crashUrl: crashUrlOf(event),
    workerUrl: event.worker === null ? null : workerUrlOf(event.worker, event.at),
    rolloutUrl: event.rollout === null ? null : `/rollouts/${event.rollout}`,
    logsUrl: isEnd ? logsUrlOf(event) : null
  }
}

/** @param {{ slot?: number | null, at: string }} what @returns {string | null} the logs of the slot around that time */
export function logsUrlOf ({ slot, at }) {
  return slot ? `/logs?slot=${slot}&around=${encodeURIComponent(at)}` : null
}
