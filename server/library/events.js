import { EventEmitter } from 'node:events'
import { deepFreeze } from '../config/deep-freeze.js'

/** @typedef {import('./types.js').DeckEvents} DeckEvents */

/**
 * The events of a deck for the program that has started it. They are told after the turn of the master in which they
 * happened: what a listener throws is the program's, as of any emitter, and what it asks of the deck finds it at rest.
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
