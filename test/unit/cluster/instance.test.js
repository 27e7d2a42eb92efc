import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInstanceSaid } from '../../../server/cluster/forker.js'

for (const [what, own, inherited, isSaid] of /** @type {[string, Record<string, string | undefined>, Record<string, string>, boolean][]} */ ([
  ['nobody has said it', {}, {}, false],
  ['the configuration says it', { NODE_APP_INSTANCE: 'emea' }, {}, true],
  ['null in the configuration leaves it out', { NODE_APP_INSTANCE: undefined }, { NODE_APP_INSTANCE: '0', pm_id: '0' }, true],
  ['the shell says it', {}, { NODE_APP_INSTANCE: 'emea' }, true],
  ['PM2 has numbered the command', {}, { NODE_APP_INSTANCE: '0', pm_id: '0' }, false],
  ['a worker has started the command', {}, { NODE_APP_INSTANCE: '1', CLUSTERDECK_SLOT: '2' }, false]
])) {
  test(`NODE_APP_INSTANCE: ${what}`, () => assert.equal(isInstanceSaid(own, inherited), isSaid))
}
