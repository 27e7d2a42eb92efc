import { isDeepStrictEqual } from 'node:util'
import { DeckError } from '../errors.js'
import { createWebhook } from './webhook.js'

/** @typedef {ReturnType<typeof createWebhooks>} Webhooks */
/** @typedef {import('./webhook.js').Target} Target */

const DRAIN_MS = 2000

/**
 * Sends events to webhooks from queues, so that no publisher waits.
 * @param {object} parts
 * @param {readonly Target[]} parts.targets
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {Record<string, unknown>} parts.deck  goes into every message
 * @param {{ warn: (fields: object, text: string) => void }} parts.log
 * @param {Parameters<typeof createWebhook>[2]} [options]
 */
export function createWebhooks ({ targets, events, deck, log }, options = {}) {
  let lastId = 0
  let webhooks = targets.map(toWebhook)
  /** Resolved once a webhook that is no longer configured has sent its queue. @type {Set<Promise<void>>} */
  const leaving = new Set()
  const unsubscribe = events.subscribe((event) => {
    // To report a failure to the webhook that fails would go on for ever. What an operator sends goes to one target alone.
    if (/^(notify|webhook)\./.test(event.type)) return
    // Another host of the fleet tells it.
    if (event.detail?.isReporter === false) return
    for (const webhook of webhooks) webhook.offer(event)
  })

  return {
    /** In the order of the configuration. */
    list: () => webhooks.map(({ view }) => view()),

    /** A target that stays keeps its number, its deliveries and its queue. @param {readonly Target[]} wanted */
    configure (wanted) {
      const before = [...webhooks]
      webhooks = wanted.map((target) => takeFrom(before, target) ?? toWebhook(target))
      for (const webhook of before) closeWebhook(webhook)
    },

    /**
     * Sends a test event.
     * @param {{ id: number, actor: string }} order
     * @throws {DeckError} not-found, stopping
     */
    test ({ id, actor }) {
      const { target, test } = findWebhook(id)
      return test(() => publishEvent('webhook.test', { id, actor }, `test of webhook ${id} (${originOf(target)})`))
    },

    /**
     * Sends a message again after all its tries have failed.
     * @param {{ id: number, delivery: number, actor: string }} order
     * @throws {DeckError} not-found, delivery-not-failed, stopping
     */
    retry ({ id, delivery, actor }) {
      const { target, retry } = findWebhook(id)
      return retry(delivery, () => publishEvent('webhook.retried', { id, actor, delivery }, `delivery ${delivery} of webhook ${id} (${originOf(target)}) is sent again`))
    },

    /** Takes no more events, and tries once more what is in the queues. */
    async close () {
      unsubscribe()
      await Promise.all([...leaving, ...webhooks.map(({ close }) => close(DRAIN_MS))])
    }
  }

  /** @param {Target} target */
  function toWebhook (target) {
    const to = originOf(target)
    let isFailing = false
    return createWebhook(target, {
      id: ++lastId,
      deck,
      // The event is published once, until the webhook works again.
      onDelivered () { isFailing = false },
      onFailed (reason) {
        log.warn({ to, reason }, 'a webhook was not delivered')
        if (isFailing) return
        isFailing = true
        events.publish({ type: 'notify.failed', actor: 'system', message: `the webhook to ${to} was not delivered: ${reason}` })
      }
    }, options)
  }

  /** @param {ReturnType<typeof toWebhook>} webhook */
  async function closeWebhook ({ close }) {
    const closed = close(DRAIN_MS)
    leaving.add(closed)
    await closed
    leaving.delete(closed)
  }

  /** @param {number} id */
  function findWebhook (id) {
    const webhook = webhooks.find((each) => each.id === id)
    if (webhook) return webhook
    const known = webhooks.length === 0 ? 'none is configured' : `expected ${webhooks.map((each) => each.id).join(' or ')}`
    throw new DeckError('not-found', `Webhook ${id} does not exist: ${known}`)
  }

  /** @param {'webhook.test' | 'webhook.retried'} type @param {{ id: number, actor: string, delivery?: number }} order @param {string} message */
  function publishEvent (type, { id, actor, ...detail }, message) {
    return events.publish({ type, actor, message, detail: { webhook: id, ...detail } })
  }
}

/** Removes the one with this target, if there is one. @param {ReturnType<typeof createWebhook>[]} webhooks @param {Target} target */
function takeFrom (webhooks, target) {
  const index = webhooks.findIndex((webhook) => isDeepStrictEqual(webhook.target, target))
  return index === -1 ? null : webhooks.splice(index, 1)[0]
}

/** Many services put a secret into the rest of the address. @param {{ url: string }} target */
function originOf ({ url }) {
  return new URL(url).origin
}
