import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { createAlerts } from '../../../server/alerts/alerts.ts'
import { receiverOf, sentryEvent } from '../../../server/alerts/sentry.ts'
import { alertFlaw } from '../../../server/config/alert-kinds.ts'
import { ALERT } from '../../../server/config/alert.ts'
import { createEventStream, type DeckEvent } from '../../../server/events/stream.ts'
import { aCrash } from '../../support/crash-record.ts'
import { startSentryReceiver, type SentryEvent } from '../../support/sentry-receiver.ts'
import { untilFound } from '../../support/until.ts'
import { fake } from '../../support/fake.ts'
import type { History } from '../../../db/history.ts'

const SENDER = { host: 'web-1', app: 'shop', url: 'https://deck.example.com', entry: '/srv/app.js', pid: 1,
  version: '0.1.0', environment: 'production' }
const LINES = [10, 11, 12, 13].map((number) => ({ number, text: `line ${number}` }))
const EVIDENCE = { crash: { id: 5, ...aCrash() }, lines: [LINES, null, null, null], fingerprint: 'v1:abc',
  culprit: 'sum (src/shop.js)' }
const NEW_CRASH = { type: 'crash.group-new', cause: 'crash', slot: 1, worker: 7, pid: 4711, release: 'r1',
  actor: 'system', message: 'TypeError: total is not a function', detail: { crash: 5, crashGroup: 3 } }

function openAlerts (t: TestContext, dsn: string, options?: object) {
  const events = createEventStream()
  const store = fake<History['alerts']>({ list: () => [] })
  const deck = () => ({ ...SENDER, evidenceOf: ({ detail }: DeckEvent) => detail?.crash ? EVIDENCE : null })
  const alerts = createAlerts({ configured: [{ kind: 'sentry', dsn }], store, events, deck, log: { warn () {} } },
    options)
  t.after(() => alerts.close())
  return { alerts, events }
}

test('a new crash arrives whole, as an envelope: its stack innermost last, with source lines, release, environment and group', async (t) => {
  const { received, dsn } = await startSentryReceiver(t)
  const { alerts, events } = openAlerts(t, dsn)
  events.publish(NEW_CRASH)
  const [{ path, auth, headers, item, event }] = await untilFound(async () => received.length > 0 && received,
    () => 'an envelope')
  assert.deepEqual([path, item.type, event.event_id === headers.event_id, Number.isNaN(Date.parse(headers.sent_at))], [
    'POST /tools/api/7/envelope/',
    'event',
    true,
    false
  ])
  assert.match(auth, /^Sentry sentry_version=7, sentry_client=clusterdeck, sentry_key=0123456789abcdef$/)
  assert.deepEqual([event.level, event.platform, event.release, event.environment, event.server_name, event.fingerprint,
    event.transaction], ['fatal', 'node', 'shop@r1', 'production', 'web-1', ['v1:abc'], 'sum (src/shop.js)'])
  const [cause, thrown] = event.exception.values
  assert.deepEqual([cause.type, cause.value, thrown.type, thrown.value, thrown.mechanism], ['Error', 'no cart',
    'TypeError', 'total is not a function', { type: 'exception', handled: false }])
  assert.deepEqual(thrown.stacktrace.frames.map(({ function: name, in_app: isInApp }) => [name, isInApp]), [['serve',
    true], ['emit', false], ['Layer.handle', false], ['sum', true]])
  assert.deepEqual(thrown.stacktrace.frames.at(-1), { function: 'sum', filename: 'src/shop.js', lineno: 12, colno: 34,
    in_app: true, pre_context: ['line 10', 'line 11'], context_line: 'line 12', post_context: ['line 13'] })
  assert.deepEqual([event.tags.worker, event.tags.cause, event.contexts.runtime, event.contexts.end.requests], ['7',
    'crash', { name: 'node', version: 'v20.20.2' }, ['POST /checkout for 12 ms']])
  assert.equal(event.extra.clusterdeck, 'https://deck.example.com/history/1')
  assert.doesNotMatch(JSON.stringify(alerts.list()), /0123456789abcdef/)
})

test('an envelope that is not taken is sent again under the same id, and given up where the key is refused', async (t) => {
  const { received, statuses, dsn } = await startSentryReceiver(t)
  statuses.push(503, 429)
  const { alerts, events } = openAlerts(t, dsn, { firstDelayMs: 1 })
  events.publish({ type: 'rollout.failed', rollout: 3, message: 'worker 7 did not start', actor: 'ada' })
  const [{ event }] = await untilFound(async () => received.length > 0 && received, () => 'an envelope')
  assert.deepEqual([event.level, event.logentry.formatted, event.exception], ['error',
    'shop: Rollout failed: Rollout 3 failed: worker 7 did not start', undefined])
  assert.equal(alerts.list()[0].deliveries[0].attempt, 3)
  statuses.push(403)
  events.publish(NEW_CRASH)
  const failed = await untilFound(async () => alerts.list()[0].deliveries.find(({ state }) => state === 'failed'),
    () => 'a failure')
  assert.equal(failed.error, 'answered 403')
})

test('what ends without an exception, and what is hostile, is an event too', () => {
  const crash = { ...EVIDENCE.crash, errorName: null, errorMessage: null, signal: 'SIGSEGV', code: null,
    kind: 'signal' as const, nodeVersion: null, frames: [], causes: [] }
  const event = sentryEvent({ id: 1, at: '', uptimeMs: null, rollout: null, code: null, signal: null, ...NEW_CRASH,
    cause: 'a\r\nb' }, { ...SENDER, evidenceOf: () => ({ ...EVIDENCE, crash, lines: [] }) }) as unknown as SentryEvent
  assert.deepEqual(event.exception.values, [{ type: 'SIGSEGV', value: 'ended by SIGSEGV',
    mechanism: { type: 'signal', handled: false } }])
  assert.deepEqual([event.platform, event.tags.cause], ['other', 'a b'])
})

test('a DSN is one, of any path, and nothing else', () => {
  assert.deepEqual(receiverOf('https://abc@o1.ingest.example.com/42'), {
    url: 'https://o1.ingest.example.com/api/42/envelope/',
    key: 'abc'
  })
  for (const dsn of ['https://o1.example.com/42', 'https://abc@example.com', 'https://abc@example.com/',
    'ftp://abc@example.com/1', 'https://abc:d@example.com/1', 'https://abc@example.com/1?x',
    'https://abc@example.com:99999/1', 'https://abc@[/1'])
  {
    assert.equal(ALERT.safeParse({ kind: 'sentry', dsn }).success, false, dsn)
  }
  assert.deepEqual(alertFlaw(ALERT.parse({ kind: 'sentry', url: 'https://example.com' })), { field: 'dsn',
    expected: 'to be given for sentry' })
})
