import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createAdoption } from '../../../server/cluster/adoption.ts'
import { holdsFileOf } from '../../../workers/protocol.ts'
import { clusterOf } from '../../support/cluster.ts'
import { fake } from '../../support/fake.ts'
import { tempFolder } from '../../support/folder.ts'

test('a worker that has ended while no master was there leaves no file, also where it was draining', () => {
  const folder = tempFolder()
  const orderFile = path.join(folder, '1.json')
  for (const file of [orderFile, holdsFileOf(orderFile)]) writeFileSync(file, '{}')
  const adopt = createAdoption(clusterOf({}), fake({ exits: { examine: (_, exit) => exit } }))
  // No process has that number.
  const identity = { pid: 2 ** 22 + 1, startTime: 'boot:1', crashFile: path.join(folder, 'crash'), orderFile }
  const { exit } = adopt(fake<Parameters<typeof adopt>[0]>({ id: 1, slot: 1, pid: identity.pid, identity }))
  assert.deepEqual([exit?.code, readdirSync(folder)], [null, []])
})
