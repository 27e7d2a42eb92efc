import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startDeck } from '../support/deck.ts'
import { openNotifySocket, withoutNativeCalls } from '../support/service-manager.ts'

const WATCHDOG_MS = 400
const COUNT = 8

test('the watchdog of a service manager is fed at half its time', { skip: withoutNativeCalls }, async (t) => {
  const receiver = openNotifySocket(t)
  await startDeck(t, 'answers-with-pid.js', { workers: 1,
    env: { NOTIFY_SOCKET: receiver.name, WATCHDOG_USEC: String(1000 * WATCHDOG_MS) } })
  await receiver.until('READY=1')
  const from = receiver.times('WATCHDOG=1').length
  await receiver.until('WATCHDOG=1', from + COUNT)
  const times = receiver.times('WATCHDOG=1').slice(from, from + COUNT)
  const meanMs = (times[COUNT - 1] - times[0]) / (COUNT - 1)
  t.diagnostic(`${meanMs.toFixed(1)} ms apart`)
  assert.ok(meanMs > 190 && meanMs < WATCHDOG_MS, `${meanMs} ms`)
})
