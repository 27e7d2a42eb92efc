import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { manualPages } from '../../server/manual.js'

const MAX_BYTES = 12_000

const root = new URL('../../', import.meta.url)
const readme = readFileSync(new URL('README.md', root), 'utf8')

test('it is short', () => {
  const bytes = Buffer.byteLength(readme)
  assert.ok(bytes <= MAX_BYTES, `${bytes} bytes: what is more goes into views/docs`)
})

test('every picture that it shows is there', () => {
  const pictures = [...readme.matchAll(/(?:src|srcset)="([^"]+)"/g)].map(([, file]) => file)
  assert.equal(pictures.length, 2)
  for (const file of pictures) assert.ok(existsSync(new URL(file, root)), file)
})

test('it leads to every page of the manual', () => {
  for (const { name, title } of manualPages()) assert.ok(readme.includes(`[${title}](views/docs/${name}.md)`), name)
})
