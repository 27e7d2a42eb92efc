import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { globalConfig } from 'zod/v4/core'
import { LENGTH_BYTES, LOADER } from '../../../server/system/built-in-bundle.ts'
import { tempFolder } from '../../support/folder.ts'

type Bundled = typeof import('../../../server/system/built-in-bundle.ts')
type Site = { said: string, times: number }

const SOURCE = fileURLToPath(new URL('../../../server/system/built-in-bundle.ts', import.meta.url))
const PART =
  'globalThis.partTimes = (globalThis.partTimes ?? 0) + 1\nglobalThis.__zod_globalConfig ??= {}\nexports.word = "part"'
const SITES = 'const { word } = require("./part.cjs")\nconst { sep } = require("node:path")\n' +
  'if (globalThis.isFull) throw new Error("ENOSPC")\nexports.said = word + sep\nexports.times = globalThis.partTimes'

/** As a bundle has them: the module, and beside it the file that the module holds open. `end`: of that file */
async function openBundle (files: Record<string, string>, end?: number): Promise<{ built: Bundled, pack: string }> {
  const folder = tempFolder()
  let from = 0
  const places = Object.entries(files).map(([name, text]) => {
    const place = [from, Buffer.byteLength(text)]
    from += place[1]
    return [name, place]
  })
  const list = JSON.stringify({ places: Object.fromEntries(places), site: ['part.cjs', 'sites.cjs'] })
  const pack = path.join(folder, 'pack')
  writeFileSync(pack,
    (String(Buffer.byteLength(list)).padEnd(LENGTH_BYTES) + list + Object.values(files).join('')).slice(0, end))
  writeFileSync(path.join(folder, `${LOADER}.cjs`), '')
  const copy = path.join(folder, 'built-in-bundle.ts')
  copyFileSync(SOURCE, copy)
  return { built: await import(pathToFileURL(copy).href), pack }
}

test('texts and code come from the file that is held open, also once that file is gone', async () => {
  const { built, pack } = await openBundle({ 'views/a.eta': 'für alle', 'part.cjs': PART, 'sites.cjs': SITES })
  built.holdFiles()
  rmSync(pack)
  assert.equal(built.heldText('views/a.eta'), 'für alle')
  assert.throws(() => built.heldText('views/b.eta'), /^Error: views\/b\.eta is no part of this version$/)
  Object.assign(globalThis, { partTimes: 0 })
  const first = await built.loadSite() as Site
  assert.equal(first.said, `part${path.sep}`)
  assert.equal(await built.loadSite(), first)
  built.dropSite()
  assert.equal((await built.loadSite() as Site).times, 2, 'each file has run anew')
  assert.equal(Reflect.get(globalThis, '__zod_globalConfig'), globalConfig, 'zod of others keeps what is its own')
})

test('code that failed while it was loaded is loaded anew, and not taken half', async (t) => {
  const { built } = await openBundle({ 'part.cjs': PART, 'sites.cjs': SITES })
  t.after(() => Reflect.deleteProperty(globalThis, 'isFull'))
  Object.assign(globalThis, { isFull: true })
  await assert.rejects(built.loadSite(), /ENOSPC/)
  Object.assign(globalThis, { isFull: false })
  assert.equal((await built.loadSite() as Site).said, `part${path.sep}`)
})

test('a file that is cut off is told', async () => {
  const { built, pack } = await openBundle({ 'part.cjs': PART, 'sites.cjs': SITES }, 200)
  await assert.rejects(built.loadSite(), { message: `${pack} is cut off` })
})

test('what was compiled is kept for the next process, and compiled anew where it is damaged', async () => {
  const { pack } = await openBundle({ 'part.cjs': PART, 'sites.cjs': SITES })
  const cache = tempFolder()
  const script = `const { loadSite } = await import('./built-in-bundle.ts')
    console.log((await loadSite()).said)
    const { readdirSync } = await import('node:fs')
    const { watch } = await import('node:fs/promises')
    const { getCompileCacheDir } = await import('node:module')
    const kept = () => readdirSync(getCompileCacheDir()).filter((name) => /-(part|sites)\\.cjs$/.test(name)).length === 2
    const changes = watch(getCompileCacheDir())
    if (!kept()) for await (const _ of changes) if (kept()) break`
  const load = () =>
    execFileSync(process.execPath, ['--input-type=module', '--eval', script], { cwd: path.dirname(pack),
      env: { ...process.env, NODE_COMPILE_CACHE: cache }, encoding: 'utf8' }).trim()
  assert.equal(load(), `part${path.sep}`)
  writeFileSync(pack, readFileSync(pack, 'utf8').replace('word = "part"', 'word = "anew"'))
  assert.equal(load(), `part${path.sep}`, 'V8 takes code of the same length for the same')
  for (const name of readdirSync(cache, { recursive: true, encoding: 'utf8' }))
    if (name.endsWith('-part.cjs')) truncateSync(path.join(cache, name), 100)
  assert.equal(load(), `anew${path.sep}`)
})
