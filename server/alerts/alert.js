import { randomUUID } from 'node:crypto'
import { DEFAULT_MAIL_PORT } from '../config/alert-kinds.js'
import { DeckError } from '../errors.js'
import { ALERTS } from '../events/kinds.js'
import { createDeliveries } from './deliveries.js'
import { createSender } from './sender.js'
import { contentOf, createPost } from './services.js'
import { shownUrl } from './shown-url.js'

/** @typedef {import('../events/stream.js').DeckEvent} DeckEvent */
/** @typedef {import('./deliveries.js').Delivery} Delivery */
/** @typedef {import('./services.js').Target} Target */

const MAX_QUEUED_BY_OPERATORS = 10

/**
 * One alert with its deliveries. Tests and retries of an operator have a queue of their own and one try: they neither wait
 * behind events that fail nor take their place.
 * @param {Target} firstTarget
 * @param {object} parts
 * @param {string} parts.id
 * @param {boolean} parts.isPaused
 * @param {() => import('./services.js').Deck} parts.deck
 * @param {() => void} parts.onDelivered
 * @param {(reason: string) => void} parts.onFailed  a message was given up
 * @param {Partial<Parameters<typeof createSender>[1]> & Parameters<typeof createPost>[1]} options
 */
export function createAlert (firstTarget, { id, isPaused, deck, onDelivered, onFailed }, options) {
  let target = firstTarget
  let post = createPost(target, options)
  const deliveries = createDeliveries({ time: options.time ?? Date.now })
  const eventSender = createSender(postNow, { ...options, onTry: deliveries.begin, onOutcome })
  const operatorSender = createSender(postNow, { ...options, onTry: deliveries.begin, onOutcome, maxTries: 1, maxQueued: MAX_QUEUED_BY_OPERATORS })
  let isClosing = false

  return {
    id,

    get target () { return target },

    get isPaused () { return isPaused },

    view: () => ({ id, ...shownTarget(target), isPaused, waiting: eventSender.waiting + operatorSender.waiting, deliveries: deliveries.list() }),

    /** Messages that wait go to the new receiver. @param {Target} changed @param {boolean} pausedNow */
    change (changed, pausedNow) {
      target = changed
      post = createPost(target, options)
      isPaused = pausedNow
    },

    /** @param {DeckEvent} event */
    offer (event) {
      if (!isPaused && isWanted(event, target.events ?? ALERTS)) eventSender.push(messageOf(event))
    },

    /** Sends the event even if this alert is paused or does not want its type. @param {() => DeckEvent} publish @returns {Delivery} @throws {DeckError} stopping */
    test (publish) {
      checkOpen()
      return openDelivery(messageOf(publish()))
    },

    /** @param {number} n @param {() => void} publish @returns {Delivery} @throws {DeckError} stopping, not-found, delivery-not-failed */
    retry (n, publish) {
      checkOpen()
      const known = deliveries.find(n)
      if (!known) throw new DeckError('not-found', `Alert ${id} has no delivery ${n}, or it is no longer kept`)
      const { message, delivery: { state } } = known
      if (state !== 'failed') throw new DeckError('delivery-not-failed', `delivery ${n} of alert ${id}: expected state failed, received ${state}`)
      publish()
      return openDelivery(message)
    },

    /** @param {number} ms */
    async close (ms) {
      isClosing = true
      await Promise.all([eventSender.close(ms), operatorSender.close(ms)])
    }
  }

  /** @type {import('./sender.js').Post} */
  function postNow (message, how) {
    return post(message, how)
  }

  /** @param {DeckEvent} event @returns {import('./sender.js').Message} */
  function messageOf (event) {
    return { id: `msg_${randomUUID()}`, content: contentOf(target.kind, event, deck()), event: { id: event.id, type: event.type } }
  }

  function checkOpen () {
    if (isClosing) throw new DeckError('stopping', 'the master is stopping: it sends no more alerts')
  }

  /** @param {import('./sender.js').Message} message */
  function openDelivery (message) {
    const delivery = deliveries.open(message)
    operatorSender.push(message)
    return delivery
  }

  /** @param {import('./sender.js').Message} message @param {import('./sender.js').Outcome} outcome */
  function onOutcome (message, outcome) {
    const { state, error, attempt } = deliveries.end(message, outcome)
    if (state === 'delivered') onDelivered()
    if (state === 'failed') onFailed(`${message.event.type}: ${error}${attempt === 0 ? '' : `, given up after ${attempt} ${attempt === 1 ? 'try' : 'tries'}`}`)
  }
}

/** Shows everything that is not secret. @param {Target} target */
function shownTarget ({ kind, name, dsn, url = dsn, secret, to, from, host, port = DEFAULT_MAIL_PORT, events }) {
  return {
    kind,
    name: name ?? null,
    // In the address of a chat, all that follows the host is the key to its channel; in a DSN the key comes before it.
    url: url === undefined ? null : kind === 'webhook' ? shownUrl(url) : `${new URL(url).origin}/…`,
    isSigned: secret !== undefined,
    mail: kind === 'mail' ? { host: String(host), port, from: String(from), to: to ?? [] } : null,
    events: [...events ?? ALERTS],
    isDefault: events === undefined
  }
}

/**
 * Finds each piece as early as possible: a regular expression would try all ways in which many `*` can share a text.
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

/** @param {DeckEvent} event @param {readonly string[]} patterns `worker.exited`, `worker.*`, `worker.exited:hung`, `*` */
function isWanted ({ type, cause }, patterns) {
  return patterns.some((pattern) => matchesPattern(pattern, type) || (cause !== null && matchesPattern(pattern, `${type}:${cause}`)))
}
