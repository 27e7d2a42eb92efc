import { kindOf } from '../events/kinds.js'
import { sentenceOf } from '../events/sentences.js'
import { crashUrlOf } from './crash-kinds.js'

/** @typedef {ReturnType<typeof toShownEvent>} ShownEvent */

/** An event with all that a page says of it. @param {import('../events/stream.js').DeckEvent} event */
export function toShownEvent (event) {
  return { ...event, kind: kindOf(event), sentence: sentenceOf(event), crashUrl: crashUrlOf(event) }
}
