import assert from 'node:assert/strict'
import os from 'node:os'
import { test } from 'node:test'
import { decksTable } from '../../../server/cli/decks-table.ts'
import { findPm2 } from '../../../server/import/running-pm2.ts'
import { homeFolder } from '../../../server/system/home-folder.ts'
import { unitFolder } from '../../../server/systemd/installation.ts'

test('a user that no passwd knows has no home folder, which is no error where none is needed, and a clear one where it is', async (t) => {
  t.mock.method(os, 'homedir', () => {
    throw new Error('A system error occurred: uv_os_homedir returned ENOENT')
  })
  assert.deepEqual([homeFolder({}), homeFolder({ HOME: '/home/u' })], [null, '/home/u'])
  const row = { name: 'shop', dataDir: '/srv/shop/.clusterdeck', adminUrl: null, answer: null }
  assert.match(decksTable([row], { now: 0, home: homeFolder({}), hasFolders: true }), /shop/)
  assert.throws(() => unitFolder('user', {}), { code: 'not-possible', message: /^expected XDG_CONFIG_HOME or HOME/ })
  assert.equal(unitFolder('user', { XDG_CONFIG_HOME: '/etc/u' }), '/etc/u/systemd/user')
  await assert.rejects(findPm2({ env: {}, cwd: '/' }), { code: 'not-possible',
    message: /^--pm2: expected PM2_HOME or HOME/ })
})
