import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { optionsTable } from '../support/options-table.js'

const root = new URL('../../', import.meta.url)
const readme = readFileSync(new URL('README.md', root), 'utf8')

test('the table of options is that of the schema', () => {
  const [, table] = readme.match(/<!-- options -->\n(.*?)\n<!-- \/options -->/s) ?? []
  assert.equal(table, optionsTable())
})

test('every picture that it shows is there', () => {
  const pictures = [...readme.matchAll(/(?:src|srcset)="([^"]+)"/g)].map(([, file]) => file)
  assert.equal(pictures.length, 2)
  for (const file of pictures) assert.ok(existsSync(new URL(file, root)), file)
})
