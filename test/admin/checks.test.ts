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
  assert.match(text, /1 passed/)
  assert.ok(text.indexOf('Releases run in place') < text.indexOf('No health path is asked'))
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
