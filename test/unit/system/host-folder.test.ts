import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { hostFolder } from '../../../server/system/host-folder.ts'

test('the folder of the host is the one that is named, else the place of the user for what programs keep', () => {
  assert.equal(hostFolder({ CLUSTERDECK_HOST_DIR: 'some/host', XDG_STATE_HOME: '/state', HOME: '/home/ada' }),
    path.resolve('some/host'))
  assert.equal(hostFolder({ XDG_STATE_HOME: '/state', HOME: '/home/ada' }), '/state/clusterdeck')
  for (const XDG_STATE_HOME of ['', 'relative', undefined])
    assert.equal(hostFolder({ XDG_STATE_HOME, HOME: '/home/ada' }), '/home/ada/.local/state/clusterdeck')
})
