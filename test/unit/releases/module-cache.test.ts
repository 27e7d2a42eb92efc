import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createModuleCache } from '../../../server/releases/module-cache.ts'
import { tempFolder, writeFiles } from '../../support/folder.ts'

const BUILD = { text: 'yarn install', install: { command: ['yarn', 'install'], folder: '', key: 'all-that-decides' },
  command: null, isGuess: true, lock: { name: 'yarn.lock', digest: 'sha256:0123456789abcdef' } }
const APP = { 'app.js': '', 'lib/total.js': '' }

test('keeps all that an install has made, also beside node_modules as with Yarn Plug\'n\'Play, and nothing else', async () => {
  const [releaseFolder, first, second, shared] = [tempFolder(), tempFolder(), tempFolder(), tempFolder()]
  const modules = createModuleCache({ releaseFolder, onError: assert.ifError })
  const name = String(
    await modules.nameOf(BUILD, { names: Object.keys(APP), read: async () => null, nodeVersion: process.versions.node })
  )
  writeFiles(first, { ...APP, '.pnp.cjs': 'map', '.yarn/cache/express.zip': 'zip',
    'lib/node_modules/answer/index.js': '42' })
  symlinkSync(shared, path.join(first, 'uploads'))
  await modules.take(name, { id: 'r1', top: first, files: Object.keys(APP), except: [path.join(first, 'uploads')] })
  await modules.keep(name, 'r1')

  writeFiles(second, APP)
  const filled = await modules.fill(name, second)
  assert.equal(readFileSync(path.join(second, '.pnp.cjs'), 'utf8'), 'map')
  assert.equal(readFileSync(path.join(second, '.yarn/cache/express.zip'), 'utf8'), 'zip')
  const inode = (top: string) => statSync(path.join(top, 'lib/node_modules/answer/index.js')).ino
  assert.equal(inode(second), inode(first))
  assert.equal(existsSync(path.join(second, 'uploads')), false)
  assert.equal(await modules.isUntouched(name, { id: 'r2', digest: String(filled?.digest) }), true)
})

test('gives nothing to a commit that has files or links of its own in the place of what is kept', async () => {
  const [releaseFolder, first] = [tempFolder(), tempFolder()]
  const modules = createModuleCache({ releaseFolder, onError: assert.ifError })
  const name = String(
    await modules.nameOf(BUILD, { names: Object.keys(APP), read: async () => null, nodeVersion: process.versions.node })
  )
  writeFiles(first, { ...APP, '.pnp.cjs': 'map', 'lib/node_modules/answer/index.js': '42' })
  await modules.take(name, { id: 'r1', top: first, files: Object.keys(APP), except: [] })
  await modules.keep(name, 'r1')

  const [withFile, withLink] = [tempFolder(), tempFolder()]
  writeFiles(withFile, { ...APP, '.pnp.cjs': 'of the commit' })
  symlinkSync(tempFolder(), path.join(withLink, 'lib'))
  assert.deepEqual([await modules.fill(name, withFile), await modules.fill(name, withLink)], [null, null])
  assert.equal(readFileSync(path.join(withFile, '.pnp.cjs'), 'utf8'), 'of the commit')
})
