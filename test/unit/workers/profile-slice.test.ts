import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { readdirSync, readFileSync, statSync, watch } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { toCallTree } from '../../../server/diagnostics/api-call-tree.ts'
import { answerDiagnostics } from '../../../workers/diagnostics.ts'
import { tempFolder } from '../../support/folder.ts'
import type { Channel } from '../../../workers/channel.ts'

test('a slice of continuous profiling is a small CPU profile that is there once it is whole, without what taking it has cost', async () => {
  const channel = new EventEmitter()
  answerDiagnostics(channel as object as Channel)
  const file = path.join(tempFolder(), '1-w1-s1-r1.json.gz')
  const watcher = watch(path.dirname(file))
  channel.emit('profile', { type: 'profile', file, durationMs: 300 })
  channel.emit('profile', { type: 'profile', file: `${file}.second`, durationMs: 300 })
  const busy = setInterval(spinForTheProfile, 1)
  while (!readdirSync(path.dirname(file)).includes(path.basename(file))) await once(watcher, 'change')
  clearInterval(busy)
  watcher.close()
  assert.deepEqual(readdirSync(path.dirname(file)), [path.basename(file)], 'one at a time')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const profile = JSON.parse(String(gunzipSync(readFileSync(file))))
  assert.equal(profile.samples.length, new Set(profile.samples).size, 'one sample for each function')
  const { functions } = toCallTree(profile)
  const spun = functions.find(({ name }) => name === 'spinForTheProfile')
  assert.ok(spun && spun.totalMs > 10, JSON.stringify(functions.slice(0, 5)))
  assert.equal(functions.find(({ name }) => name === 'takeProfile')?.totalMs ?? 0, 0)
})

function spinForTheProfile () {
  const end = process.cpuUsage().user + 20_000
  while (process.cpuUsage().user < end) Math.sqrt(Math.random())
}
