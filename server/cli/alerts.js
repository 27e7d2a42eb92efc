import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { formatExactDuration } from '../../public/format.js'
import { ALERT_ID } from '../config/alert.js'
import { ALERT_KINDS } from '../config/alert-kinds.js'
import { didYouMean } from '../config/nearest.js'
import { DeckError, errorReason } from '../errors.js'
import { timedOut } from './api-client.js'
import { checkedId } from './id.js'
import { namesIn } from './names.js'
import { formatTable, jsonText } from './output.js'

/** @typedef {import('./commands.js').Context} Context */
/** @typedef {import('../api/alerts.js').Alert} Alert */
/** @typedef {import('../api/alerts.js').Delivery} Delivery */

const POLL_MS = 100

/** @type {Readonly<Record<string, (context: Context, ...words: string[]) => Promise<void>>>} */
const ACTIONS = Object.freeze({
  add: addAlert,
  change: changeAlert,
  pause: (context, id, ...surplus) => sendChange(context, 'pause', id, surplus, { isPaused: true }),
  resume: (context, id, ...surplus) => sendChange(context, 'resume', id, surplus, { isPaused: false }),
  delete: deleteAlert,
  test: testAlerts,
  retry: retryDelivery
})

/** @param {Context} context @param {string} [action] @param {string[]} [words] */
export async function alertsCommand (context, action, words = []) {
  if (action === undefined) return await listAlerts(context)
  if (!Object.hasOwn(ACTIONS, action)) {
    throw new DeckError('usage', `alerts: expected ${Object.keys(ACTIONS).join(', ')}, received ${JSON.stringify(action)}${didYouMean(action, Object.keys(ACTIONS))}`)
  }
  await ACTIONS[action](context, ...words)
}

/** @param {Context} context */
async function listAlerts ({ api, options, print }) {
  /** @type {{ items: Alert[] }} */
  const body = await api.get('/alerts')
  print(options.json ? jsonText(body) : body.items.length === 0 ? 'no alerts are set: see clusterdeck alerts add --help' : listText(body.items))
}

/** @param {Context} context @param {string} [kind] @param {string} [to] @param {string[]} surplus */
async function addAlert (context, kind, to, ...surplus) {
  if (kind === undefined) throw new DeckError('usage', `alerts add: expected ${ALERT_KINDS.join(', ')}, received nothing`)
  refuseSurplus('alerts add', surplus)
  const { api, options, print } = context
  /** @type {Alert} */
  const alert = await api.post('/alerts', { kind, ...fieldsOf(context, kind, to) })
  print(options.json ? jsonText(alert) : `alert ${alert.id} added: ${receiverOf(alert)}`)
}

/** @param {Context} context @param {string} [id] @param {string} [to] @param {string[]} surplus */
async function changeAlert (context, id, to, ...surplus) {
  const alert = checkedAlert('alerts change', id)
  const known = (await readAlerts(context)).find((each) => each.id === alert)
  const changes = fieldsOf(context, known?.kind ?? 'webhook', to)
  if (Object.values(changes).every((value) => value === undefined)) throw new DeckError('usage', 'alerts change: expected a receiver or an option such as --events, received none')
  await sendChange(context, 'change', id, surplus, changes)
}

/** @param {Context} context @param {'change' | 'pause' | 'resume'} action @param {string | undefined} id @param {string[]} surplus @param {object} changes */
async function sendChange ({ api, options, print }, action, id, surplus, changes) {
  const alert = checkedAlert(`alerts ${action}`, id)
  refuseSurplus(`alerts ${action}`, surplus)
  /** @type {Alert} */
  const body = await api.patch(`/alerts/${alert}`, changes)
  print(options.json ? jsonText(body) : `alert ${body.id} ${action === 'change' ? 'changed' : `${action}d`}`)
}

/** @param {Context} context @param {string} [id] @param {string[]} surplus */
async function deleteAlert ({ api, options, print }, id, ...surplus) {
  const alert = checkedAlert('alerts delete', id)
  refuseSurplus('alerts delete', surplus)
  const body = await api.delete(`/alerts/${alert}`)
  print(options.json ? jsonText(body) : `alert ${alert} deleted`)
}

/** What the options and the receiver say. @param {Context} context @param {string} kind @param {string} [to] an address, or several mail addresses */
function fieldsOf ({ options, cwd }, kind, to) {
  const { server, from, user, title, events } = options
  const [host, port] = server === undefined ? [] : [server.replace(/:\d+$/, ''), /:(\d+)$/.exec(server)?.[1]]
  const read = (/** @type {string} */ name, /** @type {string | undefined} */ file) => file && textIn(name, path.resolve(cwd, file))
  return {
    ...(kind === 'mail' ? { to: to === undefined ? undefined : namesIn(to) } : { [kind === 'sentry' ? 'dsn' : 'url']: to ?? read('--url-file', options.urlFile) }),
    name: title,
    events: events === undefined ? undefined : namesIn(events),
    secret: read('--secret-file', options.secretFile),
    host,
    port: port && Number(port),
    from,
    user,
    password: read('--password-file', options.passwordFile)
  }
}

/** @param {string} option @param {string} file @throws {DeckError} usage */
function textIn (option, file) {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new DeckError('usage', `${option}: expected a file that can be read, received ${JSON.stringify(file)} (${errorReason(error)})`, { cause: error })
  }
}

/** @param {string} name @param {string[]} surplus @throws {DeckError} usage */
function refuseSurplus (name, [first]) {
  if (first !== undefined) throw new DeckError('usage', `${name}: expected nothing more, received ${JSON.stringify(first)}`)
}

/** @param {string} name @param {string | undefined} id @returns {string} @throws {DeckError} usage */
function checkedAlert (name, id) {
  if (id !== undefined && ALERT_ID.safeParse(id).success) return id
  throw new DeckError('usage', `${name}: expected ${ALERT_ID.description}, received ${id === undefined ? 'nothing' : JSON.stringify(id)}`)
}

/** Tests one alert, or without an id all of them, one after the other. @param {Context} context @param {string} [id] @param {string} [surplus] */
async function testAlerts (context, id, surplus) {
  if (surplus !== undefined) throw new DeckError('usage', `alerts test: expected one id at the most, received ${JSON.stringify(surplus)} as well`)
  const { api, options, print } = context
  const wanted = id === undefined ? (await readAlerts(context)).map((each) => each.id) : [checkedAlert('alerts test', id)]
  if (wanted.length === 0) throw new DeckError('not-found', 'no alerts are set')
  const items = []
  for (const alert of wanted) {
    const delivery = await outcomeOf(alert, await api.post(`/alerts/${alert}/test`), context)
    items.push({ alert, delivery })
    if (!options.json && delivery.state === 'delivered') print(deliveredText(alert, delivery))
  }
  if (options.json) print(jsonText({ items }))
  checkDelivered(items)
}

/** @param {Context} context @param {string} [id] @param {string} [delivery] @param {string[]} surplus */
async function retryDelivery (context, id, delivery, ...surplus) {
  refuseSurplus('alerts retry', surplus)
  const alert = checkedAlert('alerts retry', id)
  const n = checkedId('alerts retry', delivery, 'a delivery')
  const { api, options, print } = context
  const ended = await outcomeOf(alert, await api.post(`/alerts/${alert}/deliveries/${n}/retry`), context)
  if (options.json) print(jsonText(ended))
  checkDelivered([{ alert, delivery: ended }])
  if (!options.json) print(deliveredText(alert, ended))
}

/** @param {Context} context @returns {Promise<Alert[]>} */
async function readAlerts ({ api }) {
  return (await api.get('/alerts')).items
}

/** @param {string} alert @param {Delivery} delivery @param {Context} context @returns {Promise<Delivery>} the delivery once it has ended */
async function outcomeOf (alert, delivery, context) {
  const { id } = delivery
  while (delivery.state === 'pending') {
    await wait(POLL_MS)
    if (context.api.signal.aborted) throw timedOut(context.timeoutMs)
    /** @type {Alert} */
    const { deliveries } = await context.api.get(`/alerts/${alert}`)
    const found = deliveries.find((each) => each.id === id)
    if (!found) throw new DeckError('not-found', `delivery ${id} of alert ${alert} is no longer kept`)
    delivery = found
  }
  return delivery
}

/** @param {{ alert: string, delivery: Delivery }[]} items @throws {DeckError} alert-failed */
function checkDelivered (items) {
  const failed = items.filter(({ delivery }) => delivery.state !== 'delivered')
  if (failed.length > 0) throw new DeckError('alert-failed', failed.map(({ alert, delivery }) => `alert ${alert} failed: ${delivery.error}`).join('; '))
}

/** @param {string} alert @param {Delivery} delivery */
function deliveredText (alert, { event, status, durationMs }) {
  return `alert ${alert}: ${event.type} delivered in ${formatExactDuration(durationMs)} (${status})`
}

/** @param {Alert[]} items */
function listText (items) {
  const targetRows = items.map((alert) => [alert.id, alert.kind, alert.name, alert.isPaused ? 'paused' : 'on', alert.waiting, receiverOf(alert), alert.isDefault ? 'problems' : alert.events.join(', ')])
  const targets = formatTable(['ALERT', 'KIND', 'NAME', 'STATE', 'WAITING', 'TO', 'EVENTS'], targetRows, { right: [4] })
  const rows = items.flatMap(({ id, deliveries }) => deliveries.map((delivery) => [id, ...cellsOf(delivery)]))
  if (rows.length === 0) return `${targets}\n\nno deliveries yet`
  const head = ['ALERT', 'DELIVERY', 'TIME', 'EVENT', 'STATE', 'TRIES', 'STATUS', 'TOOK', 'ERROR']
  return `${targets}\n\n${formatTable(head, rows, { right: [1, 5, 6, 7] })}`
}

/** @param {Alert} alert */
function receiverOf ({ url, mail }) {
  return mail ? `${mail.to.join(', ')} by ${mail.host}:${mail.port}` : String(url)
}

/** @param {Delivery} delivery */
function cellsOf ({ id, at, event, state, attempt, status, durationMs, error, nextAttemptAt }) {
  const took = durationMs === null ? null : formatExactDuration(durationMs)
  return [id, at, event.type, state, attempt, status, took, nextAttemptAt === null ? error : `${error}, next try at ${nextAttemptAt}`]
}
