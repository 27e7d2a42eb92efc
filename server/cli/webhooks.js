import { setTimeout as wait } from 'node:timers/promises'
import { formatExactDuration } from '../../public/format.js'
import { didYouMean } from '../config/nearest.js'
import { DeckError } from '../errors.js'
import { timedOut } from './api-client.js'
import { checkedId } from './id.js'
import { formatTable, jsonText } from './output.js'

/** @typedef {import('./commands.js').Context} Context */
/** @typedef {import('../api/webhooks.js').Webhook} Webhook */
/** @typedef {import('../api/webhooks.js').Delivery} Delivery */

const POLL_MS = 100

/** @type {Readonly<Record<string, (context: Context, id?: string, delivery?: string) => Promise<void>>>} */
const ACTIONS = Object.freeze({ test: testWebhooks, retry: retryDelivery })

/** @param {Context} context @param {string} [action] @param {string} [id] @param {string} [delivery] */
export async function webhooksCommand (context, action, id, delivery) {
  if (action === undefined) return await listWebhooks(context)
  if (!Object.hasOwn(ACTIONS, action)) {
    throw new DeckError('usage', `webhooks: expected test or retry, received ${JSON.stringify(action)}${didYouMean(action, Object.keys(ACTIONS))}`)
  }
  await ACTIONS[action](context, id, delivery)
}

/** @param {Context} context */
async function listWebhooks ({ api, options, print }) {
  /** @type {{ items: Webhook[] }} */
  const body = await api.get('/webhooks')
  print(options.json ? jsonText(body) : body.items.length === 0 ? 'no webhooks are configured (option notify)' : listText(body.items))
}

/** Tests one webhook, or without an id all of them, one after the other. @param {Context} context @param {string} [id] @param {string} [surplus] */
async function testWebhooks (context, id, surplus) {
  if (surplus !== undefined) throw new DeckError('usage', `webhooks test: expected one id at the most, received ${JSON.stringify(surplus)} as well`)
  const { api, options, print } = context
  const wanted = id === undefined ? (await readWebhooks(context)).map((each) => each.id) : [checkedId('webhooks test', id, 'a webhook')]
  if (wanted.length === 0) throw new DeckError('not-found', 'no webhooks are configured (option notify)')
  const items = []
  for (const webhook of wanted) {
    const delivery = await outcomeOf(webhook, await api.post(`/webhooks/${webhook}/test`), context)
    items.push({ webhook, delivery })
    if (!options.json && delivery.state === 'delivered') print(deliveredText(webhook, delivery))
  }
  if (options.json) print(jsonText({ items }))
  checkDelivered(items)
}

/** @param {Context} context @param {string} [id] @param {string} [delivery] */
async function retryDelivery (context, id, delivery) {
  const webhook = checkedId('webhooks retry', id, 'a webhook')
  const n = checkedId('webhooks retry', delivery, 'a delivery')
  const { api, options, print } = context
  const ended = await outcomeOf(webhook, await api.post(`/webhooks/${webhook}/deliveries/${n}/retry`), context)
  if (options.json) print(jsonText(ended))
  checkDelivered([{ webhook, delivery: ended }])
  if (!options.json) print(deliveredText(webhook, ended))
}

/** @param {Context} context @returns {Promise<Webhook[]>} */
async function readWebhooks ({ api }) {
  return (await api.get('/webhooks')).items
}

/** @param {number} webhook @param {Delivery} delivery @param {Context} context @returns {Promise<Delivery>} the delivery once it has ended */
async function outcomeOf (webhook, delivery, context) {
  const { id } = delivery
  while (delivery.state === 'pending') {
    await wait(POLL_MS)
    if (context.api.signal.aborted) throw timedOut(context.timeoutMs)
    const items = await readWebhooks(context)
    const found = items.find((each) => each.id === webhook)?.deliveries.find((each) => each.id === id)
    if (!found) throw new DeckError('not-found', `delivery ${id} of webhook ${webhook} is no longer kept`)
    delivery = found
  }
  return delivery
}

/** @param {{ webhook: number, delivery: Delivery }[]} items @throws {DeckError} webhook-failed */
function checkDelivered (items) {
  const failed = items.filter(({ delivery }) => delivery.state !== 'delivered')
  if (failed.length > 0) throw new DeckError('webhook-failed', failed.map(({ webhook, delivery }) => `webhook ${webhook} failed: ${delivery.error}`).join('; '))
}

/** @param {number} webhook @param {Delivery} delivery */
function deliveredText (webhook, { event, status, durationMs }) {
  return `webhook ${webhook}: ${event.type} delivered in ${formatExactDuration(durationMs)} (${status})`
}

/** @param {Webhook[]} items */
function listText (items) {
  const targetRows = items.map(({ id, waiting, url, events }) => [id, waiting, url, events.join(', ')])
  const targets = formatTable(['WEBHOOK', 'WAITING', 'URL', 'EVENTS'], targetRows, { right: [0, 1] })
  const rows = items.flatMap(({ id, deliveries }) => deliveries.map((delivery) => [id, ...cellsOf(delivery)]))
  if (rows.length === 0) return `${targets}\n\nno deliveries yet`
  const head = ['WEBHOOK', 'DELIVERY', 'TIME', 'EVENT', 'STATE', 'TRIES', 'STATUS', 'TOOK', 'ERROR']
  return `${targets}\n\n${formatTable(head, rows, { right: [0, 1, 5, 6, 7] })}`
}

/** @param {Delivery} delivery */
function cellsOf ({ id, at, event, state, attempt, status, durationMs, error, nextAttemptAt }) {
  const took = durationMs === null ? null : formatExactDuration(durationMs)
  return [id, at, event.type, state, attempt, status, took, nextAttemptAt === null ? error : `${error}, next try at ${nextAttemptAt}`]
}
