import assert from 'node:assert/strict'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { openHistory } from '../../../db/history.ts'
import { createAlerts } from '../../../server/alerts/alerts.ts'
import { isToldByHost } from '../../../server/events/told-by-host.ts'
import { createNotices } from '../../../server/events/notices.ts'
import { createEventStream, type NewEvent } from '../../../server/events/stream.ts'
import { createHostAlerts } from '../../../server/host/host-alerts.ts'
import { fake } from '../../support/fake.ts'
import { tempFolder } from '../../support/folder.ts'

const log = fake<Parameters<typeof createHostAlerts>[0]['log']>({ warn: console.error, error: console.error })
const LOST: NewEvent = { type: 'master.stopped', cause: 'master-lost', pid: 7, message: 'the master (pid 7) ended' }
const FULL: NewEvent = { type: 'history.degraded', message: 'the history database failed: full (SQLITE_FULL)' }
const url = (receiver: string) => `https://${receiver}.example.com/hook`
const hook = (receiver: string, more = {}) => ({ kind: 'webhook' as const, url: url(receiver), ...more })

/** A host with the apps shop and mail, each of which has an alert of its own to these receivers. */
function openHost (t: TestContext, receivers: { shop: string, mail: string } = { shop: 'shop', mail: 'mail' }) {
  const told: string[] = []
  const options = { fetch: async (to: string | URL | Request, { body }: RequestInit = {}) => {
    told.push(`${new URL(String(to)).hostname.split('.')[0]}: ${JSON.parse(String(body)).text}`)
    return new Response(null, { status: 204 })
  } }
  const history = openHistory({ file: ':memory:' })
  t.after(() => history.close())
  const events = createEventStream()
  events.subscribe((event) => history.record(event))
  const opened = (['shop', 'mail'] as const).map((name) => {
    const dataDir = tempFolder()
    const past = openHistory({ file: path.join(dataDir, 'history.db') })
    t.after(() => past.close())
    past.alerts.add({ settings: hook(receivers[name]), createdAt: 0, createdBy: 'ada' })
    const stream = createEventStream()
    const isOwn = (event: Parameters<typeof isToldByHost>[0]) => !isToldByHost(event)
    const sender = { host: 'web-1', app: name, url: null, entry: '/srv/app.js', pid: 1, version: '1' }
    const alerts = createAlerts({ configured: [], store: past.alerts, events: stream, isOwn, deck: () => sender, log },
      options)
    stream.subscribe((event) => host.hear(name, event, () => sender))
    const app = fake<ReturnType<Parameters<typeof createHostAlerts>[0]['apps']>[number]>({ name, dataDir, config: null,
      record: { wish: 'running' }, present: {}, part: { app: { deck: { alerts } }, run: (work) => work() } })
    return { app, alerts, publish: stream.publish, notices: createNotices({ history: past, events: stream, isOwn }) }
  })
  const host = createHostAlerts({ history, events, log, apps: () => opened.map(({ app }) => app),
    about: { url: 'https://deck.example.com', folder: '/srv/host', version: '1' } }, options)
  const [shop, mail] = opened
  return {
    ...host,
    history,
    publish: events.publish,
    shop,
    mail,
    /** Returns what the receivers have got. */
    async end () {
      await Promise.all([host.close(), shop.alerts.close(), mail.alerts.close()])
      return told.map((text) => text.replace(/host \S+:/, 'host:')).sort()
    }
  }
}

function add ({ alerts }: ReturnType<typeof openHost>, receiver: string, more = {}) {
  return alerts.add({ wanted: hook(receiver, more), actor: 'ada' })
}

test('what was told before an app was opened, as the death of a master, its own alerts tell once it is', async (t) => {
  const host = openHost(t, { shop: 'ops', mail: 'ops' })
  const { part } = host.shop.app
  for (const { app } of [host.shop, host.mail]) Object.assign(app, { part: null })
  host.publish(LOST)
  Object.assign(host.shop.app, { part })
  for (let n = 0; n < 2; n++) host.shop.publish({ type: 'master.started' })
  host.mail.publish({ type: 'master.started' })
  assert.deepEqual(await host.end(), ['ops: host: Master lost: The master (pid 7) ended'])
})

test('the death of a master is one notice, of the host, and each receiver hears of it once, whichever alert has it', async (t) => {
  const host = openHost(t, { shop: 'ops', mail: 'ops' })
  add(host, 'boss')
  host.publish(LOST)
  for (const app of [host.shop, host.mail]) {
    app.publish(LOST)
    assert.deepEqual(app.notices.list(), [])
  }
  assert.deepEqual(host.notices.list().map(({ kind }) => kind), ['master-lost'])
  assert.deepEqual(await host.end(),
    ['boss', 'ops'].map((receiver) => `${receiver}: host: Master lost: The master (pid 7) ended`))
})

test('an app that has failed is told by the alerts of the host that are for it and by its own', async (t) => {
  const host = openHost(t)
  add(host, 'all')
  add(host, 'others', { apps: ['mail'] })
  Object.assign(host.shop.app, { part: null, present: null })
  host.publish({ type: 'app.failed', message: 'no room', detail: { app: 'shop' } })
  assert.deepEqual(await host.end(),
    ['all', 'shop'].map((receiver) => `${receiver}: shop: App failed: App shop failed: no room`))
})

test('what happens in an app is told by its own alerts and by those of the host that are for it, with its name', async (t) => {
  const host = openHost(t)
  const id = add(host, 'both', { apps: ['shop', 'mail'] })
  add(host, 'mails', { apps: ['mail'] })
  host.shop.publish({ type: 'job.failed', message: 'nightly failed', detail: { job: 'nightly' } })
  const [{ event }] = host.alerts.list().find((alert) => alert.id === id)?.deliveries ?? []
  assert.deepEqual(event, { id: 1, type: 'job.failed', app: 'shop' })
  assert.deepEqual(await host.end(),
    ['both', 'shop'].map((receiver) => `${receiver}: shop: Job failed: Job nightly failed`))
})

test('a full disk is told once, by the host, until all histories are written again', async (t) => {
  const host = openHost(t, { shop: 'ops', mail: 'ops' })
  for (const app of [host.shop, host.mail, host]) {
    app.publish(FULL)
    assert.deepEqual(host.notices.list().map(({ kind, endedAt }) => [kind, endedAt]), [['history-degraded', null]])
  }
  assert.deepEqual([...host.shop.notices.list(), ...host.mail.notices.list()], [])
  for (const app of [host, host.shop, host.mail]) app.publish({ type: 'history.recovered' })
  assert.notEqual(host.notices.list()[0].endedAt, null)
  host.shop.publish(FULL)
  const told = await host.end()
  assert.equal(told.length, 2, told.join('\n'))
  assert.match(told[0], /^ops: host: History degraded: No room on the disk of shop: .*SQLITE_FULL/)
})

test('an alert of a host names apps that the host has, and stays when one is removed; one of an app names none', (t) => {
  const host = openHost(t)
  assert.throws(() => add(host, 'ops', { apps: ['shpo'] }),
    /apps: expected apps of this host \(shop, mail\), received "shpo"/)
  const id = add(host, 'ops', { apps: ['shop'] })
  host.alerts.change({ id, changes: { apps: null }, actor: 'ada' })
  assert.equal(host.alerts.list()[0].apps, null)
  assert.throws(() => host.shop.alerts.add({ wanted: hook('ops', { apps: ['shop'] }), actor: 'ada' }),
    /apps: expected to be given for an alert of a host alone, received one/)
})
