import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sparkline } from '../../server/admin/sparkline.js'
import { startAdmin, TOKEN } from '../support/admin.js'

test('the pages about crashes are for those who have signed in, and say what is wrong with their address', async (t) => {
  const admin = await startAdmin(t)
  const visit = async (/** @type {string} */ path, /** @type {Record<string, string>} */ headers = { Authorization: `Bearer ${TOKEN}` }) => {
    const response = await fetch(admin.url + path, { redirect: 'manual', headers: { Accept: 'text/html', ...headers } })
    return { status: response.status, text: await response.text() }
  }
  for (const path of ['/crashes', '/crashes/1']) assert.equal((await visit(path, {})).status, 303, path)
  assert.match((await visit('/crashes')).text, /No open crashes/)
  for (const [query, message] of [['state=closed', 'state: expected open, resolved, muted or all'], [`q=${'x'.repeat(101)}`, 'q: expected at most 100 characters'], ['release=%2Fetc', 'release: expected a release such as r1'], ['cursor=a%20b', 'cursor: expected the cursor of another page'], ['cursor=AAAA', 'cursor']]) {
    const { status, text } = await visit(`/crashes?${query}`)
    assert.equal(status, 400, query)
    assert.ok(text.includes(message), query)
  }
  for (const path of ['/crashes/1', '/crashes/abc', '/crashes/01', '/crashes/1?crash=x', `/crashes/${'9'.repeat(16)}`]) assert.equal((await visit(path)).status, 404, path)
})

test('forms change a group\'s state only in a session and by a real id', async (t) => {
  const admin = await startAdmin(t)
  const post = (/** @type {string} */ name, /** @type {string} */ body) => fetch(`${admin.url}/actions/${name}`, {
    method: 'POST', body, headers: { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/x-www-form-urlencoded' }
  })
  assert.equal((await post('resolve-crash', 'group=1')).status, 403, 'scripts have the API')
})

test('a sparkline goes from 0 to the highest value, with gaps where nothing is known', () => {
  assert.equal(sparkline([]), '')
  assert.equal(sparkline([null, null]), '')
  assert.equal(sparkline([0, 0, 0]), 'M0 24L60 24L120 24')
  assert.equal(sparkline([0, 10, null, 5, 10]), 'M0 24L30 0M90 12L120 0')
  assert.equal(sparkline([3]), 'M0 0')
})
