import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createRunOutput } from '../../../server/jobs/run-output.ts'
import { tempFolder } from '../../support/folder.ts'

test('what a run has written is there for the next master, stream by stream, with the places of its readers, in a file that stays small', () => {
  const file = path.join(tempFolder(), 'runs', '7')
  const first = createRunOutput({ maxChars: 10, file })
  for (let n = 0; n < 100; n++) first.add(n % 2 === 0 ? 'stdout' : 'stderr', `é${n}\n`)
  const next = createRunOutput({ maxChars: 10, file })
  for (const place of [0, 200, 385, 390]) assert.deepEqual(next.since(place), first.since(place))
  assert.deepEqual(next.since(386).parts,
    [{ stream: 'stdout', text: 'é98\n'.slice(4) }, { stream: 'stderr', text: 'é99\n' }].filter(({ text }) =>
      text !== ''
    ))
  const { parts, missed } = next.since(310)
  assert.deepEqual([missed, parts[0]], [0, { stream: 'stdout', text: 'é80\n' }],
    'what memory has forgotten is in the file')
  assert.ok(statSync(file).size < 4000)
  next.add('stdout', 'more')
  assert.equal(createRunOutput({ maxChars: 10, file }).text().slice(-4), 'more')
})

test('a line that was cut off, and what stands before a gap, as a full disk leaves it, is not read', () => {
  const file = path.join(tempFolder(), '7')
  createRunOutput({ maxChars: 100, file }).add('stdout', 'before')
  appendFileSync(file, `\n${JSON.stringify({ at: 50, stream: 'stdout', text: 'behind' })}\n{"at":56,"str`)
  assert.deepEqual(createRunOutput({ maxChars: 100, file }).since(0), { parts: [{ stream: 'stdout', text: 'behind' }],
    place: 56, missed: 50 })
  writeFileSync(file, '')
  const output = createRunOutput({ maxChars: 100, file })
  output.add('stderr', 'again')
  assert.match(readFileSync(file, 'utf8'), /again/)
  output.end()
  assert.deepEqual(createRunOutput({ maxChars: 100, file }).since(0), { parts: [], place: 0, missed: 0 })
})
