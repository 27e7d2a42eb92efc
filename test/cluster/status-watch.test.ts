import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { startDeck } from '../support/deck.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const CLI = fileURLToPath(new URL('../../server/cli.js', import.meta.url))

rareTest('status --watch goes on over the death of a master, and says so; Ctrl-C ends it well', async (t) => {
  const deck = await startDeck(t, 'answers-with-pid.js', { workers: 1 })
  await deck.until({ ready: 1 })
  const child = spawn(process.execPath, [CLI, 'status', '--watch', '--data-dir', deck.folder])
  t.after(() => child.kill('SIGKILL'))
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  await until(() => output.stdout.includes('\n'), 'a line')
  const before = deck.masterPid
  await deck.loseMaster()
  await deck.until({ ready: 1 })
  await until(() => output.stderr.endsWith(`master ${deck.masterPid} has replaced master ${before}\n`),
    'the next master')
  const lines = output.stdout.split('\n').length
  await deck.rollout('restart')
  await until(() => output.stdout.split('\n').length > lines, 'a line of the next master')
  for (const line of output.stdout.trimEnd().split('\n'))
    assert.match(line, /^\S+Z (running|starting), release r1, [01] of 1 ready, /)
  child.kill('SIGINT')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})
