import { z } from 'zod'
import { ALERT, ALERT_CHANGES, ALERT_ID } from '../config/alert.ts'
import { ALERT_KINDS } from '../config/alert-kinds.ts'
import { DeckError } from '../errors.ts'
import { eventsOf } from '../events/topics.ts'
import { created, operation, placeOf, type Fields, type Resource } from '../api/endpoint.ts'
import { ACTOR, COUNT, ID_PARAMETER, listOf, NUMBER, TIME } from '../api/fields.ts'
import { wordsIn } from '../api/form.ts'
import { booleanParam, parseId } from '../api/input.ts'
import { checkMatch, IF_MATCH, newestOf, tagOf, type Past } from '../api/preconditions.ts'
import { doerOf } from '../api/roles.ts'
import type { Deck } from '../deck.ts'

export type Delivery = z.infer<typeof DELIVERY>
const DELIVERY = z.strictObject({ id: NUMBER.describe('its number among those of the alert'),
  at: TIME.describe('the first try'),
  event: z.strictObject({ id: NUMBER, type: z.string(),
    app: z.string().nullable().optional().describe(
      'in whose history it is, where that is not the own one: an app; null: the host itself'
    ) }), attempt: COUNT.describe('how many tries so far'), state: z.enum(['pending', 'delivered', 'failed']),
  status: z.int().nullable().describe('the HTTP or SMTP status of the last answer'),
  durationMs: COUNT.nullable().describe('how long the last try took'),
  error: z.string().nullable().describe('why the last try failed'), nextAttemptAt: TIME.nullable() }).meta({
    id: 'Delivery'
  })

export type Alert = z.infer<typeof SHOWN_ALERT>
const SHOWN_ALERT = z.strictObject({
  id: z.string().meta({ description: 'a number, or of an alert of the configuration file its place there',
    examples: ['3', 'file-1'] }),
  kind: z.enum(ALERT_KINDS),
  name: z.string().nullable(),
  url: z.string().nullable().meta({ description: 'the address without its secrets; null: it goes by mail',
    examples: ['https://example.com/hook?token=…'] }),
  isSigned: z.boolean().describe('whether messages are signed with a secret'),
  hasBody: z.boolean().describe('whether it sends a body of its own in place of the event'),
  headers: z.array(z.string()).describe('the names of the headers that are sent besides'),
  mail: z.strictObject({ host: z.string(), port: NUMBER, from: z.string(), to: z.array(z.string()) }).nullable(),
  events: z.array(z.string()).describe('the events that are sent'),
  isDefault: z.boolean().describe('whether these are the problems'),
  isPaused: z.boolean(),
  isInFile: z.boolean().describe('whether it is set in the configuration file, and can be changed there alone'),
  createdAt: TIME.nullable(),
  createdBy: ACTOR.nullable(),
  apps: z.array(z.string()).nullable().describe('of an alert of a host: the apps that it is for; null: all of them'),
  waiting: COUNT.describe('how many messages are still to be delivered'),
  deliveries: z.array(DELIVERY).describe('the last 20, newest first')
}).meta({ id: 'Alert' })

/** Its form has boxes for topics, and a text for other events. */
const FORM = { read (fields: Fields): Fields {
  if (!('events' in fields || 'topic' in fields)) return fields
  const events = eventsOf([fields.topic ?? []].flat().map(String), wordsIn(fields.events))
  return { ...fields, events: events ?? '' }
}, next: () => '/alerts' }

/** Alerts and their deliveries: of an app, or of a host for all of its apps. */
export function alertResources (
  { deck: { alerts }, history, isOfHost = false }: { deck: Pick<Deck, 'alerts'>, history: Past, isOfHost?: boolean }
): Record<string, Resource> {
  const path = { alert: ALERT_ID }
  const { at, of, flag, guard } = placeOf({ isOfHost })

  return guard({
    [`${at}/alerts`]: {
      GET: operation({ name: `list${of}Alerts`, summary: 'Lists the alerts with their last deliveries',
        description: 'Only deliveries since the start of this master are listed.', role: 'viewer',
        cli: `clusterdeck alerts${flag}`, answer: listOf(SHOWN_ALERT),
        handle: () => ({ body: { items: alerts.list() } }) }),
      POST: operation({ name: `add${of}Alert`,
        summary: 'Adds an alert to Slack, Discord, Teams or Sentry, by mail, or as JSON to any address',
        description:
          'slack, discord, teams and webhook need `url`, and webhook may have `secret`, `body` and `headers`; sentry needs `dsn`; mail needs `host`, `from` and `to`, and may have `port`, and `user` with `password`.',
        role: 'admin', cli: `clusterdeck alerts add slack https://hooks.example.com/services/T0/B0/x${flag}`,
        query: z.strictObject({ test: booleanParam('"true": sends a test message at once') }), body: ALERT, status: 201,
        location: true, problems: ['not-possible'], answer: SHOWN_ALERT, form: FORM,
        handle ({ query: { test = false }, body, auth }) {
          const id = alerts.add({ wanted: body, actor: auth.actor })
          if (test) alerts.test({ id, actor: auth.actor })
          return created(`${at}/alerts/${id}`, shown(id))
        } })
    },

    [`${at}/alerts/:alert`]: {
      GET: operation({ name: `get${of}Alert`, summary: 'Returns an alert with its last deliveries', role: 'viewer',
        path, hasTag: true, problems: ['not-found'], answer: SHOWN_ALERT,
        handle: ({ params }) => tagged(idOf(params)) }),
      PATCH: operation({ name: `change${of}Alert`,
        summary: 'Changes, pauses or resumes an alert; what is left out stays as it is, also secrets', role: 'admin',
        cli: `clusterdeck alerts pause 3${flag}`, path, body: ALERT_CHANGES, form: FORM,
        headers: { 'If-Match': IF_MATCH.optional() }, hasTag: true,
        problems: ['not-found', 'not-possible', 'precondition-failed'], answer: SHOWN_ALERT,
        handle ({ params, seen, body, auth }) {
          const id = idOf(params)
          checkUnchanged(seen, id)
          alerts.change({ id, changes: body, actor: auth.actor })
          return tagged(id)
        } }),
      DELETE: operation({ name: `delete${of}Alert`, form: {}, summary: 'Deletes an alert', role: 'admin',
        cli: `clusterdeck alerts delete 3${flag}`, path, headers: { 'If-Match': IF_MATCH.optional() },
        problems: ['not-found', 'not-possible', 'precondition-failed'], answer: SHOWN_ALERT,
        handle ({ params, seen, auth }) {
          const id = idOf(params)
          checkUnchanged(seen, id)
          const body = shown(id)
          alerts.delete({ id, actor: auth.actor })
          return { body }
        } })
    },

    [`${at}/alerts/:alert/test`]: {
      POST: operation({ name: `test${of}Alert`, form: {}, summary: 'Sends a test message of one alert, without a retry',
        role: 'operator', cli: `clusterdeck alerts test 3${flag}`, path, status: 202,
        problems: ['not-found', 'stopping'], answer: DELIVERY,
        handle: ({ params, auth }) => ({ body: alerts.test({ id: idOf(params), actor: auth.actor }) }) })
    },

    [`${at}/alerts/:alert/deliveries/:n/retry`]: {
      POST: operation({ name: `retry${of}Delivery`, form: {}, summary: 'Sends a failed delivery again, without a retry',
        role: 'operator', cli: `clusterdeck alerts retry 3 7${flag}`,
        path: { ...path, n: ID_PARAMETER.describe('the id of a delivery') }, status: 202,
        problems: ['not-found', 'delivery-not-failed', 'stopping'], answer: DELIVERY,
        handle: ({ params, auth }) => ({
          body: alerts.retry({ id: idOf(params), delivery: parseId(params.n), actor: auth.actor })
        }) })
    }
  })

  /** @throws {DeckError} not-found, precondition-failed */
  function checkUnchanged (seen: string | undefined, id: string) {
    checkMatch(seen, alerts.digest(id), { isRequired: false, change: () => changeOfAlert(history, id) })
  }

  /** @throws {DeckError} not-found */
  function tagged (id: string) {
    return { headers: { ETag: tagOf(alerts.digest(id)) }, body: shown(id) }
  }

  /** @throws {DeckError} not-found */
  function shown (id: string) {
    const alert = alerts.list().find((each) => each.id === id)
    if (!alert) throw new DeckError('not-found', `Alert ${id} does not exist`)
    return alert
  }
}

export function changeOfAlert (history: Past, id: string) {
  const event = newestOf(history, ['alert.changed'], ({ detail }) => detail?.alert === id)
  return `${doerOf(event)} has changed this alert since you opened this`
}

/** @throws {DeckError} invalid-id */
function idOf ({ alert }: Record<string, string>): string {
  const { success, data } = ALERT_ID.safeParse(alert)
  if (success) return data
  throw new DeckError('invalid-id',
    `alert: expected ${ALERT_ID.description}, received ${JSON.stringify(String(alert).slice(0, 60))}`)
}
