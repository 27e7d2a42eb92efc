import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createJobLogs } from '../../../server/jobs/job-log.ts'
import { tempFolder } from '../../support/folder.ts'

function setUp ({ maxFiles }: { maxFiles: number }) {
  const folder = tempFolder()
  const logs = createJobLogs({ folder, limits: () => ({ maxBytes: 10, maxFiles }) })
  return {
    /** `text`: which ends in the middle of a line */
    run (name: string, text: string) {
      const log = logs.open(name, 'begins')
      log.write(text)
      log.close()
    },
    files: () =>
      Object.fromEntries(
        readdirSync(folder).sort().map((name) => [name, readFileSync(path.join(folder, name), 'utf8')])
      )
  }
}

test('a log that is full goes on in a new file, and no more of the older ones are kept than are wanted', () => {
  const { run, files } = setUp({ maxFiles: 2 })
  for (const text of ['first', 'second', 'third']) run('nightly', text)
  assert.deepEqual(files(), { 'nightly.log': 'begins\nthird\n', 'nightly.log.1': 'begins\nsecond\n' })
})

test('with one file what is older is gone', () => {
  const { run, files } = setUp({ maxFiles: 1 })
  for (const text of ['first', 'second']) run('nightly', text)
  assert.deepEqual(files(), { 'nightly.log': 'begins\nsecond\n' })
})

test('the older files of a job are not the log of another one', () => {
  const { run, files } = setUp({ maxFiles: 3 })
  run('nightly.1', 'other')
  for (const text of ['first', 'second', 'third']) run('nightly', text)
  assert.deepEqual(files(), { 'nightly.1.log': 'begins\nother\n', 'nightly.log': 'begins\nthird\n',
    'nightly.log.1': 'begins\nsecond\n', 'nightly.log.2': 'begins\nfirst\n' })
})
