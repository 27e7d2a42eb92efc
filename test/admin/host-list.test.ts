import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAdmin, startHostAdmin, START_MS } from '../support/admin.ts'
import { report } from '../support/vitals.ts'

test('each app of the list has a line of its requests, which moves twice a minute', async (t) => {
  const host = await startHostAdmin(t, { names: ['mail', 'shop'] })
  const { vitals } = host.apps.deck('shop')
  const pointsOf = async (app: string) =>
    new RegExp(`data-figure="${app}/s" points="([^"]*)"`).exec((await host.visit('/')).text)?.[1]
  for (let second = START_MS / 1000; second < START_MS / 1000 + 95; second++) {
    host.clock.advance(1000)
    vitals.accept(1, 1, report({ latenciesMs: Array(second % 2 ? 4 : 8).fill(5) }), 'r1')
    vitals.turn(second)
  }
  const line = await pointsOf('shop')
  assert.match(String(line), /^\d+,\d+ \d+,\d+ 120,\d+$/)
  host.clock.advance(20_000)
  assert.equal(await pointsOf('shop'), line)
  assert.equal(await pointsOf('mail'), '')
})

test('a host without apps shows how to begin, and no figures of nothing', async (t) => {
  const host = await startHostAdmin(t, { names: [] })
  const { text } = await host.visit('/')
  assert.match(text, /id="apps-facts" hidden>/)
  assert.equal(text.match(/No apps yet/g)?.length, 1)
  for (const command of ['start -d app.js', 'start -d -- python3 server.py', 'adopt --pm2'])
    assert.ok(text.includes(`clusterdeck ${command}`), command)
})

test('what is a part of other pages is a page by its own address, too', async (t) => {
  const admin = await startAdmin(t)
  const host = await startHostAdmin(t)
  for (const [site, path] of [[admin, '/deploys/preview'], [admin, '/decks'], [host, '/switch']] as const) {
    const page = (await site.visit(path)).text
    const part = (await site.visit(path, { 'HX-Request': 'true' })).text
    assert.match(page, /<link rel="stylesheet"[^]*<main/, path)
    assert.doesNotMatch(part, /<link|<main/, path)
  }
})
