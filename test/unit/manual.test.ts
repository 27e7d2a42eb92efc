import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { marked, type Tokens } from 'marked'
import { createSlugs, manualPages } from '../../server/manual.ts'
import { TABLES, withTable } from '../support/manual-tables.ts'

const root = new URL('../../', import.meta.url)
const folder = new URL('views/docs/', root)
const files = readdirSync(folder).filter((name) => name.endsWith('.md'))

test('the list of pages has every page once, by its own title', () => {
  const pages = manualPages()
  assert.deepEqual(pages.map(({ name }) => `${name}.md`).sort(), files.filter((name) => name !== 'README.md'))
  for (const { name, title } of pages) assert.equal(textOf(new URL(`${name}.md`, folder)).split('\n')[0], `# ${title}`)
  assert.deepEqual([pages[0].part, pages.at(-1)?.part], ['Begin', 'Words'])
})

for (const file of ['README.md', 'CONTRIBUTING.md', 'server/WALKS.md', ...files.map((name) => `views/docs/${name}`)]) {
  test(`every link of ${file} leads somewhere`, () => {
    const url = new URL(file, root)
    for (const href of linksOf(textOf(url)).filter((each) => !/^https?:/.test(each))) {
      const target = new URL(href, url)
      const hash = decodeURIComponent(target.hash.slice(1))
      target.hash = ''
      assert.ok(existsSync(target), `${href}: no such file`)
      if (hash) assert.ok(headingsOf(textOf(target)).includes(hash), `${href}: no such heading`)
    }
  })
}

test('the pages hold no HTML, and link nothing outside of their folder, where nobody serves it', () => {
  for (const name of files) {
    const text = textOf(new URL(name, folder)).replace(/^<!-- \/?[a-z]+ -->\n/gm, '')
    const html = tokensOf(text).filter(({ type }) => type === 'html')
    assert.deepEqual(html, [], name)
    for (const href of linksOf(text)) assert.match(href, /^(https?:\/\/|[\w-]+\.md(#|$)|#)/, name)
  }
})

for (const { page, mark, table } of TABLES) {
  test(`the table of ${mark} is that of the code`, () => {
    const text = textOf(new URL(`${page}.md`, folder))
    assert.ok(text.includes(`<!-- ${mark} -->\n`))
    assert.equal(text, withTable(text, mark, table), 'npm run tables puts it in')
  })
}

function textOf (url: URL) {
  return readFileSync(url, 'utf8')
}

function tokensOf (markdown: string): Tokens.Generic[] {
  const tokens: Tokens.Generic[] = []
  marked.walkTokens(marked.lexer(markdown), (token) => {
    tokens.push(token as Tokens.Generic)
  })
  return tokens
}

function linksOf (markdown: string): string[] {
  return tokensOf(markdown).filter(({ type }) => type === 'link').map(({ href }) => href)
}

function headingsOf (markdown: string) {
  return tokensOf(markdown).filter(({ type }) => type === 'heading').map(({ text }) => text).map(createSlugs())
}
