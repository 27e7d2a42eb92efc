import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { openHistory } from '../../../db/history.ts'
import { pastOfApp } from '../../../server/app/past.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { aCrash } from '../../support/crash-record.ts'
import { tempFolder } from '../../support/folder.ts'

test('what an app has left is read without a master, and nothing of it is changed', () => {
  const folder = tempFolder()
  const history = openHistory({ file: path.join(folder, 'history.db') })
  const events = createEventStream()
  events.subscribe(history.record)
  for (let n = 1; n <= 80; n++) events.publish({ type: 'worker.exited', cause: 'crash', message: `worker ${n} died` })
  history.crashes.record('v1:1', aCrash({ errorMessage: 'no total' }), { culprit: null })
  history.close()
  mkdirSync(path.join(folder, 'logs'))
  writeFileSync(path.join(folder, 'logs', 'slot-1.stdout.log'), 'listening\n')
  writeFileSync(path.join(folder, 'logs', 'slot-1.stderr.log'),
    Array.from({ length: 100 }, (_, n) => `line ${n}\n`).join(''))
  writeFileSync(path.join(folder, 'logs', 'slot-2.stderr.log'), '')
  const before = readdirSync(folder).sort()
  const past = pastOfApp(folder)
  assert.deepEqual([past.events.length, past.events[0].message, past.crashes.map(({ message }) => message)], [60,
    'worker 80 died', ['no total']])
  assert.deepEqual([past.lines.length, past.lines[0], past.lines.at(-1)], [40, 'line 60', 'line 99'])
  assert.deepEqual(readdirSync(folder).sort().filter((name) => !/-(?:shm|wal)$/.test(name)),
    before.filter((name) => !/-(?:shm|wal)$/.test(name)))
})

test('an app that has never run, or whose files are none of ours, has left nothing', () => {
  const folder = tempFolder()
  const nothing = { events: [], crashes: [], lines: [] }
  assert.deepEqual([pastOfApp(folder), pastOfApp(path.join(folder, 'gone'))], [nothing, nothing])
  writeFileSync(path.join(folder, 'history.db'), 'no database')
  assert.deepEqual(pastOfApp(folder), nothing)
})
