import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startAdmin } from '../support/admin.js'

test('a viewer gets what the checks have found, the worst first', async (t) => {
  const { api, deck } = await startAdmin(t)
  const { status, body } = await api('get', '/api/v1/checks')
  assert.deepEqual([status, body], [200, deck.report])
})

test('the page shows each problem with the line that mends it, and what has passed', async (t) => {
  const { stranger, signIn, deck } = await startAdmin(t)
  deck.report.items[0].title = '<script>alert(1)</script> and more'
  const { status, text } = await stranger().get('/checks').set('Cookie', await signIn()).set('Accept', 'text/html')
  assert.equal(status, 200)
  assert.match(text, /<h2 id="checks-problems">2 problems<\/h2>/)
  assert.ok(!text.includes('<script>alert'))
  assert.match(text, /<code>--drain-deadline-ms 120000<\/code>/)
  assert.match(text, /1 passed/)
  assert.ok(text.indexOf('Releases run in place') < text.indexOf('No health path is asked'))
})
