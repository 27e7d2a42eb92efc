import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startHostAdmin } from '../support/admin.ts'
import { runCliHere } from '../support/cli-here.ts'

async function startWithPast (t: TestContext) {
  const host = await startHostAdmin(t)
  host.events.publish({ type: 'app.added', actor: 'ada', detail: { app: 'shop' } })
  host.events.publish({ type: 'app.failed', actor: 'system',
    message: 'its part of this host failed, and is made anew; its workers serve on: <b>boom</b>',
    detail: { app: 'shop' } })
  host.events.publish({ type: 'token.revoked', actor: 'ada', message: 'Token of grace revoked' })
  const [added, failed] = host.history.page({ type: ['app.added', 'app.failed'], limit: 2 }).items.reverse()
  return { ...host, added, failed }
}

test('what has happened to the host and its apps is answered by its API, with the filters of the history of an app', async (t) => {
  const { api, apps, failed } = await startWithPast(t)
  apps.deck('mail').events.publish({ type: 'job.failed', message: 'nightly failed' })
  const { body } = await api('get', '/api/v1/host/events?type=app.*,job.*').expect(200)
  // Two may be of the same moment.
  assert.deepEqual(body.items.map(({ type, app }) => `${type} of ${app}`).sort(), ['app.added of null',
    'app.failed of null', 'job.failed of mail'])
  const { body: { items: [own] } } = await api('get', '/api/v1/host/events?own=true&type=app.*,job.*').expect(200)
  assert.deepEqual([own.type, own.actor, own.detail?.app], ['app.failed', 'system', 'shop'])
  assert.equal((await api('get', `/api/v1/host/events/${failed.id}`).expect(200)).body.type, 'app.failed')
  await api('get', '/api/v1/host/events/9999').expect(404)
  await api('get', '/api/v1/host/events?since=no-time').expect(400)
  const { text } = await api('get', '/api/v1/host/events?type=problems').set('Accept', 'text/csv').expect(200)
  assert.match(text, /,app\r\n[^]*job\.failed.*,mail\r\n/)
  assert.doesNotMatch(text, /app\.added/)
})

test('its page lists it, newest first, without what a host does not have, and an event has a page', async (t) => {
  const host = await startWithPast(t)
  const get = async (path: string, status = 200) => {
    const answer = await host.visit(path)
    assert.equal(answer.status, status, path)
    return answer.text
  }
  await get('/history')
  for (const actor of ['bob', 'bob', 'ada', 'ada'])
    host.events.publish({ type: 'access.signed-in', actor, message: `${actor} signed in` })
  const page = await get('/history')
  assert.match(page, /<span>5 sign-ins by ada, bob and the owner.*<\/span> <span class="fine">5 events<\/span>/)
  assert.match(page, /<a href="\/history" aria-current="page">History<\/a>/)
  assert.ok(page.indexOf('App shop failed') < page.indexOf('App shop added'))
  assert.ok(page.includes('&lt;b&gt;boom') && !page.includes('<b>boom'))
  for (const none of ['filter-slot', 'filter-worker', '>Slot<', 'Since the last deploy'])
    assert.ok(!page.includes(none), none)
  host.apps.deck('mail').events.publish({ type: 'job.failed', message: 'nightly failed' })
  assert.match(await get('/history'),
    /id="event-mail-1"[^]*href="\/apps\/mail\/">mail<\/a><\/td>[^]*href="\/apps\/mail\/history\/1"><bdi>Command nightly failed/)
  assert.match(await get('/history?type=app.added'),
    />Time<\/th><th[^>]*>App<\/th>[^]*href="\/apps\/shop\/">shop<\/a><\/td>[^]*App shop added/)
  assert.match(await get(`/history/${host.failed.id}`), /App shop failed/)
  await get('/history?since=no-time', 400)
  await get('/history/9999', 404)
  assert.match((await host.visit('/history.csv?type=app.added', { accept: '*/*' })).text, /app\.added/)
})

test('whoever has a role for some apps sees what happened to these alone', async (t) => {
  const host = await startWithPast(t)
  for (const name of ['shop', 'mail'])
    host.apps.deck(name).events.publish({ type: 'job.failed', message: `nightly of ${name} failed` })
  const { headers } = await host.tokenFor('bob', 'operator', { apps: ['shop'] })
  const asBob = (path: string) => host.visit(path, { ...headers, ...(/^\/api\/|csv$/.test(path) && { accept: '*/*' }) })
  for (const [path, status] of [['/api/v1/host/events', 200], ['/history', 200], ['/history.csv', 200], [
    '/api/v1/host/events?own=true',
    403
  ], [`/api/v1/host/events/${host.added.id}`, 403], [`/history/${host.added.id}`, 403]] as const) {
    const { status: answered, text } = await asBob(path)
    assert.deepEqual([answered, /App shop added|nightly of mail/.test(text)], [status, false], path)
    assert.equal(text.includes('nightly of shop'), status === 200, path)
  }
})

test('the command line prints it, as that of an app', async (t) => {
  const host = await startWithPast(t)
  const cli = (...words: string[]) => host.cli('history', ...words)
  const { stdout, stderr } = await cli('--host', '--type', 'app.*')
  assert.equal(stderr, '')
  assert.match(stdout, /app\.failed[^]*app\.added/)
  assert.equal(JSON.parse((await cli('--host', '--json', '--limit', '1')).stdout).items.length, 1)
  assert.match((await cli('--host', '--csv', '--type', 'app.added')).stdout, /app\.added/)
  assert.match((await cli('--host', '--all-hosts')).stderr,
    /--all-hosts: expected the folder or the name of an app, received none/)
  const named = await runCliHere(['history', 'shop', '--host'])
  assert.deepEqual([named.code, named.stdout], [2, ''])
  assert.match((await runCliHere(['history', '--host', '--data-dir', '/x'])).stderr,
    /--host: expected without --data-dir, received both/)
})
