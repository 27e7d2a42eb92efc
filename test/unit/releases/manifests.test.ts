import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readdirSync, realpathSync, rmSync, symlinkSync, utimesSync,
  writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { differencesBetween } from '../../../server/releases/file-differences.ts'
import { createManifests } from '../../../server/releases/manifests.ts'
import { tempFolder, writeFiles } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'
import type { Item } from '../../../server/releases/catalogue.ts'
import type { Release, Drift } from '../../../server/lifecycle/state.ts'
import type { Seen } from '../../support/event-log.ts'

/** Releases of one folder, which are deployed in turn. */
function manifests () {
  const folder = realpathSync(tempFolder())
  writeFiles(folder, { 'app.js': '', 'views/home.html': 'one' })
  const dataDir = { folder: path.join(folder, '.clusterdeck') }
  mkdirSync(dataDir.folder)
  const items: Map<string, Item> = new Map()
  const errors = [] as unknown[]
  const kept = createManifests({ dataDir,
    catalogue: { find: (id) => items.get(id), newestFirst: () => [...items.values()].reverse(), save () {} },
    onError: (error) => errors.push(error) })
  return { ...kept, folder, data: dataDir.folder, items, errors,
    async deploy (id: string,
      { left = [], mode = 'live', path: its = folder }: { left?: string[], mode?: Release['mode'], path?: string } = {})
    {
      const item = items.get(id) ?? fake<Item>({ release: { id, mode, path: its } })
      items.set(id, item)
      kept.note(item.release, left)
      await kept.settled()
    }, changeOf: (id: string) => items.get(id)?.rewritten as Seen<Drift> }
}

describe('the manifest of a release', () => {
  test('tells which files a later deploy from the same folder has changed, added and removed', async () => {
    const { folder, deploy, changeOf, errors } = manifests()
    writeFiles(folder, { 'views/old.html': '' })
    await deploy('r1')
    writeFiles(folder, { 'views/home.html': 'two', 'views/new.html': '', 'views/old.html': null })
    await deploy('r2')
    const { since, ...change } = changeOf('r1')
    assert.deepEqual(change, { kind: 'folder', count: 3, files: ['views/home.html', 'views/new.html', 'views/old.html'],
      by: null })
    assert.ok(Math.abs(Date.parse(since) - Date.now()) < 60_000)
    assert.deepEqual([changeOf('r2'), errors], [null, []])
    await deploy('r3')
    assert.deepEqual([changeOf('r1').count, changeOf('r2')], [3, null])
  })

  test('is known by a new master', async () => {
    const { folder, data, deploy } = manifests()
    await deploy('r1')
    writeFiles(folder, { 'views/home.html': 'two' })
    const items = new Map(['r1', 'r2'].map((id) => [id, fake<Item>({ release: { id, mode: 'live', path: folder } })]))
    const next = createManifests({ dataDir: { folder: data },
      catalogue: { find: (id) => items.get(id), newestFirst: () => [...items.values()], save () {} },
      onError: assert.ifError })
    next.note(items.get('r2')!.release, [])
    await next.settled()
    assert.deepEqual(items.get('r1')?.rewritten?.files, ['views/home.html'])
  })

  test('leaves out packages, .git, caches, the data folder and what is no part of a release', async () => {
    const { folder, data, deploy, changeOf } = manifests()
    await deploy('r1', { left: ['uploads/', 'app.db'] })
    writeFiles(folder, { 'node_modules/dep/index.js': '', '.git/HEAD': '', '.next/cache/a': '', 'uploads/a.png': '',
      'app.db': '' })
    writeFiles(data, { 'history.db': '' })
    await deploy('r2', { left: ['uploads/', 'app.db'] })
    assert.equal(changeOf('r1'), null)
  })

  test('counts a deploy of the same release as its own, and the others as changed by it', async () => {
    const { folder, deploy, changeOf } = manifests()
    await deploy('r1')
    writeFiles(folder, { 'views/home.html': 'two' })
    await deploy('r2')
    writeFiles(folder, { 'views/home.html': 'one' })
    await deploy('r1')
    assert.deepEqual([changeOf('r1'), changeOf('r2').files], [null, ['views/home.html']])
  })

  test('is not about another folder, nor about a copy', async () => {
    const { data, folder, deploy, changeOf } = manifests()
    await deploy('r1')
    writeFiles(folder, { 'views/home.html': 'two' })
    await deploy('r2', { mode: 'folder' })
    await deploy('r3', { path: realpathSync(tempFolder()) })
    assert.deepEqual([changeOf('r1'), readdirSync(path.join(data, 'manifests')).sort()], [null, ['r1.stamps.gz',
      'r3.stamps.gz']])
  })

  test('says that it is not known where the folder has too many files, cannot be read, or no list is kept', async () => {
    const { folder, data, deploy, changeOf, errors } = manifests()
    await deploy('r1')
    for (let at = 0; at <= 20_000; at++) writeFileSync(path.join(folder, 'views', String(at)), '')
    await deploy('r2')
    assert.equal(changeOf('r1').kind, 'unknown')
    assert.deepEqual([existsSync(path.join(data, 'manifests', 'r2.stamps.gz')), errors], [false, []])
    rmSync(path.join(folder, 'views'), { recursive: true })
    rmSync(path.join(data, 'manifests', 'r1.stamps.gz'))
    await deploy('r3')
    assert.deepEqual([changeOf('r1').kind, changeOf('r2').kind], ['unknown', 'unknown'])
  })

  test('is gone with its release', async () => {
    const { data, items, deploy, prune } = manifests()
    await deploy('r1')
    await deploy('r2')
    items.delete('r1')
    await prune()
    assert.deepEqual(readdirSync(path.join(data, 'manifests')), ['r2.stamps.gz'])
  })

  test('tells a preview what differs now', async () => {
    const { folder, items, deploy, since } = manifests()
    await deploy('r1')
    chmodSync(path.join(folder, 'app.js'), 0o755)
    writeFiles(folder, { 'a b\n.html': '' })
    assert.deepEqual(await since(items.get('r1')!.release, []), { added: ['a b\n.html'], changed: ['app.js'],
      removed: [] })
  })
})

describe('two folders', () => {
  function folders (one: Record<string, string>, other: Record<string, string>) {
    const [from, to, data] = Array.from({ length: 3 }, () => realpathSync(tempFolder()))
    writeFiles(from, one)
    writeFiles(to, other)
    return { from, to, parts: { left: ['data'], data } }
  }

  test('are compared by the content of their files, whatever their times are', async () => {
    const { from, to, parts } = folders({ same: 'a', other: 'b', longer: 'c', gone: '', 'data/a': '' }, { same: 'a',
      other: 'x', longer: 'cc', new: '' })
    utimesSync(path.join(to, 'same'), 1, 1)
    symlinkSync('same', path.join(from, 'link'))
    symlinkSync('same', path.join(to, 'link'))
    symlinkSync('same', path.join(from, 'turned'))
    symlinkSync('other', path.join(to, 'turned'))
    assert.deepEqual(await differencesBetween(from, to, parts), { added: ['new'],
      changed: ['longer', 'other', 'turned'], removed: ['gone'] })
  })

  test('that cannot be read are not known', async () => {
    const { from, to, parts } = folders({}, {})
    assert.equal(await differencesBetween(path.join(from, 'no'), to, parts), null)
  })
})
