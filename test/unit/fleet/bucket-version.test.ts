import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createBucketVersion } from '../../../server/fleet/bucket-version.ts'
import { fake } from '../../support/fake.ts'
import type { Connection } from '../../../server/fleet/nats-connection.ts'

test('the version of the bucket is asked for once for all apps of a host, and not where there is none', async () => {
  let beat: () => unknown = () => {}
  let asked = 0
  let isAway = false
  const nats = fake<Connection>({ async call () {
    asked++
    return isAway ? { is: 'away', reason: 'gone' } : { is: 'done', value: 7 }
  } })
  const bucketVersion = createBucketVersion({ nats, timers: fake({ setInterval (work) {
    beat = work
  }, clearInterval () {} }) })
  await beat()
  assert.equal(asked, 0)
  const told: (string | number | null)[] = []
  const leave = bucketVersion.follow((version) => told.push('shop', version))
  bucketVersion.follow((version) => told.push('mail', version))
  await beat()
  assert.deepEqual([asked, told], [1, ['shop', 7, 'mail', 7]])
  leave()
  isAway = true
  await beat()
  assert.deepEqual([asked, told.slice(4)], [2, ['mail', null]])
})
