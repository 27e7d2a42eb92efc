import { DeckError } from '../errors.ts'
import { ALERT_KINDS, MAX_ADDED_ALERTS } from '../config/alert-kinds.ts'
import { PLACEHOLDERS } from '../../public/alert-template.ts'
import { causeText } from '../../public/cause-words.ts'
import { EVENT_TYPES, kindOf, type Tone } from '../events/kinds.ts'
import { matchesPattern } from '../events/pattern.ts'
import { TOPICS, topicsOf } from '../events/topics.ts'
import type { Deck } from '../deck.ts'
import type { Powers } from '../dashboard/powers.ts'
import type { DeckEvent } from '../events/stream.ts'

type Alerts = Deck['alerts']
/** `digest`: of its settings, as the page has shown them */
type Alert = ReturnType<Alerts['list']>[number] & { digest: string }
type Kind = Alert['kind']
type Badge = { label: string, tone: Tone }

/** What people call a kind, and where they get what it needs. */
const SERVICES: Readonly<Record<Kind, { label: string, icon: string, about: string, how: string, example: string }>> =
  Object.freeze({
    slack: { label: 'Slack', icon: 'message', about: 'to a channel',
      how: 'In Slack, add the app Incoming Webhooks to a channel and copy its webhook URL.',
      example: 'https://hooks.slack.com/services/…' },
    discord: { label: 'Discord', icon: 'message', about: 'to a channel',
      how: 'In Discord, open the settings of a channel, Integrations, Webhooks, and copy the URL of a new one.',
      example: 'https://discord.com/api/webhooks/…' },
    teams: { label: 'Microsoft Teams', icon: 'message', about: 'to a channel or chat',
      how: 'In Teams, open Workflows of a channel, choose “Send webhook alerts to a channel”, and copy its URL.',
      example: 'https://….logic.azure.com/workflows/…' },
    mail: { label: 'Mail', icon: 'mail', about: 'by an SMTP server',
      how: 'Name the mail server that takes your mail, and who is to get the messages.', example: '' },
    sentry: { label: 'Sentry', icon: 'circle-alert', about: 'or Bugsink, GlitchTip',
      how:
        'In the settings of a project, open Client Keys and copy the DSN. Crashes arrive with their stack and source lines, in the same groups.',
      example: 'https://key@sentry.example.com/1' },
    webhook: { label: 'Webhook', icon: 'radio', about: 'JSON to any address',
      how:
        'clusterdeck posts the event as JSON, or a body of your own. With a secret it is signed as Standard Webhooks says.',
      example: 'https://example.com/hook' }
  })

const STATES: Readonly<Record<Alert['deliveries'][number]['state'], Badge>> = Object.freeze({
  pending: { label: 'Pending', tone: 'info' },
  delivered: { label: 'Delivered', tone: 'ok' },
  failed: { label: 'Failed', tone: 'bad' }
})

/** `appNames`: of a host, whose alerts are for some of them; `new`: the kind of one that is to be added, `change`: the id of one that is to be changed */
export function alertsModel (
  { deck: { alerts }, can, params, now: clock, appNames = null }: {
    deck: { alerts: Pick<Alerts, 'list' | 'preview' | 'digest'> },
    can?: Powers,
    params: URLSearchParams,
    now: () => number,
    appNames?: string[] | null
  }
) {
  const now = clock()
  const list = alerts.list().map((alert) => ({ ...alert, digest: alerts.digest(alert.id) }))
  return { now, appNames, alerts: list.map(toShown), limit: MAX_ADDED_ALERTS,
    services: ALERT_KINDS.map((kind) => ({ kind, ...SERVICES[kind] })),
    form: can?.administer ? formOf({ alerts, list, params, now }) : null }
}

function toShown ({ deliveries, ...alert }: Alert) {
  const rows = deliveries.map(toRow)
  const { topics, others } = topicsOf(alert.events)
  return { ...alert, service: SERVICES[alert.kind], title: alert.name ?? SERVICES[alert.kind].label,
    badge: badgeOf(alert, deliveries),
    topics: [...topics.map(({ label }) => ({ label, title: null })),
      ...others.map((pattern) => ({ label: patternText(pattern), title: pattern }))],
    last: rows.find(({ attempt }) => attempt > 0) ?? null, deliveries: rows,
    failed: rows.filter(({ state }) => state === 'failed').length }
}

/** In words. `pattern`: see pattern.ts */
function patternText (pattern: string): string {
  const [types, cause = null] = pattern.split(':')
  const [first = pattern, second, ...more] = EVENT_TYPES.filter((type) => matchesPattern(types, type)).map((type) =>
    `${kindOf({ type, cause }).label}${cause === null ? '' : ` (${causeText(cause)})`}`
  )
  return [first, ...second ? [second] : []].join(', ') + (more.length > 0 ? ` and ${more.length} more kinds` : '')
}

function toRow (delivery: Alert['deliveries'][number]) {
  const { id, app } = delivery.event
  // Below the place of the host, where that is another one.
  const url = app === undefined ? null : `${app === null ? '' : `/apps/${app}`}/history/${id}`
  const event = { ...delivery.event, url, label: kindOf({ type: delivery.event.type, cause: null }).label }
  return { ...delivery, event, badge: STATES[delivery.state], canRetry: delivery.state === 'failed',
    hint: hintOf(delivery) }
}

function hintOf ({ status, error }: Alert['deliveries'][number]): string | null {
  const [, hint = null] = HINTS.find(([answer]) => answer === status || answer === error) ?? []
  return hint
}

const HINTS: readonly [number | string, string][] = [[400,
  'The receiver did not understand it: is this the right kind of alert for its address?'], [401,
  'The receiver did not accept the address or its key.'], [403, 'The receiver did not accept the address or its key.'],
  [404, 'Nobody has this address: was the webhook deleted there?'], [410, 'The webhook was deleted there.'], [429,
  'The receiver gets too many messages.'], ['ENOTFOUND', 'There is no host of this name.'], ['ECONNREFUSED',
  'Nothing listens there.']]

function badgeOf ({ isPaused }: Pick<Alert, 'isPaused'>, deliveries: Alert['deliveries']): Badge {
  if (isPaused) return { label: 'Paused', tone: 'warn' }
  if (deliveries.length === 0) return { label: 'Nothing sent yet', tone: 'idle' }
  const { state, attempt, error } = deliveries[0]
  if (state === 'failed' || error !== null)
    return { label: state === 'failed' ? 'Last message failed' : 'Trying again',
      tone: state === 'failed' ? 'bad' : 'warn' }
  return state === 'delivered'
    ? { label: 'Works', tone: 'ok' }
    : { label: attempt === 0 ? 'Waiting' : 'Sending', tone: 'info' }
}

/** @throws {DeckError} not-found, not-possible */
function formOf (
  { alerts, list, params, now }: { alerts: Pick<Alerts, 'preview'>, list: Alert[], params: URLSearchParams,
    now: number }
) {
  const id = params.get('change')
  const changed = id === null ? null : changeable(list, id)
  const wanted = changed?.kind ?? ALERT_KINDS.find((kind) => kind === params.get('new')) ??
    (list.length === 0 ? 'slack' : null)
  if (wanted === null) return null
  const { topics, others } = changed
    ? topicsOf(changed.events)
    : { topics: TOPICS.filter(({ isProblem }) => isProblem), others: [] }
  return { kind: wanted, service: SERVICES[wanted], changed,
    topics: TOPICS.map((topic) => ({ ...topic, isChosen: topics.includes(topic) })), others: others.join(', '),
    placeholders: PLACEHOLDERS, preview: alerts.preview(wanted, exampleEvent(now)) }
}

/** @throws {DeckError} not-found, not-possible */
function changeable (list: Alert[], id: string) {
  const alert = list.find((each) => each.id === id)
  if (!alert) throw new DeckError('not-found', `Alert ${id.slice(0, 20)} does not exist`)
  if (alert.isInFile)
    throw new DeckError('not-possible', `Alert ${id} is set in the configuration file: change it there`)
  return alert
}

function exampleEvent (now: number): DeckEvent {
  return { id: 4711, at: new Date(now).toISOString(), type: 'crash.group-new', cause: 'crash', slot: 3, worker: 7,
    pid: 4242, release: 'r12', rollout: null, actor: 'system', code: null, signal: null, uptimeMs: null,
    message: 'TypeError: Cannot read properties of undefined (reading \'price\')', detail: null }
}
