import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OWNER } from '../../server/config/actor-names.ts'
import { startAdmin, type Admin } from '../support/admin.ts'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { tempFolder } from '../support/folder.ts'
import { until } from '../support/until.ts'
import type { Delivery } from '../../server/alerts/api.ts'

test('alerts are listed without what is secret in their addresses', async (t) => {
  const { api } = await startAdmin(t)
  const { body, text } = await api('get', '/api/v1/alerts').expect(200)
  assert.deepEqual(body.items.map(({ id, url }) => [id, url]), [['file-1', 'https://example.com/hook?token=…'], [
    'file-2',
    'https://hooks.example.com/…'
  ]])
  assert.doesNotMatch(text, /known to the receiver|hidden|T0A/)
})

test('a test and a retry answer with their delivery, and name who has asked in the history', async (t) => {
  const { api, deck } = await startAdmin(t)
  deck.alerts.status = 410
  const { body: tested } = await api('post', '/api/v1/alerts/file-2/test').expect(202)
  assert.deepEqual([tested.id, tested.event.type, tested.state], [1, 'alert.tested', 'pending'])
  await until(() => deck.alerts.list()[1].deliveries[0].state === 'failed', 'the failure')
  assert.deepEqual((await api('get', '/api/v1/alerts')).body.items[0].deliveries, [])

  deck.alerts.status = 200
  const { body: retried } = await api('post', '/api/v1/alerts/file-2/deliveries/1/retry').expect(202)
  assert.deepEqual([retried.id, retried.state, retried.error], [1, 'pending', 'answered 410'])
  await until(() => deck.alerts.list()[1].deliveries[0].state === 'delivered', 'the delivery')
  const { body: problem } = await api('post', '/api/v1/alerts/file-2/deliveries/1/retry').expect(409)
  assert.equal(problem.code, 'delivery-not-failed')
  const { body: { items } } = await api('get', '/api/v1/events?type=alert.*')
  assert.deepEqual(items.map(({ type, actor }) => [type, actor]), [['alert.retried', OWNER], ['alert.failed', 'system'],
    ['alert.tested', OWNER]])
})

/** A command line for this admin port. */
function cliOf (admin: Admin) {
  return (...words: string[]) => admin.cli('alerts', ...words)
}

test('the command line tests one alert or all, and fails where one fails', async (t) => {
  const admin = await startAdmin(t)
  const cli = cliOf(admin)
  assert.match((await cli()).stdout,
    /^ALERT {3}KIND {5}NAME {2}STATE .*\nfile-1 {2}webhook {2}- {5}on {11}0 {2}https:\/\/example\.com\/hook\?token=… {2}problems\n.*\n\nno deliveries yet\n$/)
  const one = await cli('test', 'file-2')
  assert.deepEqual([one.code, one.stderr], [0, ''])
  assert.match(one.stdout, /^alert file-2: alert\.tested delivered in \d+ ms \(204\)\n$/)
  assert.deepEqual(admin.deck.alerts.list().map(({ deliveries }) => deliveries.length), [0, 1])

  admin.deck.alerts.status = 404
  assert.deepEqual(await cli('test'), { code: 1, stdout: '',
    stderr: 'clusterdeck: alert file-1 failed: answered 404; alert file-2 failed: answered 404\n' })
  const { code, stdout } = await cli('test', 'file-1', '--json')
  assert.deepEqual([code,
    (JSON.parse(stdout) as { items: { alert: string, delivery: Delivery }[] }).items.map((
      { alert, delivery }
    ) => [alert, delivery.state])], [1, [['file-1', 'failed']]])
  assert.match((await cli()).stdout, /file-2 {9}2 {2}\S+Z {2}alert\.tested {2}failed {9}1 {5}404 .* answered 404\n/)
})

test('the command line sends a failed delivery again, and says so where it has not failed', async (t) => {
  const admin = await startAdmin(t)
  const cli = cliOf(admin)
  admin.deck.alerts.status = 404
  await cli('test', 'file-1')
  assert.equal((await cli('retry', 'file-1', '1')).code, 1)
  admin.deck.alerts.status = 204
  const { code, stdout } = await cli('retry', 'file-1', '1', '--json')
  assert.deepEqual([code, JSON.parse(stdout).state, JSON.parse(stdout).attempt], [0, 'delivered', 3])
  const again = await cli('retry', 'file-1', '1')
  assert.deepEqual([again.code, again.stdout], [4, ''])
  assert.match(again.stderr, /expected state failed, received delivered/)
  assert.equal((await cli('retry', 'file-1', '2')).code, 1)
})

test('a usage error of "alerts" sends nothing', async (t) => {
  const admin = await startAdmin(t)
  for (const words of ['tset', 'test 0', 'test 1 2', 'test x', 'retry', 'retry 1', 'retry 1 x', 'retry 1 2 3', 'add',
    'pause', 'change 1', 'delete 1 2', 'add slack x --url-file missing'])
  {
    assert.equal((await cliOf(admin)(...words.split(' '))).code, 2, words)
  }
  assert.equal(admin.deck.events.lastId, 0)
})

test('what is asked for by a wrong id is refused, and sends nothing', async (t) => {
  const { api, deck } = await startAdmin(t)
  for (const path of ['0/test', '__proto__/test', 'file-1/deliveries/-1/retry', 'x/deliveries/1/retry'])
    await api('post', `/api/v1/alerts/${path}`).expect(400)
  assert.deepEqual([deck.alerts.list().flatMap(({ deliveries }) => deliveries), deck.events.lastId], [[], 0])
})

const SLACK = Object.freeze({ kind: 'slack', name: 'ops', url: 'https://hooks.example.com/services/T0/B0/hidden-key',
  events: ['rollout.*'] })

test('nothing tells the secrets of an alert, what is paused stays so by its number, and no number is given out twice', async (t) => {
  const { api, deck } = await startAdmin(t)
  const { body: added, text } = await api('post', '/api/v1/alerts').send(SLACK).expect(201)
  const { body: changed } = await api('patch', '/api/v1/alerts/1').send({ name: 'night', events: null, isPaused: true })
    .expect(200)
  assert.deepEqual([changed.name, changed.isDefault, changed.isPaused, changed.url], ['night', true, true, added.url])
  const { text: list } = await api('get', '/api/v1/alerts')
  const { text: deleted } = await api('delete', '/api/v1/alerts/1').expect(200)
  const { body: { items }, text: events } = await api('get', '/api/v1/events?type=alert.*')
  assert.deepEqual(items.map(({ message }) => message), ['alert 1 "night" (slack, https://hooks.example.com) deleted',
    'alert 1 "night" (slack, https://hooks.example.com) changed',
    'alert 1 "ops" (slack, https://hooks.example.com) added'])
  assert.doesNotMatch(text + list + deleted + events, /hidden-key/)
  assert.equal((await api('post', '/api/v1/alerts').send(SLACK)).body.id, '2')
  assert.equal(deck.alerts.list().length, 3)
})

const HOOK = Object.freeze({ kind: 'webhook', url: 'https://example.com/hook' })
const MAIL = Object.freeze({ kind: 'mail', host: 'smtp.example.com', user: 'deck', password: 'hidden-password',
  from: 'deck@example.com', to: ['ops@example.com'] })

test('an alert that is wrong is refused and not kept, and the refusal tells none of its secrets', async (t) => {
  const { api, deck } = await startAdmin(t)
  for (const [body, wrong] of [[{ kind: 'pager', url: SLACK.url },
    /kind: expected one of slack, discord, teams, mail, sentry, webhook/], [{ kind: 'slack' },
    /url: expected to be given for slack/], [{ ...SLACK, secret: 'long enough for a secret' },
    /secret: expected not to be given for slack, which takes url, received one/], [{ ...SLACK,
    url: 'file:///etc/passwd' }, /url: expected an http or https address/], [{ ...SLACK,
    url: 'https://user:hidden-key@example.com' }, /url: expected an http or https address without user and password/], [
    { ...SLACK, events: [] },
    /events: expected/
  ], [{ ...SLACK, body: {} }, /body: expected not to be given for slack/], [{ ...HOOK, body: { text: '{{titel}}' } },
    /body: expected placeholders among \{\{title\}\}, .*, received \{\{titel\}\}$/], [{ ...HOOK,
    body: '{"routing_key": "hidden-key"' }, /body: expected a JSON object or list, received a text that is no JSON$/], [
    { ...HOOK, body: { text: 'x'.repeat(4000) } },
    /body: expected at most 4000 characters, received 4011$/
  ], [{ ...HOOK, headers: { Authorization: ['hidden-key'] } },
    /headers\.Authorization: expected .*, received something that is not shown$/], [{ ...HOOK,
    headers: { 'X-Key': 'hidden-key\r\nHost: evil' } }, /headers\.X-Key: expected/], [{ ...HOOK,
    headers: { 'Content-Length': '5' } }, /headers: expected/], [{ ...SLACK, name: 'a\r\nBcc: all@example.com' },
    /name: expected/], [{ ...MAIL, password: undefined }, /password: expected to be given with user/], [{ ...MAIL,
    to: ['ops@example.com\r\nBcc: all@example.com'] }, /to/], [{ ...MAIL, from: 'Deck <deck@example.com>' },
    /from: expected a mail address/], [{ ...MAIL, host: 'smtp.example.com/x' }, /host: expected the name or address/], [
    { ...MAIL, port: 0 },
    /port: expected a port/
  ]] as [object, RegExp][]) {
    const { body: { detail }, text } = await api('post', '/api/v1/alerts').send(body).expect(422)
    assert.match(detail, wrong)
    assert.doesNotMatch(text, /hidden-(key|password)/)
  }
  assert.deepEqual([deck.alerts.list().length, deck.events.lastId], [2, 0])
})

test('a body and headers are not sent to another address than the one they were given for', async (t) => {
  const { api } = await startAdmin(t)
  const { body: hook } = await api('post', '/api/v1/alerts').send({ ...HOOK, body: { routing_key: 'hidden-key' },
    headers: { Authorization: 'hidden-key' } }).expect(201)
  const elsewhere = { url: 'https://attacker.example' }
  for (const [changes, field] of [[elsewhere, 'headers'], [{ ...elsewhere, headers: null }, 'body']] as const) {
    const { body } = await api('patch', `/api/v1/alerts/${hook.id}`).send(changes).expect(422)
    assert.equal(body.detail, `${field}: expected again, as the address changes, received none`)
  }
  const { body: moved, text } = await api('patch', `/api/v1/alerts/${hook.id}`).send({ ...elsewhere, body: null,
    headers: { 'X-Key': 'hidden-key' } }).expect(200)
  assert.deepEqual([hook.hasBody, hook.headers, moved.hasBody, moved.headers], [true, ['Authorization'], false, [
    'X-Key'
  ]])
  assert.doesNotMatch(text, /hidden-key/)
})

test('a password is not sent to another server than the one it was given for', async (t) => {
  const { api } = await startAdmin(t)
  await api('post', '/api/v1/alerts').send(MAIL).expect(201)
  const { body } = await api('patch', '/api/v1/alerts/1').send({ host: 'smtp.attacker.example' }).expect(422)
  assert.equal(body.detail, 'password: expected again, as the server changes, received none')
  assert.equal((await api('get', '/api/v1/alerts/1')).body.mail?.host, 'smtp.example.com')
  await api('patch', '/api/v1/alerts/1').send({ host: 'smtp2.example.com', password: 'another one' }).expect(200)
})

test('an alert of the configuration file is changed there alone', async (t) => {
  const { api } = await startAdmin(t)
  const { body } = await api('delete', '/api/v1/alerts/file-1').expect(409)
  assert.equal(body.detail, 'Alert file-1 is set in the configuration file: change it there')
})

test('the command line adds, changes, pauses and deletes an alert', async (t) => {
  const admin = await startAdmin(t)
  const cli = cliOf(admin)
  const password = path.join(tempFolder(), 'password')
  writeFileSync(password, 'hidden-password\n')
  assert.deepEqual(
    await cli('add', 'mail', 'ops@example.com,ada@example.com', '--server', 'smtp.example.com:465', '--from',
      'deck@example.com', '--user', 'deck', '--password-file', password),
    { code: 0, stdout: 'alert 1 added: ops@example.com, ada@example.com by smtp.example.com:465\n', stderr: '' }
  )
  assert.equal((await cli('change', '1', '--events', 'rollout.failed,job.*', '--title', 'night')).stdout,
    'alert 1 changed\n')
  assert.equal((await cli('pause', '1')).stdout, 'alert 1 paused\n')
  const [{ name, events, isPaused, mail }] = admin.deck.alerts.list()
  assert.deepEqual([name, events, isPaused, mail?.port], ['night', ['rollout.failed', 'job.*'], true, 465])
  assert.equal((await cli('resume', '1')).stdout, 'alert 1 resumed\n')
  assert.equal((await cli('delete', '1')).stdout, 'alert 1 deleted\n')
  assert.equal(admin.deck.alerts.list().length, 2)
})

test('the command line reads a body and headers from files, and refuses what is no JSON', async (t) => {
  const admin = await startAdmin(t)
  const cli = cliOf(admin)
  const [body, headers] = ['body.json', 'headers.json'].map((name) => path.join(tempFolder(), name))
  writeFileSync(body, '{ "routing_key": "hidden-key", "text": "{{title}}" }\n')
  writeFileSync(headers, '{ "Authorization": "hidden-key" }')
  const added = await cli('add', 'webhook', HOOK.url, '--body-file', body, '--headers-file', headers)
  assert.deepEqual(added, { code: 0, stdout: 'alert 1 added: https://example.com/hook\n', stderr: '' })
  const [{ hasBody, headers: names }] = admin.deck.alerts.list()
  assert.deepEqual([hasBody, names], [true, ['Authorization']])
  writeFileSync(body, '{ "routing_key": "hidden-key"')
  const { code, stderr } = await cli('change', '1', '--body-file', body)
  assert.deepEqual([code, stderr], [2,
    `clusterdeck: --body-file: expected a file of JSON, received ${JSON.stringify(body)}\n`])
})
