import assert from 'node:assert/strict'
import { statSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { makeFolders } from '../../../server/system/make-folders.ts'
import { tempFolder } from '../../support/folder.ts'

test('a folder is made with those above it, and one that is there, or that a link leads to, stays as it is', () => {
  const top = tempFolder()
  const folder = path.join(top, 'a', 'b', 'c')
  makeFolders(folder, 0o700)
  assert.deepEqual(['a', 'a/b', 'a/b/c'].map((name) => statSync(path.join(top, name)).mode & 0o777), [0o700, 0o700,
    0o700])
  symlinkSync('a', path.join(top, 'link'))
  for (const each of [folder, path.join(top, 'link'), '/']) makeFolders(each)
})

test('a folder that cannot be made is refused, also where the system makes none at all', () => {
  const file = path.join(tempFolder(), 'file')
  writeFileSync(file, '')
  assert.throws(() => makeFolders(file), { code: 'EEXIST' })
  assert.throws(() => makeFolders(path.join(file, 'below')), { code: 'ENOTDIR' })
  if (process.platform === 'linux') assert.throws(() => makeFolders('/proc/nothing/below'), { code: 'ENOENT' })
})
