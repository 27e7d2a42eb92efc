import { DeckError } from '../errors.js'
import { createWebhook } from './webhook.js'

/** @typedef {ReturnType<typeof createWebhooks>} Webhooks */

const DRAIN_MS = 2000

/**
 * Tells others of events by webhook, from a queue of its own: whoever publishes an event never waits for it.
 * @param {object} parts
 * @param {readonly import('./webhook.js').Target[]} parts.targets
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {Record<string, unknown>} parts.deck who tells: goes into every message
 * @param {{ warn: (fields: any, text: string) => void }} parts.log
 * @param {Parameters<typeof createWebhook>[2]} [options]
 */
export function createWebhooks ({ targets, events, deck, log }, options = {}) {
  const webhooks = targets.map((target, index) => {
    const to = originOf(target)
    let isFailing = false
    return createWebhook(target, {
      id: index + 1,
      deck,
      // Said once, until it works again.
      onDelivered () { isFailing = false },
      onFailed (reason) {
        log.warn({ to, reason }, 'a webhook was not delivered')
        if (isFailing) return
        isFailing = true
        events.publish({ type: 'notify.failed', actor: 'system', message: `the webhook to ${to} was not delivered: ${reason}` })
      }
    }, options)
  })
  const unsubscribe = events.subscribe((event) => {
    // A failure told to the one that fails would go on for ever, and what an operator sends goes to one target alone.
    if (/^(notify|webhook)\./.test(event.type)) return
    for (const webhook of webhooks) webhook.offer(event)
  })

  return {
    /** In the order of the configuration. */
    list: () => webhooks.map(({ view }) => view()),

    /**
     * Sends an event that says that it is a test.
     * @param {{ id: number, actor: string }} order
     * @throws {DeckError} not-found, stopping
     */
    test: ({ id, actor }) => find(id).test(() => tell('webhook.test', { id, actor }, `test of webhook ${id} (${originOf(targets[id - 1])})`)),

    /**
     * Sends a message again that was given up.
     * @param {{ id: number, delivery: number, actor: string }} order
     * @throws {DeckError} not-found, delivery-not-failed, stopping
     */
    retry: ({ id, delivery, actor }) => find(id).retry(delivery, () => tell('webhook.retried', { id, actor, delivery }, `delivery ${delivery} of webhook ${id} (${originOf(targets[id - 1])}) is sent again`)),

    /** Nothing is told from now on; what waits is tried once more. */
    async close () {
      unsubscribe()
      await Promise.all(webhooks.map(({ close }) => close(DRAIN_MS)))
    }
  }

  /** @param {number} id */
  function find (id) {
    const webhook = webhooks[id - 1]
    if (!webhook) throw new DeckError('not-found', `Webhook ${id} does not exist: ${targets.length === 0 ? 'none is configured' : `there are ${targets.length}`}`)
    return webhook
  }

  /** @param {'webhook.test' | 'webhook.retried'} type @param {{ id: number, actor: string, delivery?: number }} order @param {string} message */
  function tell (type, { id, actor, ...detail }, message) {
    return events.publish({ type, actor, message, detail: { webhook: id, ...detail } })
  }
}

/** The rest of the address is as good as a password with many services. @param {{ url: string }} target */
function originOf ({ url }) {
  return new URL(url).origin
}
