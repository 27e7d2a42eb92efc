import { z } from 'zod'
import { operation } from './endpoint.js'
import { COUNT, ID_PARAMETER, listOf, NUMBER, TIME } from './fields.js'
import { parseId } from './input.js'

/** @typedef {z.infer<typeof DELIVERY>} Delivery */
const DELIVERY = z.strictObject({
  id: NUMBER.describe('a number of this webhook'),
  at: TIME.describe('the first try'),
  event: z.strictObject({ id: NUMBER, type: z.string() }),
  attempt: COUNT.describe('how many tries so far'),
  state: z.enum(['pending', 'delivered', 'failed']),
  status: z.int().nullable().describe('the HTTP status of the last answer'),
  durationMs: COUNT.nullable().describe('how long the last try took'),
  error: z.string().nullable().describe('why the last try failed'),
  nextAttemptAt: TIME.nullable()
}).meta({ id: 'Delivery' })

/** @typedef {z.infer<typeof WEBHOOK>} Webhook */
const WEBHOOK = z.strictObject({
  id: NUMBER.describe('its place in the configuration'),
  url: z.string().meta({ description: 'the address without its secrets', examples: ['https://example.com/hook?token=…'] }),
  events: z.array(z.string()).describe('the events that are sent to it'),
  waiting: COUNT.describe('how many messages are still to be delivered'),
  deliveries: z.array(DELIVERY).describe('the last 20, newest first')
}).meta({ id: 'Webhook' })

/**
 * Webhooks and their deliveries.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'webhooks'> }} parts
 * @returns {Record<string, import('./endpoint.js').Resource>}
 */
export function webhookResources ({ deck }) {
  return {
    '/webhooks': {
      GET: operation({
        name: 'listWebhooks',
        summary: 'Lists the webhooks with their last deliveries',
        description: 'Only deliveries since the start of this master are listed.',
        role: 'viewer',
        cli: 'clusterdeck webhooks',
        answer: listOf(WEBHOOK),
        handle: () => ({ body: { items: deck.webhooks.list() } })
      })
    },

    '/webhooks/:id/test': {
      POST: operation({
        name: 'testWebhook',
        summary: 'Sends a test message to one webhook, without a retry',
        role: 'operator',
        cli: 'clusterdeck webhooks test 1',
        status: 202,
        problems: ['not-found', 'stopping'],
        answer: DELIVERY,
        handle: ({ id, auth }) => ({ body: deck.webhooks.test({ id, actor: auth.actor }) })
      })
    },

    '/webhooks/:id/deliveries/:n/retry': {
      POST: operation({
        name: 'retryDelivery',
        summary: 'Sends a failed delivery again, without a retry',
        role: 'operator',
        cli: 'clusterdeck webhooks retry 1 7',
        path: { n: ID_PARAMETER.describe('the id of a delivery') },
        status: 202,
        problems: ['not-found', 'delivery-not-failed', 'stopping'],
        answer: DELIVERY,
        handle: ({ id, req, auth }) => ({ body: deck.webhooks.retry({ id, delivery: parseId(req.params.n), actor: auth.actor }) })
      })
    }
  }
}
