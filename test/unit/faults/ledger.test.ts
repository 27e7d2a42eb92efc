import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { openLedger } from '../../faults/ledger.ts'
import { tempFolder } from '../../support/folder.ts'

test('who has accepted a connection before its ports came back does not have the new one', (t) => {
  const file = path.join(tempFolder(), 'ledger')
  const ledger = openLedger(file)
  t.after(ledger.close)
  const clock = () => Math.floor(Number(process.hrtime.bigint()) / 1e6)
  appendFileSync(file, `connection 80:5000 77 ${clock() - 1000}\n`)
  const exchange = { id: 'fresh-1', connection: '80:5000', startedAt: performance.now() }
  assert.equal(ledger.read().ownerOf({ ...exchange, isFirst: true }), undefined)
  assert.equal(ledger.ownerOf({ ...exchange, isFirst: false }), 77)
  appendFileSync(file, `connection 80:5000 78 ${clock()}\nrequest fresh-2 79 ${clock()}\n`)
  assert.equal(ledger.read().ownerOf({ ...exchange, isFirst: true }), 78)
  assert.equal(ledger.ownerOf({ ...exchange, id: 'fresh-2', isFirst: true }), 79)
})
