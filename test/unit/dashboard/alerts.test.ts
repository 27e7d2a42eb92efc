import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contentOf, templateValues } from '../../../server/alerts/services.ts'
import { wordingOf } from '../../../server/alerts/wording.ts'
import { inputFrom } from '../../../server/api/form.ts'
import { testStates } from '../../support/golden.ts'
import { present } from '../../support/present.ts'
import { seen } from '../../support/seen.ts'
import { OPERATIONS } from '../../support/operations.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { alertsModel } from '../../../server/alerts/page.ts'
import { ALERTS, EVENT_TYPES } from '../../../server/events/kinds.ts'
import { TOPICS } from '../../../server/events/topics.ts'
import type { Powers } from '../../../server/dashboard/powers.ts'
import type { Delivery } from '../../../server/alerts/alert.ts'
import type { Alerts } from '../../../server/alerts/alerts.ts'

const NOW = Date.parse('2026-01-01T00:00:10.000Z')
const DECK = { host: 'web-1', app: 'shop', url: null, entry: '/srv/app.js', pid: 1, version: '0.1.0' }
const DELIVERY = { id: 7, at: '2026-01-01T00:00:00.000Z', event: { id: 3, type: 'worker.exited' }, attempt: 2,
  state: 'pending', status: 503, durationMs: 12, error: 'answered 503',
  nextAttemptAt: '2026-01-01T00:00:14.000Z' } as const

const ALERT = { id: '1', kind: 'slack', name: '<b>ops</b>', url: 'https://hooks.example.com/…', isSigned: false,
  hasBody: false, headers: [], mail: null, isDefault: true, isPaused: false, isInFile: false,
  createdAt: '2026-01-01T00:00:00.000Z', createdBy: 'ada', waiting: 4 } as const
const ADMIN = { operate: true, administer: true, switchDecks: false, name: null, role: 'admin' } as Powers

function page (
  { deliveries = [], can = ADMIN, ...changes }: { deliveries?: Partial<Delivery>[], can?: Powers,
    [name: string]: unknown } = {}
) {
  const alert = { ...ALERT, events: [...ALERTS], ...changes,
    deliveries: deliveries.map((each) => ({ ...DELIVERY, ...each })) }
  return createViews().render('partials/alerts', { ...modelOf([alert], ''), can })
}

function modelOf (list: object[], query: string, can: Powers = ADMIN) {
  const preview: Alerts['preview'] = (kind, event) => ({ wording: wordingOf(event, DECK),
    content: contentOf({ kind }, event, DECK), values: templateValues(event, DECK) })
  return alertsModel({
    deck: { alerts: { list: () =>
      list as ReturnType<Alerts['list']>, preview, digest: (id: string) => `digest of ${id}` } },
    can,
    params: new URLSearchParams(query),
    now: () => NOW
  })
}

test('what comes from outside is text, not HTML', () => {
  const html = page({ deliveries: [{ error: '<img src=x>', event: { id: 3, type: '<i>' } }] })
  assert.doesNotMatch(html, /<(img|i|b)[ >]/)
  assert.match(html, /&lt;img src=x&gt;/)
})

const operator = { ...ADMIN, administer: false, role: 'operator' } as Powers
const deploys = TOPICS.find(({ id }) => id === 'deploys')?.events ?? []

testStates(import.meta, 'alerts', { 'a delivery waits for its next try': { deliveries: [{}] },
  'a delivery was taken': { deliveries: [{ state: 'delivered', error: null, status: 200, nextAttemptAt: null }] },
  'a delivery has failed, and can be tried again': { deliveries: [{ state: 'failed', nextAttemptAt: null }] },
  'events in plain words, and one that no word stands for': { isDefault: false, events: [...deploys, 'worker.*'] },
  'an alert of the configuration file, which nobody changes here': { isInFile: true },
  'for an operator, who may only test it': { can: operator },
  'for a viewer': { can: { ...operator, operate: false, role: 'viewer' } as Powers } },
  (changes: Parameters<typeof page>[0]) => seen(page(changes)).replaceAll('\n', ' · '))

test('only an admin gets the form of a new alert', () => {
  assert.equal(modelOf([], 'new=slack', operator).form, null)
})

test('the form has the problems chosen, and one that changes an alert what that has, but no secret', () => {
  const render = (list: object[], query: string) =>
    createViews().render('partials/alert-form', { ...modelOf(list, query), can: ADMIN })
  const fresh = render([], '')
  assert.match(fresh, /New alert: Slack/)
  assert.equal(fresh.match(/ checked/g)?.length, TOPICS.filter(({ isProblem }) => isProblem).length)
  const mail = { ...ALERT, kind: 'mail', url: null,
    mail: { host: 'smtp.example.com', port: 465, from: 'deck@example.com', to: ['a@example.com', 'b@example.com'] },
    events: ['job.failed', 'x.y'], isDefault: false, deliveries: [] }
  const changed = render([mail], 'change=1')
  assert.match(changed, /name="to"[^>]*value="a@example\.com, b@example\.com"/)
  assert.match(changed, /value="jobs-failed" checked/)
  assert.match(changed, /name="events"[^>]*value="x\.y"/)
  assert.throws(() => render([mail], 'change=2'), { code: 'not-found' })
  for (const kind of ['slack', 'discord', 'teams', 'mail', 'sentry', 'webhook'])
    assert.match(render([mail], `new=${kind}`), /What arrives[^]*TypeError/)
})

test('the form of a webhook shows neither the body nor the headers that it has', () => {
  const alert = { ...ALERT, kind: 'webhook', hasBody: true, headers: ['Authorization'], events: [...ALERTS],
    deliveries: [] }
  const html = createViews().render('partials/alert-form', { ...modelOf([alert], 'change=1'), can: ADMIN })
  assert.match(html, /Body <span class="muted">\(empty: unchanged\)[^]*\(empty: unchanged, Authorization\)/)
  assert.match(html, /What arrives[^]*A body of its own, which may hold a key and is not shown again/)
})

test('the fields of the form are what the API takes, and topics are all problems unless somebody says otherwise', () => {
  const all = TOPICS.filter(({ isProblem }) => isProblem).map(({ id }) => id)
  const bodyOf = (name: string, fields: object) => inputFrom(present(OPERATIONS.get(name)), { ...fields }).body
  assert.deepEqual(
    bodyOf('addAlert', { kind: 'slack', name: '', url: ' https://example.com ', topic: all, events: '' }),
    { kind: 'slack', url: 'https://example.com' }
  )
  assert.deepEqual(
    bodyOf('addAlert', { kind: 'mail', to: 'a@example.com, b@example.com', port: '465', topic: 'hangs',
      events: 'x.*' }),
    { kind: 'mail', to: ['a@example.com', 'b@example.com'], port: 465, events: ['worker.unresponsive', 'x.*'] }
  )
  assert.deepEqual(
    bodyOf('addAlert', { kind: 'webhook', body: ' { "n": ["{{title}}"] }', headers: '{ "A": "b" }', topic: all }),
    { kind: 'webhook', body: { n: ['{{title}}'] }, headers: { A: 'b' } }
  )
  assert.deepEqual(bodyOf('changeAlert', { body: '{ "n"', headers: 'A: b' }), { body: '{ "n"', headers: 'A: b' })
  assert.deepEqual(bodyOf('changeAlert', { topic: all, events: '' }), { events: null })
  assert.deepEqual(bodyOf('changeAlert', { isPaused: 'false' }), { isPaused: false })
  assert.deepEqual([...new Set(TOPICS.filter(({ isProblem }) => isProblem).flatMap(({ events }) => events))].sort(),
    [...ALERTS].sort())
  for (const event of TOPICS.flatMap(({ events }) => events))
    assert.ok(EVENT_TYPES.some((type) => type === event.split(':')[0]), event)
})
