import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { manualPages } from '../../server/manual.ts'

const MAX_BYTES = 12_000
const MAX_CONTRIBUTING_BYTES = 8192

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

test('the page for contributors names every room of the server, and only files that are there', () => {
  const text = readFileSync(new URL('CONTRIBUTING.md', root), 'utf8')
  assert.ok(Buffer.byteLength(text) <= MAX_CONTRIBUTING_BYTES, 'it is to be read in one go')
  const [, table] = text.match(/^\| room \|.*?\n(\|.*?)\n\n/ms) ?? []
  const rooms = [...table.matchAll(/(?<=^\| .*)`([a-z]+)\/`/gm)].map(([, room]) => room)
  const folders = readdirSync(new URL('server/', root), { withFileTypes: true }).filter((each) => each.isDirectory())
    .map(({ name }) => name)
  assert.deepEqual(rooms.filter((room) => folders.includes(room)).sort(), folders.sort())
  for (const [, file] of text.matchAll(/`([\w./-]+\/[\w.-]+\.(?:ts|js|eta|md))`/g)) {
    assert.ok(existsSync(new URL(file, root)) || existsSync(new URL(`server/${file}`, root)), file)
  }
})
