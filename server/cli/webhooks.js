import { setTimeout as wait } from 'node:timers/promises'
import { formatExactDuration } from '../../public/format.js'
import { didYouMean } from '../config/nearest.js'
import { DeckError } from '../errors.js'
import { timedOut } from './api-client.js'
import { checkedId } from './id.js'
import { table } from './output.js'

/** @typedef {import('./commands.js').Context} Context */

const POLL_MS = 100

/** @type {Readonly<Record<string, (context: Context, id?: string, delivery?: string) => Promise<void>>>} */
const ACTIONS = Object.freeze({ test, retry })

/** @param {Context} context @param {string} [action] @param {string} [id] @param {string} [delivery] */
export async function webhooks (context, action, id, delivery) {
  if (action === undefined) return await list(context)
  if (!Object.hasOwn(ACTIONS, action)) {
    throw new DeckError('usage', `webhooks: expected test or retry, received ${JSON.stringify(action)}${didYouMean(action, Object.keys(ACTIONS))}`)
  }
  await ACTIONS[action](context, id, delivery)
}

/** @param {Context} context */
async function list ({ api, options, print }) {
  const body = await api.get('/webhooks')
  print(options.json ? json(body) : body.items.length === 0 ? 'no webhooks are configured (option notify)' : listText(body.items))
}

/** Without an id: all of them, one after the other. @param {Context} context @param {string} [id] @param {string} [surplus] */
async function test (context, id, surplus) {
  if (surplus !== undefined) throw new DeckError('usage', `webhooks test: expected one id at the most, received ${JSON.stringify(surplus)} as well`)
  const { api, options, print } = context
  const wanted = id === undefined ? (await api.get('/webhooks')).items.map((/** @type {any} */ each) => each.id) : [checkedId('webhooks test', id, 'a webhook')]
  if (wanted.length === 0) throw new DeckError('not-found', 'no webhooks are configured (option notify)')
  const items = []
  for (const webhook of wanted) {
    const delivery = await outcomeOf(webhook, await api.post(`/webhooks/${webhook}/test`), context)
    items.push({ webhook, delivery })
    if (!options.json && delivery.state === 'delivered') print(deliveredText(webhook, delivery))
  }
  if (options.json) print(json({ items }))
  checkDelivered(items)
}

/** @param {Context} context @param {string} [id] @param {string} [delivery] */
async function retry (context, id, delivery) {
  const webhook = checkedId('webhooks retry', id, 'a webhook')
  const n = checkedId('webhooks retry', delivery, 'a delivery')
  const { api, options, print } = context
  const ended = await outcomeOf(webhook, await api.post(`/webhooks/${webhook}/deliveries/${n}/retry`), context)
  if (options.json) print(json(ended))
  checkDelivered([{ webhook, delivery: ended }])
  if (!options.json) print(deliveredText(webhook, ended))
}

/** @param {number} webhook @param {any} delivery @param {Context} context @returns {Promise<any>} it, once it is over */
async function outcomeOf (webhook, delivery, { api, timeoutMs }) {
  const { id } = delivery
  while (delivery.state === 'pending') {
    await wait(POLL_MS)
    if (api.signal.aborted) throw timedOut(timeoutMs)
    const { items } = await api.get('/webhooks')
    delivery = items.find((/** @type {any} */ each) => each.id === webhook)?.deliveries.find((/** @type {any} */ each) => each.id === id)
    if (!delivery) throw new DeckError('not-found', `delivery ${id} of webhook ${webhook} is not known any more`)
  }
  return delivery
}

/** @param {{ webhook: number, delivery: any }[]} items @throws {DeckError} webhook-failed */
function checkDelivered (items) {
  const failed = items.filter(({ delivery }) => delivery.state !== 'delivered')
  if (failed.length > 0) throw new DeckError('webhook-failed', failed.map(({ webhook, delivery }) => `webhook ${webhook} failed: ${delivery.error}`).join('; '))
}

/** @param {number} webhook @param {any} delivery */
function deliveredText (webhook, { event, status, durationMs }) {
  return `webhook ${webhook}: ${event.type} delivered in ${formatExactDuration(durationMs)} (${status})`
}

/** @param {any[]} items */
function listText (items) {
  const targets = table(['WEBHOOK', 'WAITING', 'URL', 'EVENTS'], items.map(({ id, waiting, url, events }) => [id, waiting, url, events.join(', ')]), { right: [0, 1] })
  const rows = items.flatMap(({ id, deliveries }) => deliveries.map((/** @type {any} */ delivery) => [
    id, delivery.id, delivery.at, delivery.event.type, delivery.state, delivery.attempt, delivery.status, delivery.durationMs === null ? null : formatExactDuration(delivery.durationMs), detailOf(delivery)
  ]))
  return rows.length === 0 ? `${targets}\n\nno deliveries yet` : `${targets}\n\n${table(['WEBHOOK', 'DELIVERY', 'TIME', 'EVENT', 'STATE', 'TRIES', 'STATUS', 'TOOK', 'ERROR'], rows, { right: [0, 1, 5, 6, 7] })}`
}

/** @param {any} delivery */
function detailOf ({ error, nextAttemptAt }) {
  return nextAttemptAt === null ? error : `${error}, tried again at ${nextAttemptAt}`
}

/** @param {unknown} value */
function json (value) {
  return JSON.stringify(value, null, 2)
}
