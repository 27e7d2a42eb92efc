import { EventEmitter } from 'node:events'
import { deepFreeze } from '../config/deep-freeze.js'

/** @typedef {import('./types.js').DeckEvents} DeckEvents */

/**
 * Makes the emitter of events for the program that has started a deck. It emits them once the master has finished its present work:
 * so an error of a listener is the program's, as with any emitter, and the listener may call the deck.
 * @param {Pick<import('../events/stream.js').EventStream, 'subscribe'>} stream
 * @returns {DeckEvents}
 */
export function createDeckEvents (stream) {
  const emitter = /** @type {DeckEvents} */ (new EventEmitter())
  stream.subscribe((event) => process.nextTick(emitEvent, deepFreeze(structuredClone(event))))
  return emitter

  /** @param {import('./types.js').DeckEvent} event */
  function emitEvent (event) {
    try {
      emitter.emit('event', event)
    } finally {
      emitter.emit(/** @type {import('./tables.js').EventType} */ (event.type), event)
    }
  }
}
