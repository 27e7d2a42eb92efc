import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { boundCompileCache } from '../../../server/cluster/compile-cache.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'

test('a folder of compiled code that has grown too large is emptied after a start, and one that has not is kept', async () => {
  const [large, small] = [1001, 1000].map((bytes) => {
    const folder = path.join(tempFolder(), 'compile-cache')
    mkdirSync(path.join(folder, 'v24'), { recursive: true })
    writeFileSync(path.join(folder, 'v24', 'file'), Buffer.alloc(bytes))
    return folder
  })
  for (const folder of [small, large, '/no/such/folder']) boundCompileCache(folder, { maxBytes: 1000, afterMs: 0 })
  await until(() => !existsSync(large), 'the large one to go')
  await wait(0)
  assert.ok(existsSync(small))
})
