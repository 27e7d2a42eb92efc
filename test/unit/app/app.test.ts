import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import v8 from 'node:v8'
import vm from 'node:vm'
import { openApp } from '../../../server/app/app.ts'
import { configFromOptions } from '../../../server/config/config.ts'
import { connectKeeper } from '../../../server/keeper/link.ts'
import { createClosers } from '../../../server/system/closers.ts'
import { openDataDir } from '../../../server/system/data-dir.ts'
import { createTerminal } from '../../../server/terminal.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import { fake } from '../../support/fake.ts'

const TIMES = Number(process.env.TIMES ?? 100)
/** The first ones fill caches of Node, SQLite and the compiler. */
const WARMUP = 20

test('an app that is made and ended again and again leaves nothing in its process: no descriptor, listener, timer or memory', async () => {
  v8.setFlagsFromString('--expose-gc')
  const collectGarbage = vm.runInNewContext('gc') as () => void
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'app.js'), '')
  const config = await configFromOptions({ entry: 'app.js', workers: 1, dataDir: 'data', logs: { mirror: 'off' },
    alerts: [{ kind: 'webhook', url: 'https://example.com/hook', secret: 'a secret of the receiver' }] }, {
    cwd: folder
  })
  const keeper = await connectKeeper({})
  const terminal = createTerminal({ stdout: process.stdout, stderr: process.stderr })
  const log = { error (fields: { err?: Error }) {
    throw fields.err
  }, warn () {}, fatal () {}, close () {} }

  for (let n = 0; n < WARMUP; n++) await makeAndEnd()
  const before = await countLeft()
  for (let n = 0; n < TIMES; n++) await makeAndEnd()
  let after = await countLeft()
  // What closes by itself may take longer than a moment.
  await until(async () => {
    after = await countLeft()
    return after.descriptors <= before.descriptors && after.listeners <= before.listeners &&
      after.resources <= before.resources
  }, () => `${JSON.stringify(after)} to become ${JSON.stringify(before)}`, { patienceMs: 20_000 })
  const perApp = (after.heapBytes - before.heapBytes) / TIMES
  assert.ok(perApp < 10_000, `each leaves ${Math.round(perApp)} bytes of heap`)

  async function makeAndEnd () {
    const closers = createClosers()
    const dataDir = openDataDir(config.dataDir)
    const app = await openApp({ config, reload: async () => config, dataDir, environment: {}, order: null,
      source: () => ({ order: null, inherited: {} }),
      runs: fake({ read: () => null, save () {}, stored: async () => {}, isStored: () => true }) }, { keeper, closers,
      log, terminal, streams: process, software: { version: '0.0.0', nodeVersion: process.version },
      others: fake({ list: () => [] }), fleet: () => null, joinsFleet: false, turns: null, rolloutTurns: null,
      isShared: false, publicUrl: () => null,
      upgrade: { join: () => () => {}, begin: () => assert.fail('this app has no host') } })
    assert.equal(app.deck.snapshot().state, 'starting')
    await closers.close()
  }

  async function countLeft () {
    await new Promise((resolve) => setTimeout(resolve, 50))
    collectGarbage()
    return { descriptors: readdirSync('/proc/self/fd').length,
      listeners: process.eventNames().reduce((sum, name) => sum + process.listenerCount(name), 0),
      resources: process.getActiveResourcesInfo().filter((name) => name !== 'Timeout').length,
      heapBytes: process.memoryUsage().heapUsed }
  }
})
