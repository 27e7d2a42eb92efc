import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connectionsHint } from '../../../server/cluster/connections-hint.ts'

test('a worker that ends as its database takes no more connections is told what to do, by whatever it says', () => {
  for (const why of ['sorry, too many clients already', 'FATAL:  sorry, too many clients already',
    'ER_CON_COUNT_ERROR: Too many connections', 'Too many open connections',
    'remaining connection slots are reserved for roles with the SUPERUSER attribute',
    'ERR max number of clients reached', 'MaxClientsInSessionMode: max clients reached',
    'no more connections allowed (max_client_conn)', 'error code 53300'])
  {
    assert.match(String(connectionsHint(why, { isBesideOther: true })), /rollout\.surge.*rollout\.order: stop-first/,
      why)
    assert.match(String(connectionsHint(why, { isBesideOther: false })), /run fewer workers$/, why)
  }
  for (const why of ['too many requests', 'connect ECONNREFUSED 10.0.0.7:5432', 'order 1533001 is not known'])
    assert.equal(connectionsHint(why, { isBesideOther: true }), null, why)
})
