import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import module from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { tempFolder } from '../../support/folder.ts'

const PRELOAD = fileURLToPath(new URL('../../../dist/preload.cjs', import.meta.url))
const SEES =
  'console.log(JSON.stringify([process.env.TAKEN ?? null, process.execArgv, Object.keys(require.cache), require("node:module").getCompileCacheDir?.() ?? null]))'
const run = promisify(execFile)

/** @returns what an app finds in a worker */
async function seenBy (
  settings: { code: string, compileCache: string | null }
): Promise<[taken: string | null, options: string[], cached: string[], compileCache: string | null]> {
  const { stdout } = await run(process.execPath, ['--require', PRELOAD, '-e', SEES], {
    env: { CLUSTERDECK_BOOT: JSON.stringify(settings) }
  })
  return JSON.parse(stdout)
}

test('a worker loads its side from the file that its master names, and from that of a later version once that is gone; the app sees nothing of it', async () => {
  const folder = tempFolder()
  const code = path.join(folder, 'worker.cjs')
  writeFileSync(code, 'process.env.TAKEN = "yes"')
  const [taken, gone] = await Promise.all(
    [code, path.join(folder, 'gone.cjs')].map((file) => seenBy({ code: file, compileCache: null }))
  )
  assert.deepEqual(taken, ['yes', ['-e', SEES], [], null])
  assert.deepEqual(gone, [null, ['-e', SEES], [], null])
})

test('Node keeps what it compiles in the folder that the master names, where it can', async () => {
  const folder = path.join(tempFolder(), 'compile-cache')
  const [, , , used] = await seenBy({ code: '', compileCache: folder })
  if ('enableCompileCache' in module) assert.ok(used?.startsWith(folder), String(used))
  else assert.equal(used, null)
})
