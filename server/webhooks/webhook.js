import { randomUUID } from 'node:crypto'
import os from 'node:os'
import { DeckError } from '../errors.js'
import { ALERTS } from '../events/kinds.js'
import { createDeliveries } from './deliveries.js'
import { createHook } from './hook.js'
import { shownUrl } from './shown-url.js'

/** @typedef {import('../events/stream.js').DeckEvent} DeckEvent */
/** @typedef {import('./deliveries.js').Delivery} Delivery */
/** @typedef {{ url: string, events?: string[], secret: string }} Target */

const MAX_TEXT = 16_384
const MAX_ASKED = 10

/**
 * One target with its deliveries. Tests and retries of an operator have a queue of their own and one try: they neither wait
 * behind events that fail nor take their place.
 * @param {Target} target
 * @param {object} parts
 * @param {number} parts.id
 * @param {Record<string, unknown>} parts.deck  goes into every message
 * @param {() => void} parts.onDelivered
 * @param {(reason: string) => void} parts.onFailed  a message was given up
 * @param {Partial<Parameters<typeof createHook>[1]>} options
 */
export function createWebhook (target, { id, deck, onDelivered, onFailed }, options) {
  const wanted = target.events ?? ALERTS
  const matches = createMatcher(wanted)
  const deliveries = createDeliveries({ time: options.time ?? Date.now })
  const told = createHook(target, { ...options, onTry: deliveries.begin, onOutcome })
  const asked = createHook(target, { ...options, onTry: deliveries.begin, onOutcome, maxTries: 1, maxQueued: MAX_ASKED })
  let isClosing = false

  return {
    id,
    target,

    view: () => ({ id, url: shownUrl(target.url), events: [...wanted], waiting: told.waiting + asked.waiting, deliveries: deliveries.list() }),

    /** @param {DeckEvent} event */
    offer (event) {
      if (matches(event)) told.push(messageOf(event, deck))
    },

    /** Sends the event even if this target does not want its type. @param {() => DeckEvent} publish @returns {Delivery} @throws {DeckError} stopping */
    test (publish) {
      checkOpen()
      return openDelivery(messageOf(publish(), deck))
    },

    /** @param {number} n @param {() => void} publish @returns {Delivery} @throws {DeckError} stopping, not-found, delivery-not-failed */
    retry (n, publish) {
      checkOpen()
      const known = deliveries.find(n)
      if (!known) throw new DeckError('not-found', `Webhook ${id} has no delivery ${n}, or it is no longer kept`)
      const { message, delivery: { state } } = known
      if (state !== 'failed') throw new DeckError('delivery-not-failed', `delivery ${n} of webhook ${id}: expected state failed, received ${state}`)
      publish()
      return openDelivery(message)
    },

    /** @param {number} ms */
    async close (ms) {
      isClosing = true
      await Promise.all([told.close(ms), asked.close(ms)])
    }
  }

  function checkOpen () {
    if (isClosing) throw new DeckError('stopping', 'the master is stopping: it sends no more webhooks')
  }

  /** @param {import('./hook.js').Message} message */
  function openDelivery (message) {
    const delivery = deliveries.open(message)
    asked.push(message)
    return delivery
  }

  /** @param {import('./hook.js').Message} message @param {import('./hook.js').Outcome} outcome */
  function onOutcome (message, outcome) {
    const { state, error, attempt } = deliveries.end(message, outcome)
    if (state === 'delivered') onDelivered()
    if (state === 'failed') onFailed(`${message.event.type}: ${error}${attempt === 0 ? '' : `, given up after ${attempt} ${attempt === 1 ? 'try' : 'tries'}`}`)
  }
}

/**
 * It takes each piece as early as possible: a regular expression would try all ways in which many `*` can share a text.
 * @param {string} pattern `*` stands for any text, also none @param {string} text
 */
export function matchesPattern (pattern, text) {
  const [first, ...others] = pattern.split('*')
  const last = others.pop()
  if (last === undefined) return text === pattern
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const piece of others) {
    const found = text.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}

/** @param {readonly string[]} patterns `worker.exited`, `worker.*`, `worker.exited:hung`, `*` */
function createMatcher (patterns) {
  return (/** @type {DeckEvent} */ { type, cause }) => patterns.some((pattern) => {
    return matchesPattern(pattern, type) || (cause !== null && matchesPattern(pattern, `${type}:${cause}`))
  })
}

/** @param {DeckEvent} event @param {Record<string, unknown>} deck */
function messageOf (event, deck) {
  return { id: `msg_${randomUUID()}`, body: bodyOf(event, deck), event: { id: event.id, type: event.type } }
}

/** @param {DeckEvent} event @param {Record<string, unknown>} deck */
function bodyOf (event, deck) {
  const sender = { host: os.hostname(), ...deck }
  const whole = JSON.stringify({ event, deck: sender })
  // The detail of a rollout can be long. The receiver can ask the API for the whole event by its id.
  if (whole.length <= MAX_TEXT) return whole
  return JSON.stringify({ event: { ...event, message: event.message?.slice(0, 2000) ?? null, detail: null }, deck: sender })
}
