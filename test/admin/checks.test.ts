import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAdmin } from '../support/admin.ts'

test('the page shows each problem with the line that mends it, and what has passed', async (t) => {
  const { visit, deck } = await startAdmin(t)
  deck.report.items[0].title = '<script>alert(1)</script> and more'
  const { status, text } = await visit('/checks')
  assert.equal(status, 200)
  assert.match(text, /<h2 id="checks-problems">2 problems<\/h2>/)
  assert.ok(!text.includes('<script>alert'))
  assert.match(text, /<code>--drain-deadline-ms 120000<\/code>/)
  // The icon says how severe it is; who cannot see it is told by a word.
  assert.match(text, /<h3><span class="sr-only">Error: <\/span><bdi>&lt;script&gt;/)
  assert.doesNotMatch(text, /class="pill/)
  assert.match(text, /1 passed/)
  assert.ok(text.indexOf('Releases run in place') < text.indexOf('No health path is asked'))
})

test('a button of a check sets the option that mends it, for those who may', async (t) => {
  const { visit, post, deck, tokenFor } = await startAdmin(t)
  const { text } = await visit('/checks')
  const form = /<form method="post" action="\/actions\/changeConfig">.*?Set drain\.deadlineMs to 2 min</s.exec(text)
    ?.[0]
  const fields = Array.from(String(form).matchAll(/name="(\w+)" value="([^"]*)"/g), ([, name, value]) => [name, value])
  assert.equal((await post('changeConfig', Object.fromEntries(fields))).status, 204)
  assert.equal(deck.settings.list().find(({ name }) => name === 'drain.deadlineMs')?.value, 120_000)
  const { headers } = await tokenFor('grace', 'operator')
  assert.doesNotMatch((await visit('/checks', headers)).text, /Set drain/)
})

test('the overview tells of a Node without fixes, with whatever runs on it, and of no other', async (t) => {
  const { visit, deck } = await startAdmin(t)
  const told = async () =>
    /<section class="notices" aria-label="Version of Node">.*?<\/section>/s.exec((await visit('/')).text)?.[0] ?? null
  assert.equal(await told(), null)
  const { master, release } = deck.snapshot()
  deck.set({ master: { ...master, nodeVersion: 'v24.0.0' } })
  assert.match(String(await told()),
    /<a href="\/checks">clusterdeck and the app run on Node 24\.0\.0, which lacks the security fixes of 24\./)
  deck.set({ master: { ...master, nodeVersion: 'v18.1.0' }, release: { ...release, runtime: 'other' } })
  assert.match(String(await told()),
    /clusterdeck runs on Node 18\.1\.0, which has had no fixes since 2025-04-30.*Holes that are found in it stay open/s)
})
