import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { readJson, writeJson } from '../../../server/system/json-file.ts'
import { tempFolder } from '../../support/folder.ts'

test('a file is there as a whole, for its owner alone, and nothing is left beside it', () => {
  const folder = tempFolder()
  const file = path.join(folder, 'a.json')
  writeJson(file, { a: 1 })
  writeJson(file, { a: 2 })
  assert.deepEqual([readJson(file), statSync(file).mode & 0o777, readdirSync(folder)], [{ a: 2 }, 0o600, ['a.json']])
})

test('what cannot be written leaves the file as it was', () => {
  const file = path.join(tempFolder(), 'a.json')
  writeJson(file, { a: 1 })
  mkdirSync(`${file}.new`)
  assert.throws(() => writeJson(file, { a: 2 }), { code: 'EISDIR' })
  assert.equal(readFileSync(file, 'utf8'), '{"a":1}\n')
})

test('what cannot be read is null', () => {
  const file = path.join(tempFolder(), 'a.json')
  assert.equal(readJson(file), null)
  writeFileSync(file, '{"a":')
  assert.equal(readJson(file), null)
})
