import { readFileSync } from 'node:fs'
import path from 'node:path'
import { formatExactDuration } from '../../public/format.ts'
import { ALERT_ID } from '../config/alert.ts'
import { ALERT_KINDS } from '../config/alert-kinds.ts'
import { attempt, DeckError, errorReason } from '../errors.ts'
import { actionsCommand, listCommand, orderFor, tableText } from '../cli/actions.ts'
import { waitUntil } from '../cli/api-client.ts'
import { inText, jsonText, type Columns } from '../cli/output.ts'
import { checkedForm, checkedId, misuse, namesIn } from '../cli/usage.ts'
import type { Context } from '../cli/commands.ts'
import type { Alert, Delivery } from './api.ts'

const ALERT_FORM = { test: (text: string) => ALERT_ID.safeParse(text).success }

const ALERTS: Columns<Alert> = { ALERT: 'id', KIND: 'kind', NAME: 'name',
  STATE: ({ isPaused }) => isPaused ? 'paused' : 'on', WAITING: [true, 'waiting'], TO: receiverOf, EVENTS: eventsOf }
const DELIVERIES: Columns<Delivery & { alert: string }> = { ALERT: 'alert', DELIVERY: [true, 'id'], TIME: 'at',
  EVENT: ({ event }) => event.type, STATE: 'state', TRIES: [true, 'attempt'], STATUS: [true, 'status'],
  TOOK: [true, ({ durationMs }) => durationMs === null ? null : formatExactDuration(durationMs)],
  ERROR: ({ error, nextAttemptAt }, now) =>
    nextAttemptAt === null ? error : `${error}, next try ${inText(nextAttemptAt, now)}` }
const alertsText = tableText(ALERTS, 'no alerts are set: see clusterdeck alerts add --help')
const deliveriesText = tableText(DELIVERIES, 'no deliveries yet')

export const alertsCommand = actionsCommand('alerts', { add: { run: addAlert, words: 2 },
  change: { run: changeAlert, words: 2 }, pause: pauseAlert('pause', true), resume: pauseAlert('resume', false),
  delete: orderFor(alertOf('delete'), 'DELETE /alerts/:id', (_, id) => `alert ${id} deleted`), test: testAlerts,
  retry: { run: retryDelivery, words: 2 } }, listCommand<Alert>({ path: '/alerts', textOf: listText }))

function listText ({ items }: { items: Alert[] }) {
  const deliveries = items.flatMap((alert) => alert.deliveries.map((each) => ({ ...each, alert: alert.id })))
  return [alertsText({ items }), ...(items.length > 0 ? [deliveriesText({ items: deliveries })] : [])].join('\n\n')
}

function receiverOf ({ url, mail }: Alert) {
  return mail ? `${mail.to.join(', ')} by ${mail.host}:${mail.port}` : String(url)
}

function eventsOf ({ isDefault, events, apps }: Alert) {
  return (isDefault ? 'problems' : events.join(', ')) + (apps ? ` of ${apps.join(', ')}` : '')
}

async function addAlert (context: Context, kind?: string, to?: string) {
  if (kind === undefined) throw misuse('alerts add', ALERT_KINDS.join(', '), 'nothing')
  const { api, answer } = context
  const { apps, ...fields } = fieldsOf(context, kind, to)
  const alert: Alert = await api.post('/alerts', { kind, ...fields, apps: apps ?? undefined })
  answer(alert, () => `alert ${alert.id} added: ${receiverOf(alert)}`)
}

async function changeAlert (context: Context, id?: string, to?: string) {
  const alert = alertOf('change')(id)
  const known = (await readAlerts(context)).find((each) => each.id === alert)
  const changes = fieldsOf(context, known?.kind ?? 'webhook', to)
  if (Object.values(changes).every((value) => value === undefined))
    throw misuse('alerts change', 'a receiver or an option such as --events')
  const changed: Alert = await context.api.patch(`/alerts/${alert}`, changes)
  context.answer(changed, () => `alert ${changed.id} changed`)
}

function pauseAlert (action: 'pause' | 'resume', isPaused: boolean) {
  return orderFor(alertOf(action), (api, id) => api.patch<Alert>(`/alerts/${id}`, { isPaused }),
    ({ id }) => `alert ${id} ${action}d`)
}

/** What the options and the receiver say. `to`: an address, or several mail addresses. */
function fieldsOf ({ options, cwd }: Context, kind: string, to?: string) {
  const { server, from, user, title, events, apps } = options
  const [host, port] = server === undefined ? [] : [server.replace(/:\d+$/, ''), /:(\d+)$/.exec(server)?.[1]]
  const read = (name: string, file: string | undefined) => file && textIn(name, path.resolve(cwd, file))
  const readJson = (name: string, file: string | undefined) => file && jsonIn(name, path.resolve(cwd, file))
  return {
    ...(kind === 'mail'
      ? { to: namesIn(to) }
      : { [kind === 'sentry' ? 'dsn' : 'url']: to ?? read('--url-file', options.urlFile) }),
    name: title,
    events: namesIn(events),
    apps: apps === '*' ? null : namesIn(apps),
    secret: read('--secret-file', options.secretFile),
    body: readJson('--body-file', options.bodyFile),
    headers: readJson('--headers-file', options.headersFile),
    host,
    port: port && Number(port),
    from,
    user,
    password: read('--password-file', options.passwordFile)
  }
}

/** @throws {DeckError} usage */
function textIn (option: string, file: string) {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw misuse(option, 'a file that can be read', `${JSON.stringify(file)} (${errorReason(error)})`, { cause: error })
  }
}

/** What it holds may be secret. @throws {DeckError} usage */
function jsonIn (option: string, file: string): unknown {
  const text = textIn(option, file)
  const read = attempt(() => [JSON.parse(text)])
  if (!read) throw misuse(option, 'a file of JSON', JSON.stringify(file))
  return read[0]
}

function alertOf (action: string): (id: string | undefined) => string {
  return (id) => checkedForm(`alerts ${action}`, ALERT_FORM, String(ALERT_ID.description), id)
}

/** Tests one alert, or without an id all of them, one after the other. */
async function testAlerts (context: Context, id?: string) {
  const { api, options, print } = context
  const wanted = id === undefined ? (await readAlerts(context)).map((each) => each.id) : [alertOf('test')(id)]
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

async function retryDelivery (context: Context, id?: string, delivery?: string) {
  const alert = alertOf('retry')(id)
  const n = checkedId('alerts retry', delivery, 'a delivery')
  const { api, options, print } = context
  const ended = await outcomeOf(alert, await api.post(`/alerts/${alert}/deliveries/${n}/retry`), context)
  if (options.json) print(jsonText(ended))
  checkDelivered([{ alert, delivery: ended }])
  if (!options.json) print(deliveredText(alert, ended))
}

async function readAlerts ({ api }: Context): Promise<Alert[]> {
  return (await api.get<{ items: Alert[] }>('/alerts')).items
}

async function outcomeOf (alert: string, delivery: Delivery, { api }: Context): Promise<Delivery> {
  const { id } = delivery
  let now: Delivery | undefined = delivery
  await waitUntil(async () => {
    if (now?.state === 'pending')
      now = (await api.get<Alert>(`/alerts/${alert}`)).deliveries.find((each) => each.id === id)
    return now?.state !== 'pending'
  }, api)
  if (!now) throw new DeckError('not-found', `delivery ${id} of alert ${alert} is no longer kept`)
  return now
}

/** @throws {DeckError} alert-failed */
function checkDelivered (items: { alert: string, delivery: Delivery }[]) {
  const failed = items.filter(({ delivery }) => delivery.state !== 'delivered')
  if (failed.length > 0)
    throw new DeckError('alert-failed',
      failed.map(({ alert, delivery }) => `alert ${alert} failed: ${delivery.error}`).join('; '))
}

function deliveredText (alert: string, { event, status, durationMs }: Delivery) {
  return `alert ${alert}: ${event.type} delivered in ${formatExactDuration(durationMs)} (${status})`
}
