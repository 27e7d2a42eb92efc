import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createForker } from '../../../server/cluster/forker.ts'
import { loadConfig } from '../../../server/config/config.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'

test('a worker that the system does not start leaves no control group behind', async () => {
  const folder = tempFolder()
  const entry = import.meta.filename
  const current = await loadConfig({ flags: { entry, args: ['x'.repeat(4 * 1024 * 1024)] }, env: {}, cwd: folder })
  const seen = { opened: 0, ended: 0 }
  const fork = createForker({ current }, { crashFolder: folder, orderFolder: folder, outlives: () => false,
    logs: { open: () => ({ stdout: 1, stderr: 2, close () {} }), ended () {} },
    groups: { open: () => ({ enter () {}, end: () => Boolean(++seen.ended), opened: ++seen.opened }) } })
  const hooks = fake<Parameters<typeof fork>[1]>({})
  assert.throws(() => fork({ worker: 1, slot: 1, release: { id: 'r1', createdAt: '', entry, path: folder } }, hooks), {
    code: 'E2BIG'
  })
  assert.deepEqual(seen, { opened: 1, ended: 1 })
})
