import assert from 'node:assert/strict'
import test from 'node:test'
import { docsModel, toHtml } from '../../../server/dashboard/docs-page.ts'
import { manualPages } from '../../../server/manual.ts'

test('HTML in a page comes out as text, wherever it stands', async () => {
  const html = await toHtml(
    '<script>alert(1)</script>\n\nText <b onclick="x">bold</b> & `<i>`\n\n| a |\n| --- |\n| <img src=x> |\n\n## <u>\n'
  )
  assert.deepEqual(html.match(/<(?!\/?(?:p|h2|code|div|table|thead|tbody|tr|th|td)\b)[^>]*>/g), null)
  assert.match(html, /&lt;script&gt;alert\(1\)&lt;\/script&gt;/)
  assert.match(html, /&lt;img src=x&gt;/)
  assert.match(html, /<code class="whole">&lt;i&gt;<\/code>/)
})

test('a link leads to a page, a place or the web; any other is its text', async () => {
  const html = await toHtml(
    '[a](logs.md#rotation) [b](README.md) [c](#here) [d](https://example.com/?a=1&b=2) [e](javascript:alert(1)) [f](/sign-out) [g](data:text/html,x) ![h](https://example.com/x.png)'
  )
  assert.deepEqual([...html.matchAll(/href="([^"]*)"/g)].map(([, url]) => url), ['/docs/logs#rotation', '/docs',
    '#here', 'https://example.com/?a=1&amp;b=2'])
  assert.match(html, /e f g h/)
})

test('headings have the ids that a code host gives them', async () => {
  const html = await toHtml('## From CI, in one call\n\n## `ready.path` & more\n\n## A\n\n## A\n')
  assert.deepEqual([...html.matchAll(/<h2 id="([^"]*)"/g)].map(([, id]) => id), ['from-ci-in-one-call',
    'readypath--more', 'a', 'a-1'])
})

test('a search leads to sections that have all words, first to those that are called so', async () => {
  const found = async (q: string) => (await docsModel({ params: new URLSearchParams({ q }), now: () => 0 })).found
  const [first] = await found('ship LOGS') ?? []
  assert.deepEqual([first.page, first.heading, first.url], ['Logs', 'Ship logs', '/docs/logs#ship-logs'])
  assert.equal((await found('the'))?.length, 30)
  const [{ excerpt }] = await found('copytruncate') ?? []
  assert.match(excerpt, /^… .*copytruncate.* …$/)
  assert.ok(excerpt.length < 260 && !/[|`]/.test(excerpt))
  assert.deepEqual([await found('no-such-word-at-all'), await found(' ')], [[], null])
})

test('tables take the focus, as they scroll on a narrow screen', async () => {
  const html = await toHtml('| a |\n| --- |\n| b |\n')
  assert.match(html, /<div class="doc-table" role="group" aria-label="Table" tabindex="0"><table>/)
})

test('short code does not break, longer code and blocks do', async () => {
  const html = await toHtml(`\`--flag <n>\` \`${'long '.repeat(10)}\`\n\n    block\n`)
  assert.deepEqual(html.match(/<code[^>]*>/g), ['<code class="whole">', '<code>', '<code>'])
})

test('every page follows the one before it, and the index comes first', async () => {
  const pages = manualPages()
  const index = await docsModel({ now: () => 0 })
  assert.deepEqual([index.title, index.previous, index.next], ['Manual', null, pages[0]])
  for (const [place, { name, title }] of pages.entries()) {
    const model = await docsModel({ id: name, now: () => 0 })
    assert.deepEqual([model.title, model.previous, model.next], [title, pages[place - 1] ?? null,
      pages[place + 1] ?? null])
    assert.equal((await docsModel({ id: name, now: () => 1 })).html, model.html)
  }
})
