import { EventEmitter } from 'node:events'
import { deepFreeze } from '../config/deep-freeze.ts'
import type { DeckEvent } from './records.ts'
import type { DeckEvents } from './types.ts'
import type { EventStream } from '../events/stream.ts'

/**
 * Makes the emitter of events for the program that has started a deck. It emits them once the master has finished its
 * present work: so an error of a listener is the program's, as with any emitter, and the listener may call the deck.
 */
export function createDeckEvents (stream: Pick<EventStream, 'subscribe'>): DeckEvents {
  const emitter: DeckEvents = new EventEmitter()
  stream.subscribe((event) => process.nextTick(emitEvent, deepFreeze(structuredClone(event as DeckEvent))))
  return emitter

  function emitEvent (event: DeckEvent) {
    try {
      emitter.emit('event', event)
    } finally {
      emitter.emit(event.type, event)
    }
  }
}
