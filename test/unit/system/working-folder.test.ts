import assert from 'node:assert/strict'
import { mkdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { existingFolder, pinPath, workingFolder } from '../../../server/system/working-folder.ts'
import { tempFolder } from '../../support/folder.ts'

const gone = () => {
  throw Object.assign(new Error('uv_cwd'), { code: 'ENOENT' })
}

test('a folder has the name by which a shell has come there, as long as that leads there', () => {
  const top = realpathSync(tempFolder())
  for (const name of ['1', '2']) mkdirSync(path.join(top, name))
  const link = path.join(top, 'current')
  symlinkSync('1', link)
  const real = path.join(top, '1')
  const of = (PWD: string | undefined) => workingFolder({ env: { PWD }, cwd: () => real })
  assert.deepEqual(of(link), { named: link, real })
  assert.deepEqual(of(`${link}/../current/`), { named: link, real })
  for (const other of [path.join(top, '2'), path.join(top, 'none'), 'current', '', undefined])
    assert.deepEqual(of(other), { named: real, real }, other)
})

test('a folder where a service manager starts a program has the name that a path of its command leads to it by', () => {
  const top = realpathSync(tempFolder())
  for (const name of ['1', '2', '1/web']) mkdirSync(path.join(top, name))
  const link = path.join(top, 'current')
  symlinkSync('1', link)
  const real = path.join(top, '1', 'web')
  const of = (...words: string[]) => workingFolder({ env: {}, cwd: () => real, words }).named
  const named = path.join(link, 'web')
  for (const words of [['start', path.join(named, 'app.js')], [named], [`--config=${named}/deck.json`], ['--data-dir',
    '/var/lib/app', path.join(named, 'node_modules', '.bin', 'next')]])
    assert.equal(of(...words), named, words.join(' '))
  for (const words of [[], ['app.js'], [path.join(top, '2', 'app.js')], [path.join(link, 'app.js')]])
    assert.equal(of(...words), real, words.join(' '))
  assert.equal(workingFolder({ env: { PWD: real }, cwd: () => real, words: [named] }).named, real,
    'what the shell says counts more')
})

test('one that has been removed keeps its name, and the nearest folder above it stands in', () => {
  const top = tempFolder()
  const folder = path.join(top, 'a', 'b')
  assert.deepEqual(workingFolder({ env: { PWD: folder }, cwd: gone }), { named: folder, real: folder })
  assert.deepEqual(workingFolder({ env: {}, cwd: gone }), { named: '/', real: '/' })
  assert.equal(existingFolder(folder), top)
  mkdirSync(folder, { recursive: true })
  assert.equal(existingFolder(folder), folder)
  rmSync(top, { recursive: true })
})

test('what is named below a link stays where that led, and nothing else is moved', () => {
  const from = { named: '/srv/current', real: '/srv/releases/1' }
  assert.equal(pinPath('/srv/current/.clusterdeck', from), '/srv/releases/1/.clusterdeck')
  for (const other of ['/srv/current-data', '/var/lib/app', '/srv']) assert.equal(pinPath(other, from), other)
})
