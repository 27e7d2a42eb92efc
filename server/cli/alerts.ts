import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { formatExactDuration } from '../../public/format.ts'
import { ALERT_ID } from '../config/alert.ts'
import { ALERT_KINDS } from '../config/alert-kinds.ts'
import { DeckError, errorReason } from '../errors.ts'
import { checkedAction, orderFor, type Action } from './actions.ts'
import { timedOut } from './api-client.ts'
import { formatTable, jsonText } from './output.ts'
import { checkedId, misuse, namesIn } from './usage.ts'
import type { Context } from './commands.ts'
import type { Alert, Delivery } from '../api/alerts.ts'

const POLL_MS = 100

const ACTIONS: Readonly<Record<string, Action>> = Object.freeze({ add: { run: addAlert, words: 2 },
  change: { run: changeAlert, words: 2 }, pause: { run: pauseAlert('pause', true) },
  resume: { run: pauseAlert('resume', false) },
  delete: {
    run: orderFor((id) => checkedAlert('alerts delete', id), (api, id) => api.delete(`/alerts/${id}`), (_, id) =>
      `alert ${id} deleted`)
  }, test: { run: testAlerts }, retry: { run: retryDelivery, words: 2 } })

export async function alertsCommand (context: Context, action?: string, words: string[] = []) {
  if (action === undefined) return await listAlerts(context)
  await checkedAction('alerts', ACTIONS, [action, ...words]).run(context, ...words)
}

async function listAlerts ({ api, answer }: Context) {
  const body: { items: Alert[] } = await api.get('/alerts')
  answer(body,
    () => body.items.length === 0 ? 'no alerts are set: see clusterdeck alerts add --help' : listText(body.items))
}

async function addAlert (context: Context, kind?: string, to?: string) {
  if (kind === undefined) throw misuse('alerts add', ALERT_KINDS.join(', '), 'nothing')
  const { api, answer } = context
  const { apps, ...fields } = fieldsOf(context, kind, to)
  const alert: Alert = await api.post('/alerts', { kind, ...fields, apps: apps ?? undefined })
  answer(alert, () => `alert ${alert.id} added: ${receiverOf(alert)}`)
}

async function changeAlert (context: Context, id?: string, to?: string) {
  const alert = checkedAlert('alerts change', id)
  const known = (await readAlerts(context)).find((each) => each.id === alert)
  const changes = fieldsOf(context, known?.kind ?? 'webhook', to)
  if (Object.values(changes).every((value) => value === undefined))
    throw misuse('alerts change', 'a receiver or an option such as --events')
  const changed: Alert = await context.api.patch(`/alerts/${alert}`, changes)
  context.answer(changed, () => `alert ${changed.id} changed`)
}

function pauseAlert (action: 'pause' | 'resume', isPaused: boolean) {
  return orderFor((id) => checkedAlert(`alerts ${action}`, id),
    (api, id) => api.patch<Alert>(`/alerts/${id}`, { isPaused }), ({ id }) => `alert ${id} ${action}d`)
}

/** What the options and the receiver say. `to`: an address, or several mail addresses. */
function fieldsOf ({ options, cwd }: Context, kind: string, to?: string) {
  const { server, from, user, title, events, apps } = options
  const [host, port] = server === undefined ? [] : [server.replace(/:\d+$/, ''), /:(\d+)$/.exec(server)?.[1]]
  const read = (name: string, file: string | undefined) => file && textIn(name, path.resolve(cwd, file))
  return {
    ...(kind === 'mail'
      ? { to: to === undefined ? undefined : namesIn(to) }
      : { [kind === 'sentry' ? 'dsn' : 'url']: to ?? read('--url-file', options.urlFile) }),
    name: title,
    events: events === undefined ? undefined : namesIn(events),
    apps: apps === '*' ? null : apps && namesIn(apps),
    secret: read('--secret-file', options.secretFile),
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

/** @throws {DeckError} usage */
function checkedAlert (name: string, id: string | undefined): string {
  if (id !== undefined && ALERT_ID.safeParse(id).success) return id
  throw misuse(name, String(ALERT_ID.description), id === undefined ? 'nothing' : JSON.stringify(id))
}

/** Tests one alert, or without an id all of them, one after the other. */
async function testAlerts (context: Context, id?: string) {
  const { api, options, print } = context
  const wanted = id === undefined
    ? (await readAlerts(context)).map((each) => each.id)
    : [checkedAlert('alerts test', id)]
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
  const alert = checkedAlert('alerts retry', id)
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

/** @returns the delivery once it has ended */
async function outcomeOf (alert: string, delivery: Delivery, context: Context): Promise<Delivery> {
  const { id } = delivery
  while (delivery.state === 'pending') {
    await wait(POLL_MS)
    if (context.api.signal.aborted) throw timedOut(context.timeoutMs)
    const { deliveries }: Alert = await context.api.get(`/alerts/${alert}`)
    const found = deliveries.find((each) => each.id === id)
    if (!found) throw new DeckError('not-found', `delivery ${id} of alert ${alert} is no longer kept`)
    delivery = found
  }
  return delivery
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

function listText (items: Alert[]) {
  const targetRows = items.map((
    alert
  ) => [alert.id, alert.kind, alert.name, alert.isPaused ? 'paused' : 'on', alert.waiting, receiverOf(alert),
    (alert.isDefault ? 'problems' : alert.events.join(', ')) + (alert.apps ? ` of ${alert.apps.join(', ')}` : '')]
  )
  const targets = formatTable(['ALERT', 'KIND', 'NAME', 'STATE', 'WAITING', 'TO', 'EVENTS'], targetRows, { right: [4] })
  const rows = items.flatMap(({ id, deliveries }) => deliveries.map((delivery) => [id, ...cellsOf(delivery)]))
  if (rows.length === 0) return `${targets}\n\nno deliveries yet`
  const head = ['ALERT', 'DELIVERY', 'TIME', 'EVENT', 'STATE', 'TRIES', 'STATUS', 'TOOK', 'ERROR']
  return `${targets}\n\n${formatTable(head, rows, { right: [1, 5, 6, 7] })}`
}

function receiverOf ({ url, mail }: Alert) {
  return mail ? `${mail.to.join(', ')} by ${mail.host}:${mail.port}` : String(url)
}

function cellsOf ({ id, at, event, state, attempt, status, durationMs, error, nextAttemptAt }: Delivery) {
  const took = durationMs === null ? null : formatExactDuration(durationMs)
  return [id, at, event.type, state, attempt, status, took,
    nextAttemptAt === null ? error : `${error}, next try at ${nextAttemptAt}`]
}
