import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWindow, networkOf } from '../../../server/admin/limiter.ts'

test('counts each sender apart, until the window ends', () => {
  let ms = 0
  const window = createWindow({ windowMs: 1000, now: () => ms })
  assert.deepEqual([window.count('a'), window.count('a'), window.count('b')], [1, 2, 1])
  window.forget('a')
  ms = 500
  assert.deepEqual([window.count('a'), window.restS()], [2, 1])
  ms = 1000
  assert.equal(window.count('a'), 1)
  ms = -7_200_000
  assert.deepEqual([window.count('a'), window.restS()], [1, 1], 'nobody waits for a clock that was set back')
})

test('senders of IPv6 are counted by the network that they can choose their addresses from, those of IPv4 by their address', () => {
  const cases = { '192.0.2.7': '192.0.2.7', '::ffff:192.0.2.7': '192.0.2.7',
    '2001:db8:1:2345::1': '2001:db8:1:2300::/56', '2001:db8:1:23ff:a:b:c:d': '2001:db8:1:2300::/56',
    '2001:db8::1': '2001:db8:0:0::/56', 'fe80::1%eth0': 'fe80:0:0:0::/56', '::1': '0:0:0:0::/56', '1::': '1:0:0:0::/56',
    '': '' }
  for (const [address, network] of Object.entries(cases)) assert.equal(networkOf(address), network, address)
})
