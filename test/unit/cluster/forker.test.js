import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createForker } from '../../../server/cluster/forker.js'
import { loadConfig } from '../../../server/config/config.js'
import { tempFolder } from '../../support/folder.js'

test('a worker that the system does not start leaves no control group behind', async () => {
  const folder = tempFolder()
  const entry = import.meta.filename
  const current = await loadConfig({ flags: { entry, args: ['x'.repeat(4 * 1024 * 1024)] }, env: {}, cwd: folder })
  const seen = { opened: 0, ended: 0 }
  const fork = createForker({ current }, {
    crashFolder: folder,
    orderFolder: folder,
    outlives: () => false,
    logs: /** @type {any} */ ({ open: () => ({ stdout: 'inherit', stderr: 'inherit', close () {} }) }),
    groups: { open: () => ({ enter () {}, end: () => Boolean(++seen.ended), opened: ++seen.opened }) }
  })
  const hooks = /** @type {any} */ ({})
  assert.throws(() => fork({ worker: 1, slot: 1, release: { id: 'r1', createdAt: '', entry, path: folder } }, hooks), { code: 'E2BIG' })
  assert.deepEqual(seen, { opened: 1, ended: 1 })
})
