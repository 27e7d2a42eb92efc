import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createInspectPorts } from '../../../server/cluster/inspect-ports.ts'
import { rows } from '../../support/rows.ts'

for (const [options, first] of rows(`
--inspect                                               | 9230
--inspect=9300                                          | 9300
--inspect=0.0.0.0:9300                                  | 9300
--inspect-brk=[::1]:9300                                | 9300
--inspect=localhost                                     | 9230
--inspect-port, 9300, --inspect                         | 9300
--max-old-space-size=4000,                              | 9230
, --no-warnings --inspect=127.0.0.1:9300 -r ./x:1.js    | 9300
--inspect=99999                                         | 9230
--inspect=0                                             | 0`))
  test(`${options}: the first worker listens on ${first}`, () => {
    assert.equal(createInspectPorts().take(1, options.split(',').map((word) => word.trim())), Number(first))
  })

test('each worker has the next port that no other one has, and one that ends makes way', () => {
  const ports = createInspectPorts()
  const take = (worker: number) => ports.take(worker, ['--inspect=0.0.0.0:9300'])
  assert.deepEqual([1, 2, 3].map(take), [9300, 9301, 9302])
  ports.left(1, { code: 0 })
  assert.deepEqual([4, 5].map(take), [9300, 9303])
  ports.left(2, { code: 12 })
  assert.equal(take(6), 9304, 'somebody else has 9301')
})
