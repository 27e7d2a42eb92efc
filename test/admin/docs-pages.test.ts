import assert from 'node:assert/strict'
import test from 'node:test'
import { manualPages } from '../../server/manual.ts'
import { startAdmin } from '../support/admin.ts'

test('every page of the manual is served, with a list of all and the one it is marked', async (t) => {
  const { visit } = await startAdmin(t)
  const pages = manualPages()
  for (const path of ['/docs', ...pages.map(({ name }) => `/docs/${name}`)]) {
    const { status, text } = await visit(path)
    assert.equal(status, 200, path)
    for (const { name } of pages) assert.ok(text.includes(`href="/docs/${name}"`), `${path} does not list ${name}`)
    assert.match(text, new RegExp(`<a href="${path}" aria-current="page">`))
    assert.match(text, /<h1 id="/)
    assert.doesNotMatch(text, /&lt;!--|href="[^"]*\.md/)
  }
})

test('the manual can be searched from each of its pages, and the search has an address', async (t) => {
  const { visit } = await startAdmin(t)
  for (const path of ['/docs', '/docs/logs'])
    assert.match((await visit(path)).text, /action="\/docs"[^>]*>[^]*?name="q"/)
  const { text, headers } = await visit('/docs?q=ship+logs', { 'HX-Request': 'true' })
  assert.match(text, /<a href="\/docs\/logs#ship-logs">Logs: Ship logs<\/a>/)
  assert.equal(headers['hx-push-url'], '/docs?q=ship+logs')
  // The text is cut within a character of two units.
  assert.equal((await visit(`/docs?q=${'a'.repeat(99)}%F0%9F%98%80`)).status, 200)
  assert.match((await visit('/docs?q=<b>zzz')).text, /<h1[^>]*>Nothing found</)
})

test('the page of the API lists all operations, and each leads to its own place on the page of its group', async (t) => {
  const { visit } = await startAdmin(t)
  assert.match((await visit('/docs/api/rollouts')).text, /<span class="api-summary">[^`]*<code>wait<\/code>/)
  const { text } = await visit('/docs/api')
  const links = [...text.matchAll(/href="(\/docs\/api\/[\w-]+)#(\w+)"/g)]
  assert.ok(links.length > 60, `${links.length} operations`)
  for (const path of new Set(links.map(([, path]) => path))) {
    const { status, text: page } = await visit(path)
    assert.equal(status, 200, path)
    for (const [, of, id] of links) if (of === path) assert.ok(page.includes(` id="${id}"`), `${path}#${id}`)
    for (const [, id] of page.matchAll(/href="#([\w-]+)"/g)) assert.ok(page.includes(` id="${id}"`), `${path}#${id}`)
  }
})

test('a page that is not there is a 404 like any other, whatever its name', async (t) => {
  const { visit } = await startAdmin(t)
  for (const path of ['/docs/nothing', '/docs/README', '/docs/logs.md', '/docs/..%2f..%2fpackage', '/docs/__proto__',
    '/docs/logs/more', '/docs/api/nothing', '/docs/%00'])
  {
    const { status, text } = await visit(path)
    assert.equal(status, 404, path)
    assert.match(text, /<h1>Not found<\/h1>/)
  }
})
