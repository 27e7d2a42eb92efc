import assert from 'node:assert/strict'
import { appendFileSync, existsSync, statSync, truncateSync, utimesSync } from 'node:fs'
import { test } from 'node:test'
import { liveFile, stampsFile } from '../../../server/logs/log-files.ts'
import { createStamps } from '../../../server/logs/stamps.ts'
import { tempFolder } from '../../support/folder.ts'

const LOG = { slot: 1, stream: 'stdout' } as const
const LINE_BYTES = 10

test('a line has the time at which its end was written, also to the next master, and none from before the first', async () => {
  const { folder, write } = setUp()
  write(1, 1000)
  const stamps = createStamps({ folder })
  stamps.look(LOG)
  write(1, 2000)
  stamps.look(LOG)
  write(2, 3000)
  for (const each of [stamps, createStamps({ folder })]) {
    const times = await each.times(LOG, 0)
    assert.deepEqual([1, 2, 3, 4, 5].map((line) => times.at(line * LINE_BYTES)), [null, 2000, 3000, 3000, null])
    assert.deepEqual([1, 2000, 2001, 9000].map((ms) => times.sizeBefore(ms) / LINE_BYTES), [1, 1, 2, 4])
  }
  assert.equal(statSync(stampsFile(folder, LOG)).mode & 0o777, 0o600)
})

test('goes on behind a record that was cut short, and begins anew with a log that was emptied', async () => {
  const { folder, write } = setUp()
  const first = createStamps({ folder })
  first.look(LOG)
  write(1, 1000)
  first.look(LOG)
  appendFileSync(stampsFile(folder, LOG), 'half')
  write(1, 2000)
  const next = createStamps({ folder })
  assert.deepEqual([LINE_BYTES, 2 * LINE_BYTES].map((await next.times(LOG, 0)).at), [1000, 2000])
  truncateSync(liveFile(folder, LOG))
  write(1, 3000)
  assert.equal((await next.times(LOG, 0)).at(LINE_BYTES), 3000)
})

test('keeps only so many times, the newest of them all', async () => {
  const { folder, write } = setUp()
  const stamps = createStamps({ folder, maxRecords: 100 })
  stamps.look(LOG)
  for (let line = 1; line <= 3000; line++) {
    write(1, line * 1000)
    stamps.look(LOG)
  }
  assert.ok(statSync(stampsFile(folder, LOG)).size <= 101 * 16)
  const times = await createStamps({ folder }).times(LOG, 0)
  assert.deepEqual([2990, 3000].map((line) => times.at(line * LINE_BYTES)), [2_990_000, 3_000_000])
  const old = Number(times.at(1500 * LINE_BYTES))
  assert.ok(old >= 1_500_000, 'what is coarser is later, never earlier')
})

test('a disk that takes no times keeps nobody from reading', async () => {
  const { folder, write } = setUp()
  const file = stampsFile(folder, LOG)
  write(1, 1000)
  const stamps = createStamps({ folder: `${folder}/missing` })
  assert.equal((await stamps.times(LOG, 0)).at(LINE_BYTES), null)
  assert.equal(existsSync(file), false)
})

function setUp () {
  const folder = tempFolder()
  const file = liveFile(folder, LOG)
  appendFileSync(file, '')
  return {
    folder,
    /** `ms`: when the last of them was written */
    write (lines: number, ms: number) {
      appendFileSync(file, `${'x'.repeat(LINE_BYTES - 1)}\n`.repeat(lines))
      utimesSync(file, ms / 1000, ms / 1000)
    }
  }
}
