import { EventEmitter } from 'node:events'
import { z } from 'zod'
import { parseArgument } from '../api/input.ts'
import { rolloutSummary, statusOf } from '../api/summaries.ts'
import { deepFreeze } from '../config/deep-freeze.ts'
import { MESSAGE_ORDER, ROLLOUT_ORDER, SCALE_ORDER } from '../config/orders.ts'
import { DeckError } from '../errors.ts'
import type { DeckEvent as ToldEvent, Rollout, Status } from './records.ts'
import type { Deck, DeckEvents } from './types.ts'
import type { App } from '../app/app.ts'
import type { Master } from '../host/master.ts'
import type { DeckEvent, EventStream } from '../events/stream.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'

const { note, path, release, strategy } = ROLLOUT_ORDER
const ORDERS = Object.freeze({ restart: z.strictObject({ note }).describe('an object'),
  deploy: z.strictObject({ note, path, strategy }).describe('an object'),
  rollback: z.strictObject({ note, release, strategy }).describe('an object'),
  send: z.strictObject({ worker: z.int().min(1).optional().describe('the id of a worker') }).describe('an object') })

const actor = 'program'

/** The master that a program has started, with its app. */
export type OwnMaster = Omit<Master, 'parts'> & { app: App }

/** What a program that has started a master can do with it. Each promise resolves at the end of what was asked for. */
export function createLibraryDeck ({ port, token, app: { deck }, stopped }: OwnMaster): Deck {
  let stopping: Promise<void> | undefined

  return Object.freeze({
    adminUrl: port.url,
    // A getter keeps the token out of a log of the whole deck.
    get token () {
      return token
    },
    signInLink: port.signInLink,
    events: createDeckEvents(deck.events),
    stopped: stopped.then(() => {}),

    snapshot: readStatus,

    async restart (order = {}) {
      const wanted = parseArgument(ORDERS.restart, order, 'restart')
      return await untilDone(deck.dispatch({ ...wanted, type: 'rollout', kind: 'restart', actor }))
    },

    async deploy (order = {}) {
      return await untilDone(await deck.deploy({ ...parseArgument(ORDERS.deploy, order, 'deploy'), actor }))
    },

    async rollback (order = {}) {
      const wanted = parseArgument(ORDERS.rollback, order, 'rollback')
      return await untilDone(deck.dispatch({ ...wanted, type: 'rollout', kind: 'rollback', actor }))
    },

    async scale (workers) {
      parseArgument(SCALE_ORDER, { workers }, 'scale')
      deck.dispatch({ type: 'scale', workers, actor })
      // It listens before it waits for the disk: the deck may have stopped by then.
      const scaled = untilScaled()
      scaled.catch(() => {})
      await deck.stored()
      return await scaled
    },

    async send (type, data, order = {}) {
      parseArgument(MESSAGE_ORDER, { type, data }, 'send')
      const { worker } = parseArgument(ORDERS.send, order, 'send')
      return deck.send({ type, data, worker, actor })
    },

    stop () {
      stopping ??= stopDeck()
      return stopping
    }
  })

  function readStatus (): Status {
    return deepFreeze(structuredClone(statusOf(deck)))
  }

  function untilDone ({ id }: { id: number }): Promise<Rollout> {
    return untilEvent(`rollout ${id} was done`,
      ({ rollout, detail }) =>
        rollout === id && detail?.done === true
          ? deepFreeze(structuredClone(rolloutSummary(detail as RolloutView)))
          : null)
  }

  async function untilScaled (): Promise<Status> {
    return statusIfScaled() ?? await untilEvent('all workers were ready', statusIfScaled)
  }

  /** Null: not yet. Somebody else may scale it too, so it reads the wanted number each time. */
  function statusIfScaled (): Status | null {
    const status = readStatus()
    const { desiredWorkers, readyWorkers, finishedWorkers, workers } = status
    return readyWorkers + finishedWorkers === desiredWorkers && workers.length === desiredWorkers ? status : null
  }

  /** `look`: null: not yet */
  function untilEvent<T> (what: string, look: (event: DeckEvent) => T | null): Promise<T> {
    return new Promise((resolve, reject) => {
      const unsubscribe = deck.events.subscribe((event) => {
        const found = look(event)
        if (found === null && event.type !== 'master.stopped') return
        unsubscribe()
        if (found === null) reject(new DeckError('stopping', `the deck has stopped before ${what}`))
        else resolve(found)
      })
    })
  }

  async function stopDeck () {
    if (deck.snapshot().state !== 'stopping') deck.dispatch({ type: 'stop', actor })
    await stopped
  }
}

/**
 * Makes the emitter of events for the program that has started a deck. It emits them once the master has finished its
 * present work: so an error of a listener is the program's, as with any emitter, and the listener may call the deck.
 */
function createDeckEvents (stream: Pick<EventStream, 'subscribe'>): DeckEvents {
  const emitter: DeckEvents = new EventEmitter()
  stream.subscribe((event) => process.nextTick(emitEvent, deepFreeze(structuredClone(event as ToldEvent))))
  return emitter

  function emitEvent (event: ToldEvent) {
    try {
      emitter.emit('event', event)
    } finally {
      emitter.emit(event.type, event)
    }
  }
}
