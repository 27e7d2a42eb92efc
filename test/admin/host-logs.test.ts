import assert from 'node:assert/strict'
import { appendFileSync, utimesSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { liveFile } from '../../server/logs/log-files.ts'
import { rawRequest, startHostAdmin, type HostAdmin } from '../support/admin.ts'

const at = (second: number) => new Date(Date.parse('2026-01-01T00:00:00.000Z') + second * 1000).toISOString()

/** As a worker of the app does at that second, while its master looks. */
async function say ({ apps }: HostAdmin, app: string, text: string, second: number) {
  const { logs } = apps.deck(app)
  const file = liveFile(logs.folder, { slot: 1, stream: 'stdout' })
  appendFileSync(file, `${text}\n`)
  utimesSync(file, new Date(at(second)), new Date(at(second)))
  await logs.page({ slot: 1, stream: 'stdout', lines: 1, maxBytes: 1000 })
}

async function start (t: TestContext) {
  const host = await startHostAdmin(t, { names: ['mail', 'search', 'shop'] })
  const lines = [['shop', 'cart of req-7'], ['mail', 'sent for req-7'], ['search', 'indexed'], ['shop',
    'ERROR req-7 failed'], ['mail', 'idle']]
  for (const [second, [app, text]] of lines.entries()) await say(host, app, text, second)
  return host
}

const linesOn = (html: string) =>
  [...html.matchAll(/class="line-whose">([^<]*)<.*?class="line-text">(.*?)<\/div>/g)].map(([, app, text]) =>
    `${app}: ${text.replace(/<[^>]*>/g, '')}`
  )

test('lines of several apps come as one, by time, each with its app: of all that run, or of those that are chosen', async (t) => {
  const host = await start(t)
  const textsOf = async (query: string) =>
    (await host.api('get', `/api/v1/host/logs${query}`).expect(200)).body.items.map(({ app, text }) => `${app} ${text}`)
  assert.deepEqual(await textsOf(''), ['shop cart of req-7', 'mail sent for req-7', 'search indexed',
    'shop ERROR req-7 failed', 'mail idle'])
  assert.deepEqual(await textsOf('?app=mail,shop&q=REQ-7'), ['shop cart of req-7', 'mail sent for req-7',
    'shop ERROR req-7 failed'])
  assert.deepEqual(await textsOf('?app=mail,mail'), ['mail sent for req-7', 'mail idle'])
  assert.deepEqual(await textsOf(`?around=${at(2)}&lines=2`), ['mail sent for req-7', 'search indexed'])
  const { body: { items, next } } = await host.api('get', '/api/v1/host/logs?lines=2').expect(200)
  assert.deepEqual([items.map(({ text }) => text), await textsOf(`?lines=2&cursor=${next}`)], [['ERROR req-7 failed',
    'idle'], ['mail sent for req-7', 'search indexed']])

  const file = await rawRequest(host, { path: '/logs.txt?app=mail,shop&q=req-7',
    headers: { cookie: await host.signIn(), accept: 'text/plain' } })
  assert.match(String(file.headers['content-disposition']), /clusterdeck-logs\.txt/)
  assert.deepEqual(file.text.trimEnd().split('\n'), [`${at(0)} shop 1 stdout | cart of req-7`,
    `${at(1)} mail 1 stdout | sent for req-7`, `${at(3)} shop 1 stdout | ERROR req-7 failed`])
})

test('an app that does not run is searched in the files that it has left, where somebody names it', async (t) => {
  const host = await start(t)
  const stored = liveFile(host.apps.deck('mail').logs.folder, { slot: 7, stream: 'stderr' })
  appendFileSync(stored, 'of a slot from before\n')
  host.apps.closeApp('mail')
  const textsOf = async (query: string) =>
    (await host.api('get', `/api/v1/host/logs${query}`).expect(200)).body.items.map(({ app, text }) => `${app} ${text}`)
  assert.deepEqual(await textsOf('?q=req-7'), ['shop cart of req-7', 'shop ERROR req-7 failed'])
  assert.deepEqual(await textsOf('?app=mail'), ['mail of a slot from before', 'mail sent for req-7', 'mail idle'])
  assert.deepEqual(await textsOf('?app=mail,shop&q=req-7'), ['shop cart of req-7', 'mail sent for req-7',
    'shop ERROR req-7 failed'])

  host.apps.lastWords.lines = ['idle']
  const past = (await host.visit('/apps/mail/')).text
  assert.match(past, /href="\/logs\?app=mail">/)
  const { text } = await host.visit('/logs?app=mail&q=req-7')
  assert.deepEqual(linesOn(text), ['mail: sent for req-7'])
  assert.match(text, /data-count="none">1<[^]*data-count="error"></)
  assert.match(text, /name="app" value="mail" checked/)
  const marked = (await host.visit(`/logs?app=mail&around=${at(1)}&line=mail:1o0`)).text
  assert.match(marked, /Only mail/)
  assert.doesNotMatch(marked, /\/apps\/mail\/logs/)
  const file = await rawRequest(host, { path: '/logs.txt?app=mail&q=req-7',
    headers: { cookie: await host.signIn(), accept: 'text/plain' } })
  assert.equal(file.text.trimEnd(), `${at(1)} mail 1 stdout | sent for req-7`)
})

test('a role for some apps reads the lines of no others, and learns of none', async (t) => {
  const host = await start(t)
  const { headers } = await host.tokenFor('ci', 'viewer', { apps: ['mail'] })
  const ask = (query: string) => host.stranger().get(`/api/v1/host/logs${query}`).set(headers)
  assert.deepEqual((await ask('').expect(200)).body.items.map(({ app }) => app), ['mail', 'mail'])
  assert.match((await ask('?app=mail,shop').expect(404)).body.detail, /^There is no app "shop" on this host/)
  const { text } = await host.visit('/logs', { cookie: await host.signInBy(headers.authorization.slice(7)) })
  assert.deepEqual(linesOn(text), ['mail: sent for req-7', 'mail: idle'])
  assert.doesNotMatch(text, /shop|search</)
})

test('the page has the apps to choose from, marks what is looked for, and leads to what all wrote around a line', async (t) => {
  const host = await start(t)
  const { text, headers } = await host.visit('/logs?app=mail&app=shop&q=req-7', { 'HX-Request': 'true' })
  assert.equal(headers['hx-push-url'], '/logs?app=mail%2Cshop&q=req-7')
  assert.deepEqual(linesOn(text), ['shop: cart of req-7', 'mail: sent for req-7', 'shop: ERROR req-7 failed'])
  assert.match(text, /<span class="line-hit">req-7</)
  assert.deepEqual([...text.matchAll(/name="app" value="(\w+)"( checked)?/g)].map(([, app, on]) => app + (on ?? '')), [
    'mail checked',
    'search',
    'shop checked'
  ])
  assert.match(text, /data-poll="\/api\/v1\/host\/logs\?app=mail%2Cshop&amp;q=req-7&amp;"/)

  const link = /class="line-time" href="([^"#]*line=mail[^"#]*)#log-mark"/.exec(text)?.[1].replaceAll('&amp;', '&') ??
    ''
  const around = (await host.visit(link)).text
  assert.deepEqual(linesOn(around), ['shop: cart of req-7', 'mail: sent for req-7', 'shop: ERROR req-7 failed',
    'mail: idle'])
  assert.match(around, /id="log-mark" aria-current="true"/)
  assert.match(around, /href="\/apps\/mail\/logs\?q=req-7&amp;around=1o0#log-mark">Logs of mail</)
})
