import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startHostAdmin } from '../support/admin.ts'

const HOOK = { kind: 'webhook', url: 'https://example.com/hook?token=hidden' }

test('a host has alerts and notices of its own, by the calls of an app, for whoever has a role for all apps', async (t) => {
  const { api, visit, events, history, tokenFor } = await startHostAdmin(t)
  const { body, headers: { location } } = await api('post', '/api/v1/host/alerts').send({ ...HOOK, apps: ['shop'] })
    .expect(201)
  assert.deepEqual([location, body.apps, body.url], ['/api/v1/host/alerts/1', ['shop'],
    'https://example.com/hook?token=…'])
  await api('patch', '/api/v1/host/alerts/1').send({ apps: null }).expect(200)
  assert.equal((await api('get', '/api/v1/host/alerts')).body.items[0].apps, null)
  const { body: { detail } } = await api('post', '/api/v1/host/alerts').send({ ...HOOK, apps: ['shpo'] }).expect(422)
  assert.equal(detail, 'apps: expected apps of this host (mail, shop), received "shpo"')
  await api('post', '/api/v1/apps/shop/alerts').send({ ...HOOK, apps: ['shop'] }).expect(422)
  await api('post', '/api/v1/host/alerts/1/test').expect(202)

  const lost = events.publish({ type: 'master.stopped', cause: 'master-lost', message: 'the master ended' })
  assert.equal((await api('get', '/api/v1/host/notices')).body.items[0].kind, 'master-lost')
  const { headers: bob } = await tokenFor('bob', 'admin', { apps: ['shop'] })
  for (const path of ['/alerts', '/alerts/1', '/notices'])
    assert.equal((await visit(`/api/v1/host${path}`, { ...bob, accept: '*/*' })).status, 403)
  await api('post', `/api/v1/host/notices/${lost.id}/acknowledge`).expect(200)
  assert.deepEqual(
    history.page({ type: ['alert.added', 'alert.changed', 'alert.tested', 'notice.acknowledged'] }).items.map((
      { type }: { type: string }
    ) => type),
    ['notice.acknowledged', 'alert.tested', 'alert.changed', 'alert.added']
  )
})

test('its pages show them, and what is wrong with it; its forms add, change and acknowledge', async (t) => {
  const host = await startHostAdmin(t)
  const page = async (path: string) => (await host.visit(path)).text
  const post = async (action: string, fields: Record<string, string>) => {
    const { status, text } = await host.post(action, fields)
    assert.equal(status, 204, text)
  }
  await post('addHostAlert', { ...HOOK, name: 'ops', apps: 'shop, mail', topic: 'crashes' })
  const { text } = await host.api('get', '/api/v1/host/alerts')
  assert.match(text, /"apps":\["shop","mail"\]/)
  assert.match(await page('/alerts'), /<bdi>ops<\/bdi>[^]*A worker crashed in a new way[^]*· shop, mail/)
  assert.match(await page('/alerts?change=1'), /name="apps" type="text" value="shop, mail"/)
  const { id } = host.events.publish({ type: 'keeper.lost', message: 'the keeper is gone' })
  assert.match(await page('/'), /The keeper is gone/)
  await post('acknowledgeHostNotice', { id: String(id) })
  assert.doesNotMatch(await page('/'), /The keeper is gone/)
})

test('the command line has them for the host, or for some of its apps', async (t) => {
  const { apps, events, ...host } = await startHostAdmin(t)
  const cli = async (...words: string[]) => {
    const { code, stdout, stderr } = await host.cli(...words)
    assert.deepEqual([code, stderr], [0, ''])
    return stdout
  }
  await cli('alerts', 'add', 'webhook', HOOK.url, '--apps', 'shop')
  assert.deepEqual([apps.alerts.list()[0].apps, apps.deck('shop').alerts.list().length], [['shop'], 2])
  assert.match(await cli('alerts', '--host'), /problems of shop/)
  await cli('alerts', 'change', '1', '--apps', '*')
  assert.equal(apps.alerts.list()[0].apps, null)
  await cli('alerts', 'pause', '1', '--host')
  const { id } = events.publish({ type: 'keeper.lost', message: 'the keeper is gone' })
  assert.match(await cli('acknowledge', String(id), '--host'), /acknowledged/)
})
