import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startAdmin } from '../support/admin.ts'
import { aCrash } from '../support/crash-record.ts'

async function setUp (t: TestContext) {
  const admin = await startAdmin(t)
  admin.history.crashes.record('v1:1', aCrash(), { culprit: 'sum (src/shop.js)' })
  admin.deck.events.publish({ type: 'worker.exited', worker: 7, slot: 1, cause: 'crash', code: 1,
    detail: { crash: 1, crashGroup: 1 } })
  return admin
}

test('every page names the open crashes, and events lead to theirs and to the logs around them', async (t) => {
  const { deck, history, visit, post } = await setUp(t)
  for (const path of ['/', '/history', '/history/1', '/crashes', '/crashes/1']) {
    const { status, text } = await visit(path)
    assert.equal(status, 200)
    assert.match(text, /id="open-crashes">1</, path)
  }
  for (const path of ['/', '/history', '/history/1'])
    assert.match((await visit(path)).text, /href="\/crashes\/1\?crash=1"/, path)
  for (const path of ['/history', '/history/1', '/crashes/1'])
    assert.match((await visit(path)).text, /href="\/logs\?slot=\d+&amp;around=\d{4}-[^"]*Z"/, path)
  assert.equal((await post('resolveCrash', 'id=1')).status, 204)
  assert.match((await visit('/crashes')).text, /id="open-crashes" hidden>/)
  const { items: [{ id }] } = history.page({ type: ['crash.group-resolved'] })
  assert.match((await visit(`/history/${id}`)).text, /href="\/crashes\/1"/)
  const loop = deck.events.publish({ type: 'worker.crash-looping', slot: 1 })
  assert.match((await visit(`/history/${loop.id}`)).text, /href="\/crashes\/1\?crash=1">See the crash</)
})

test('a filter that cannot be read is named on a page that goes on working', async (t) => {
  const { visit } = await setUp(t)
  const bad = await visit('/crashes?state=closed')
  assert.equal(bad.status, 400)
  assert.match(bad.text, /state: expected open, resolved, muted or all, received &quot;closed&quot;/)
  assert.match(bad.text, /id="crash-q"/)
  const pinned = await visit('/crashes/1?crash=x')
  assert.equal(pinned.status, 400)
  assert.match(pinned.text, /crash: expected a positive integer, received &quot;x&quot;/)
})

test('the address of a filtered list has no empty fields', async (t) => {
  const { visit } = await setUp(t)
  const { headers } = await visit('/crashes?state=open&q=total&release=', { 'HX-Request': 'true' })
  assert.equal(headers['hx-push-url'], '/crashes?q=total')
})

test('a group that is gone gets a page that says so, a crash that is gone the rest of its group', async (t) => {
  const { visit } = await setUp(t)
  for (const [path, said] of [['/crashes/99', /Crash group 99 does not exist or is no longer kept/], ['/crashes/abc',
    /Crash group &quot;abc&quot; does not exist/], ['/crashes/1?crash=99', /Occurrence 99 is no longer kept/]])
  {
    const { status, text, headers } = await visit(String(path))
    assert.equal(status, 404)
    assert.match(String(headers['content-type']), /^text\/html/)
    assert.match(text, said as RegExp)
  }
  assert.match((await visit('/crashes/1?crash=99')).text, /total is not a function/)
})

test('without its database the list says so, and every other page goes on', async (t) => {
  const { deck, visit } = await setUp(t)
  deck.crashes.counts = () => {
    throw new Error('disk I/O error')
  }
  assert.match((await visit('/')).text, /id="open-crashes" hidden>/)
  const { status, text } = await visit('/crashes')
  assert.equal(status, 503)
  assert.match(text, /this page returns once the database works/)
})
