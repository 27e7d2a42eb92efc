import assert from 'node:assert/strict'
import { closeSync, openSync, writeSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test } from 'node:test'
import { liveFile } from '../../server/logs/log-files.ts'
import { createLogs } from '../../server/logs/logs.ts'
import { tempFolder } from '../support/folder.ts'

const LOG = { slot: 1, stream: 'stdout' } as const

test('a search of 300 MB never holds up the thread of the master', async (t) => {
  const folder = tempFolder()
  const logs = createLogs({ folder, options: { maxBytes: 8 * 1024, maxFiles: 1000, mirror: 'off' }, streams: process,
    onError: (reason) => assert.fail(reason) })
  logs.open({ worker: 1, slot: 1 }).close()
  const fd = openSync(liveFile(folder, LOG), 'a')
  writeSync(fd, 'the needle\n')
  const block = Buffer.from(`${'hay '.repeat(25)}\n`.repeat(10_000))
  for (let written = 0; written < 300; written++) writeSync(fd, block)
  closeSync(fd)
  // The first thread of a process takes its time.
  await logs.find({ logs: [], lines: 1 })
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  for (let before, found = false; !found;) {
    const { items, next } = await logs.find({ logs: [LOG], lines: 10, q: 'needle', before, budgetMs: 200 })
    found = items.length > 0
    before = next ?? undefined
    assert.ok(found || next !== null, 'it is there')
  }
  delay.disable()
  t.diagnostic(`p99 ${delay.percentile(99) / 1e6} ms`)
  assert.ok(delay.percentile(99) < 50e6, `p99 ${delay.percentile(99) / 1e6} ms`)
  await logs.close()
})
