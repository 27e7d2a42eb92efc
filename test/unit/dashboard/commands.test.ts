import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { commandTexts, quoteWord } from '../../../public/command-text.ts'
import { CALLS } from '../../../server/dashboard/calls.ts'

const textsOf = (action: string, values: Record<string, string>) => commandTexts([CALLS[action]], values)

test('a command has what was typed, and nothing of what was not', () => {
  assert.equal(textsOf('deploy', { note: '' }).cli, 'clusterdeck deploy')
  assert.equal(textsOf('deploy', { note: 'it\'s faster' }).cli, String.raw`clusterdeck deploy --note 'it'\''s faster'`)
  assert.equal(textsOf('scale', { workers: '4' }).cli, 'clusterdeck scale 4')
  assert.match(textsOf('scale', { workers: '4' }).curl,
    /-X PUT .* -d '\{"workers":4\}' "\$CLUSTERDECK_URL"\/api\/v1\/scale$/)
  assert.doesNotMatch(textsOf('deploy', { note: '' }).curl, /note/)
  assert.match(textsOf('configure', { name: 'drain.deadlineMs', value: '7000', tag: 'abc' }).curl,
    /-H 'If-Match: "abc"' .* -d '\{"drain\.deadlineMs":7000\}'/)
})

test('a message goes to one worker where one is named, or else to all', () => {
  const calls = [CALLS['message-to-worker'], CALLS.message]
  assert.equal(commandTexts(calls, { worker: '3', type: 'reload', data: '' }).cli, 'clusterdeck send reload --worker 3')
  assert.equal(commandTexts(calls, { worker: '', type: 'reload', data: '[1]' }).cli, 'clusterdeck send reload \'[1]\'')
})

test('what is no JSON makes no command that would do something else', () => {
  assert.deepEqual(commandTexts([CALLS.message], { type: 'reload', data: '{no' }), { curl: '# expected JSON',
    cli: '# expected JSON' })
})

test('a shell reads each word as it was typed, and a terminal nothing that it would obey', () => {
  const texts = ['\'; rm -rf ~ #', '$(id)', '`id`', '-x', '', '\u001b[201~\nid\n', '\u009b31m', String.raw`\'`,
    ...fc.sample(fc.string({ unit: 'binary' }), { numRuns: 100, seed: 1 })].map((text) => text.replaceAll('\0', ''))
  const words = texts.map(quoteWord)
  for (const word of words) assert.doesNotMatch(word, /[\u0000-\u001f\u007f-\u009f]/)
  const read = execFileSync('bash', ['-c', `printf '%s\\0' ${words.join(' ')}`], { encoding: 'utf8',
    env: { ...process.env, LC_ALL: 'C.UTF-8' } })
  assert.deepEqual(read.split('\0').slice(0, -1), texts)
})
