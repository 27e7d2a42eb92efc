import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import { test, type TestContext } from 'node:test'
import { io } from 'socket.io-client'
import { anEvent } from '../support/snapshots.ts'
import { until } from '../support/until.ts'
import { heard, rawRequest, startHostAdmin, TOKEN, type HostAdmin } from '../support/admin.ts'
import type { History } from '../../db/history.ts'

const HTML = { accept: 'text/html' }

test('an app answers below its path as a deck of its own does, and its links lead there', async (t) => {
  const host = await startHostAdmin(t)
  const { body: status } = await host.api('get', '/apps/shop/api/v1/status').expect(200)
  assert.equal(status.app.name, 'shop')
  const { headers } = await host.api('post', '/apps/shop/api/v1/rollouts').send({ kind: 'restart' }).expect(202)
  assert.equal(headers.location, '/apps/shop/api/v1/rollouts/1')
  assert.deepEqual(host.apps.deck('shop').dispatched.map(({ type, kind }) => [type, kind]), [['rollout', 'restart']])
  assert.deepEqual(host.apps.deck('mail').dispatched, [])

  for (const path of ['/apps/shop', '/apps/shop/', '/apps/shop/logs', '/apps/mail/history']) {
    const { status, text } = await host.visit(path)
    assert.equal(status, 200, path)
    const name = path.split('/')[2]
    assert.match(text, new RegExp(`href="/apps/${name}/deploys"`))
    assert.ok(!/(href|action|hx-post)="\/(?!apps\/|assets\/)/.test(text),
      'all else leads to where the assets of the port are')
  }
})

test('the documented path of the API of an app is the same as that below its pages', async (t) => {
  const host = await startHostAdmin(t)
  for (const path of ['/status', '/events?limit=1', '/config', '/nothing']) {
    const [there, here] = await Promise.all([host.api('get', `/apps/shop/api/v1${path}`),
      host.api('get', `/api/v1/apps/shop${path}`)])
    assert.deepEqual([here.status, here.text], [there.status, there.text], path)
  }
  const { headers } = await host.api('post', '/api/v1/apps/shop/rollouts').send({ kind: 'restart' }).expect(202)
  await host.api('get', String(headers.location)).expect(200)
})

test('with one app the short paths answer for it, with more or none they answer for no app', async (t) => {
  const host = await startHostAdmin(t, { names: ['shop'] })
  const { body } = await host.api('get', '/api/v1/status').expect(200)
  assert.equal(body.app.name, 'shop')
  const { headers } = await host.api('post', '/api/v1/rollouts').send({ kind: 'restart' }).expect(202)
  assert.equal(headers.location, '/apps/shop/api/v1/rollouts/1')
  host.apps.open('mail')
  await host.api('get', '/api/v1/status').expect(404)
  for (const name of ['mail', 'shop']) await host.api('delete', `/api/v1/apps/${name}`).expect(202)
  await host.api('get', '/api/v1/status').expect(404)
})

test('behind a proxy all of it is below its path', async (t) => {
  const host = await startHostAdmin(t, { basePath: '/ops' })
  for (const path of ['/ops/apps/shop/', '/apps/shop/']) {
    const { text } = await host.visit(path)
    assert.match(text, /href="\/ops\/apps\/shop\/deploys"/)
    assert.match(text, /href="\/ops\/assets\/app\.css/)
    assert.match(text, /data-base="\/ops\/apps\/shop" data-home="\/ops"/)
  }
  const { headers } = await host.api('post', '/ops/api/v1/apps/shop/rollouts').send({ kind: 'restart' }).expect(202)
  assert.equal(headers.location, '/ops/apps/shop/api/v1/rollouts/1')
  const visit = await host.visit('/ops/apps/shop/logs', { cookie: '' })
  assert.deepEqual([visit.status, visit.headers.location], [303, '/ops/sign-in?next=%2Fapps%2Fshop%2Flogs'])
})

test('one session is for all apps, wherever it was opened, and a link made at an app leads to it', async (t) => {
  const host = await startHostAdmin(t)
  const { body: { url } } = await host.api('post', '/apps/shop/api/v1/sign-in-links').send({ name: 'ada',
    role: 'viewer' }).expect(201)
  assert.match(url, new RegExp(`^${host.url}/apps/shop/sign-in\\?code=`))
  const visit = await rawRequest(host, { path: url.slice(host.url.length) })
  assert.equal(visit.headers.location, '/apps/shop/')
  const cookie = String(visit.headers['set-cookie']).split(';')[0]
  for (const path of ['/apps/shop/', '/apps/mail/', '/'])
    assert.equal((await rawRequest(host, { path, headers: { ...HTML, cookie } })).status, 200, path)
  const { headers } = await rawRequest(host, { method: 'POST', path: '/apps/mail/sign-out',
    headers: { cookie, 'sec-fetch-site': 'same-origin' } })
  assert.equal(headers.location, '/sign-in?state=signed-out')
  assert.equal((await rawRequest(host, { path: '/apps/shop/', headers: { ...HTML, cookie } })).status, 303)
  const kept = host.history.page({ type: ['access.signed-in'], limit: 5 }).items
  assert.equal(kept.length, 1, 'the host has it in its history')
})

test('a stranger learns of no app whether it exists, and opens none', async (t) => {
  const host = await startHostAdmin(t)
  for (const path of ['/api/v1/status', '/logs', '', '/api/v1/stop', '/socket.io/?EIO=4&transport=polling']) {
    const answers = await Promise.all(
      ['shop', 'nothing'].map((name) => rawRequest(host, { path: `/apps/${name}${path}` }))
    )
    assert.deepEqual(answers.map(({ status }) => status), [401, 401], path)
    assert.equal(answers[0].text, answers[1].text)
  }
  const pages = await Promise.all(
    ['shop', 'nothing'].map((name) => rawRequest(host, { path: `/apps/${name}/logs`, headers: HTML }))
  )
  assert.deepEqual(pages.map(({ status }) => status), [303, 303])
  const probes = await Promise.all(
    ['shop', 'nothing'].map((name) =>
      rawRequest(host, { path: `/apps/${name}/healthz`, headers: { Host: '10.0.0.1' } })
    )
  )
  assert.deepEqual(probes.map(({ status, text }) => [status, text]), [[200, 'ok\n'], [200, 'ok\n']])
})

test('an app that does not run says so, to a program and to a person, and one that does not exist may be another', async (t) => {
  const host = await startHostAdmin(t)
  host.apps.closeApp('shop', { state: 'stopped' })
  const { body } = await host.api('get', '/apps/shop/api/v1/status').expect(409)
  assert.equal(body.code, 'app-not-running')
  assert.equal(body.detail, 'shop is stopped: POST /api/v1/apps/shop/start starts it')
  const page = await host.visit('/apps/shop/logs')
  assert.equal(page.status, 409)
  assert.match(page.text, /shop is stopped<[^]*No event, crash or line of output of it is kept\./)
  assert.doesNotMatch(page.text, /Its last lines/)
  const { body: unknown } = await host.api('get', '/api/v1/apps/shp/status').expect(404)
  assert.equal(unknown.detail, 'There is no app "shp" on this host (did you mean "shop"?)')
  await host.api('get', '/apps/shp/api/v1/status').expect(404)

  host.apps.open('shop')
  await host.api('get', '/apps/shop/api/v1/status').expect(200)
})

test('what somebody changes is in the history of that app, and what is refused at the door in that of the host', async (t) => {
  const host = await startHostAdmin(t)
  await host.api('put', '/api/v1/apps/shop/scale').send({ workers: 3 }).expect(200)
  await rawRequest(host, { method: 'PUT', path: '/apps/shop/api/v1/scale', headers: { authorization: 'Bearer wrong' } })
  const used = (history: Pick<History, 'page'>, type: string) =>
    history.page({ type: [type], limit: 9 }).items.map(({ detail }) => detail?.path)
  await until(() => used(host.history, 'access.refused').length > 0, 'the refusal')
  assert.deepEqual(used(host.apps.deck('shop').history, 'access.used'), ['/api/v1/scale'])
  assert.deepEqual(used(host.apps.deck('mail').history, 'access.used'), [])
  assert.deepEqual(used(host.history, 'access.refused'), ['/apps/shop/api/v1/scale'])
})

test('the live page of an app follows that app, ends with it, and nobody upgrades to what does not run', async (t) => {
  const host = await startHostAdmin(t)
  const socket = connect(t, host, '/apps/shop')
  await heard(socket, 'connect')
  const first = heard(socket, 'fragments')
  await socket.emitWithAck('watch', '/apps/shop/', {})
  const [{ fragments }] = await first
  assert.ok(fragments.some(({ id, parts }) => id === 'health' && parts.join('').includes('All 2 workers are ready')))
  const ended = heard(socket, 'disconnect')
  host.apps.closeApp('shop')
  assert.match(String((await ended)[0]), /^transport/)
  const refused = http.get(`${host.url}/apps/shop/socket.io/?EIO=4&transport=websocket`, {
    headers: { authorization: `Bearer ${TOKEN}`, connection: 'Upgrade', upgrade: 'websocket',
      'sec-websocket-version': '13', 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' }
  })
  assert.equal((await once(refused, 'response'))[0].statusCode, 409)
})

test('a token that is revoked ends its streams and live pages at all apps', async (t) => {
  const host = await startHostAdmin(t)
  const { id, token, headers } = await host.tokenFor('ada', 'viewer')
  const streams = await Promise.all(
    ['shop', 'mail'].map((name) =>
      new Promise((resolve: (res: http.IncomingMessage) => void) => {
        http.get(`${host.url}/apps/${name}/api/v1/events/stream`, { headers }, (res) =>
          resolve(res.on('error', () => {}).resume()))
      })
    )
  )
  const sockets = ['/apps/shop', '/apps/mail', ''].map((base) => connect(t, host, base, token))
  await Promise.all(sockets.map((socket) => heard(socket, 'connect')))
  const ends = [...streams.map((res) => new Promise((resolve) => res.once('close', resolve))),
    ...sockets.map((socket) => heard(socket, 'disconnect'))]
  await host.api('delete', `/apps/mail/api/v1/tokens/${id}`).expect(200)
  await Promise.all(ends)
  for (const path of ['/api/v1/apps/shop/status', '/api/v1/apps/mail/status'])
    assert.equal((await rawRequest(host, { path, headers: { authorization: `Bearer ${token}` } })).status, 401)
})

test('a stream of an app ends when it closes, and the others go on', async (t) => {
  const host = await startHostAdmin(t)
  const [shop, mail] = await Promise.all(
    ['shop', 'mail'].map((name) =>
      new Promise((resolve: (res: http.IncomingMessage) => void) => {
        http.get(`${host.url}/api/v1/apps/${name}/events/stream`, { headers: { authorization: `Bearer ${TOKEN}` } },
          (res) => resolve(res.setEncoding('utf8')))
      })
    )
  )
  const ended = once(shop.resume(), 'end')
  host.apps.closeApp('shop')
  await ended
  let text = ''
  mail.on('data', (chunk) => {
    text += chunk
  })
  host.apps.deck('mail').events.publish({ type: 'worker.ready', worker: 1, slot: 1 })
  while (!text.includes('worker.ready')) await once(mail, 'data')
  mail.destroy()
})

function connect (t: TestContext, host: HostAdmin, base: string, token: string = TOKEN) {
  const socket = io(host.url, { path: `${base}/socket.io/`, transports: ['websocket'], reconnection: false,
    forceNew: true, extraHeaders: { authorization: `Bearer ${token}` } })
  t.after(() => socket.close())
  return socket
}

test('the page of a stopped app says when it was stopped, and by whom', async (t) => {
  const host = await startHostAdmin(t)
  const at = new Date(Date.parse('2025-12-31T22:00:00Z')).toISOString()
  host.apps.lastWords.events = [anEvent({ id: 9, at, type: 'master.stopped' }),
    anEvent({ id: 8, at, type: 'worker.exited', cause: 'shutdown', actor: 'ada' })]
  host.apps.closeApp('shop', { state: 'stopped' })
  const stopped = /<h1>shop is stopped[^]*>Stopped <time[^>]*>2 h ago<\/time> by <bdi>ada</
  assert.match((await host.visit('/apps/shop/')).text, stopped)
  host.apps.closeApp('shop', { state: 'failed', reason: 'no entry' })
  assert.doesNotMatch((await host.visit('/apps/shop/')).text, />Stopped </)
})

test('the page of an app that does not run says what it has left: open crashes, its last lines and what happened', async (t) => {
  const host = await startHostAdmin(t)
  host.apps.closeApp('shop', { state: 'failed', reason: 'no entry <b>', nextTryAt: '2026-01-01T00:00:28.000Z' })
  Object.assign(host.apps.lastWords, { lines: ['listening', 'Error: <x>\u202e'],
    events: [anEvent({ id: 7, type: 'worker.exited', cause: 'crash', message: 'worker 3 died' }),
      anEvent({ id: 6, type: 'access.used', message: 'read by ada' })],
    crashes: [{ id: 1, kind: 'exception', errorName: 'TypeError', message: 'no <total>', count: 3,
      lastSeenAt: '2026-01-01T00:00:00.000Z' }] })
  const { status, text } = await host.visit('/apps/shop/')
  assert.equal(status, 409)
  assert.match(text,
    /tone-bad[^]*<h1>shop has failed[^]*No entry &lt;b&gt;[^]*Next try [^]*in 28 s[^]*TypeError: no &lt;total&gt;[^]*3 times[^]*listening[^]*Error: &lt;x&gt;[^]*[Ww]orker 3 died/)
  assert.match(text, /<a href="\/" aria-current="page">Apps/)
  host.apps.closeApp('shop', { state: 'failed', reason: 'workers: expected an integer' })
  assert.match((await host.visit('/apps/shop/')).text, />workers: expected/)
  assert.doesNotMatch(text, /<x>|\u202e|read by ada/)
})
