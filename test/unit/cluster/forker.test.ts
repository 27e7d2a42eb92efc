import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createForker, slotVariableNamesOf } from '../../../server/cluster/forker.ts'
import { loadConfig } from '../../../server/config/config.ts'
import { slotVariables } from '../../../workers/protocol.ts'
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

type Variables = Record<string, string | undefined>
/** who says it, of the variables of the configuration and of the shell, and whether that is the app's own then */
const SAID: Record<string, [own: Variables, inherited: Record<string, string>, isSaid: boolean]> = {
  'nobody has said it': [{}, {}, false],
  'the configuration says it': [{ NODE_APP_INSTANCE: 'emea' }, {}, true],
  'null in the configuration leaves it out': [{ NODE_APP_INSTANCE: undefined }, { NODE_APP_INSTANCE: '0', pm_id: '0' },
    true],
  'the shell says it': [{}, { NODE_APP_INSTANCE: 'emea' }, true],
  'PM2 has numbered the command': [{}, { NODE_APP_INSTANCE: '0', pm_id: '0' }, false],
  'a worker has started the command': [{}, { NODE_APP_INSTANCE: '1', CLUSTERDECK_SLOT: '2' }, false]
}
for (const [what, [own, inherited, isSaid]] of Object.entries(SAID))
  test(`NODE_APP_INSTANCE: ${what}`, () =>
    assert.deepEqual(slotVariableNamesOf('NODE_APP_INSTANCE', own, inherited),
      isSaid ? ['CLUSTERDECK_SLOT'] : ['CLUSTERDECK_SLOT', 'NODE_APP_INSTANCE']))

test('CLUSTERDECK_SLOT is left out by null alone: the slot is ours to say', () => {
  assert.deepEqual(slotVariableNamesOf('NODE_APP_INSTANCE', { CLUSTERDECK_SLOT: undefined }, {}), ['NODE_APP_INSTANCE'])
  assert.deepEqual(slotVariableNamesOf('NODE_APP_INSTANCE', { CLUSTERDECK_SLOT: '9' }, { CLUSTERDECK_SLOT: '9' }), [
    'CLUSTERDECK_SLOT',
    'NODE_APP_INSTANCE'
  ])
})

test('the variable that the configuration names counts from 0 in place of NODE_APP_INSTANCE, which is as it was inherited', () => {
  const names = slotVariableNamesOf('INSTANCE_ID', {}, { NODE_APP_INSTANCE: 'emea' })
  assert.deepEqual(slotVariables(2, names), { CLUSTERDECK_SLOT: '2', INSTANCE_ID: '1' })
  assert.deepEqual(slotVariables(null, names), { CLUSTERDECK_SLOT: undefined, INSTANCE_ID: undefined })
  assert.deepEqual(slotVariableNamesOf('INSTANCE_ID', { INSTANCE_ID: 'mine' }, {}), ['CLUSTERDECK_SLOT'])
})
