import { z } from 'zod'
import { parseArgument } from '../api/input.js'
import { deepFreeze } from '../config/deep-freeze.js'
import { MESSAGE_ORDER, ROLLOUT_ORDER, SCALE_ORDER } from '../config/orders.js'
import { DeckError } from '../errors.js'
import { createDeckEvents } from './events.js'

/** @typedef {import('./types.js').Deck} Deck */
/** @typedef {import('./types.js').Rollout} Rollout */
/** @typedef {import('./types.js').Status} Status */

const { note, path, release, strategy } = ROLLOUT_ORDER
const ORDERS = Object.freeze({
  restart: z.strictObject({ note }).describe('an object'),
  deploy: z.strictObject({ note, path, strategy }).describe('an object'),
  rollback: z.strictObject({ note, release, strategy }).describe('an object'),
  send: z.strictObject({ worker: z.int().min(1).optional().describe('the id of a worker') }).describe('an object')
})

const actor = 'program'

/**
 * What a program that has started a master can do with it. Each promise resolves at the end of what was asked for.
 * @param {import('../host/master.js').Master} master
 * @returns {Deck}
 */
export function createLibraryDeck ({ admin, deck, stopped }) {
  /** @type {Promise<void> | undefined} */
  let stopping

  return Object.freeze({
    adminUrl: admin.url,
    // A getter keeps the token out of a log of the whole deck.
    get token () { return admin.token },
    signInLink: admin.signInLink,
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
      return await untilScaled()
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

  /** @returns {Status} */
  function readStatus () {
    return deepFreeze(structuredClone(deck.status()))
  }

  /** @param {{ id: number }} rollout @returns {Promise<Rollout>} */
  function untilDone ({ id }) {
    return untilEvent(`rollout ${id} was done`, ({ rollout, detail }) => rollout === id && detail?.done === true ? deepFreeze(structuredClone(/** @type {Rollout} */ (detail))) : null)
  }

  /** @returns {Promise<Status>} */
  async function untilScaled () {
    return statusIfScaled() ?? await untilEvent('all workers were ready', statusIfScaled)
  }

  /** @returns {Status | null} null: not yet. Somebody else may scale it too, so it reads the wanted number each time. */
  function statusIfScaled () {
    const status = readStatus()
    const { desiredWorkers, readyWorkers, finishedWorkers, workers } = status
    return readyWorkers + finishedWorkers === desiredWorkers && workers.length === desiredWorkers ? status : null
  }

  /**
   * @template T
   * @param {string} what @param {(event: import('../events/stream.js').DeckEvent) => T | null} look  null: not yet
   * @returns {Promise<T>}
   */
  function untilEvent (what, look) {
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
