import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { commandTexts, quoteWord } from '../../../public/command-text.ts'
import { callsOf } from '../../support/operations.ts'

const textsOf = (names: string, values: Record<string, string>) => commandTexts(callsOf(names), values)

test('a command has what was typed, and nothing of what was not', () => {
  const deploy = { kind: 'deploy', 'strategy.canary.durationMs': '60000' }
  assert.equal(textsOf('startRollout', { kind: 'deploy', note: '' }).cli, 'clusterdeck deploy')
  assert.equal(textsOf('startRollout', { ...deploy, note: 'it\'s faster' }).cli,
    String.raw`clusterdeck deploy --note 'it'\''s faster' --canary-time 60000ms`)
  assert.equal(textsOf('setScale', { workers: '4' }).cli, 'clusterdeck scale 4')
  assert.match(textsOf('setScale', { workers: '4' }).curl,
    /-X PUT .* -d '\{"workers":4\}' "\$CLUSTERDECK_URL"\/api\/v1\/scale$/)
  assert.doesNotMatch(textsOf('startRollout', { kind: 'deploy', note: '' }).curl, /note|strategy/)
  assert.match(textsOf('changeConfig', { name: 'drain.deadlineMs', value: '7000', seen: 'drain.deadlineMs=5000' }).curl,
    /-H 'If-Match: "drain\.deadlineMs=5000"' .* -d '\{"drain\.deadlineMs":7000\}'/)
})

test('a commit is deployed where one is named, or else the code on the disk', () => {
  const cliOf = (git: string) => textsOf('deployCommit,startRollout', { kind: 'deploy', git }).cli
  assert.deepEqual([cliOf('v2'), cliOf('')], ['clusterdeck deploy --git v2', 'clusterdeck deploy'])
})

test('a message goes to one worker where one is named, or else to all', () => {
  assert.equal(textsOf('sendMessage', { worker: '3', type: 'reload', data: '' }).cli,
    'clusterdeck send reload --worker 3')
  assert.equal(textsOf('sendMessage', { worker: '', type: 'reload', data: '[1]' }).cli,
    'clusterdeck send reload \'[1]\'')
})

test('what is no JSON makes no command that would do something else', () => {
  assert.deepEqual(textsOf('sendMessage', { type: 'reload', data: '{no' }), { curl: '# expected JSON',
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
