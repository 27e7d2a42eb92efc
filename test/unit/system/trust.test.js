import assert from 'node:assert/strict'
import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { openDataDir } from '../../../server/system/data-dir.js'
import { whyDistrusted, whyFolderDistrusted, whyProgramDistrusted } from '../../../server/system/trust.js'
import { tempFolder } from '../../support/folder.js'

const OTHER = 54321
const isRoot = process.geteuid?.() === 0
const notRoot = !isRoot && 'only root can give a file away'
const noOwners = !process.geteuid && 'this system knows no owners'

/** @param {string} name @param {number} [mode] */
function file (name, mode = 0o600) {
  const made = path.join(tempFolder(), name)
  writeFileSync(made, '')
  chmodSync(made, mode)
  return made
}

describe('trust', { skip: noOwners }, () => {
  test('a file is trusted that its user alone can write, read by whomever', () => {
    for (const mode of [0o600, 0o644, 0o755]) assert.equal(whyDistrusted(file('f', mode)), null)
  })

  test('one that others can write is not', () => {
    for (const mode of [0o620, 0o602, 0o777]) assert.match(String(whyDistrusted(file('f', mode))), /^can be written by others \(mode 0\d+\)$/)
  })

  test('one that belongs to somebody else is not, nor one behind a link of somebody else', { skip: notRoot }, () => {
    const theirs = file('theirs')
    chownSync(theirs, OTHER, OTHER)
    assert.match(String(whyDistrusted(theirs)), /^belongs to another user \(uid 54321, this process has 0\)$/)
    const link = path.join(tempFolder(), 'link')
    symlinkSync(file('ours'), link)
    assert.equal(whyDistrusted(link), null)
    lchownSync(link, OTHER, OTHER)
    assert.match(String(whyDistrusted(link)), /^belongs to another user/)
  })

  test('in a folder that others can enter nothing may be theirs to write, nor a secret theirs to read', () => {
    const folder = tempFolder()
    writeFileSync(path.join(folder, 'token'), '')
    chmodSync(path.join(folder, 'token'), 0o644)
    assert.equal(whyFolderDistrusted(folder, ['token']), null, 'nobody can enter')
    chmodSync(folder, 0o755)
    assert.match(String(whyFolderDistrusted(folder, ['token'])), /token can be read by others \(mode 0644\)$/)
    chmodSync(path.join(folder, 'token'), 0o600)
    assert.equal(whyFolderDistrusted(folder, ['token']), null)
    mkdirSync(path.join(folder, 'logs'))
    chmodSync(path.join(folder, 'logs'), 0o777)
    assert.match(String(whyFolderDistrusted(folder, ['token'])), /logs can be written by others \(mode 0777\)$/)
  })

  test('a program is no better than the folders above it', () => {
    const program = file('node', 0o755)
    assert.equal(whyProgramDistrusted(program), null)
    chmodSync(path.dirname(program), 0o777)
    assert.match(String(whyProgramDistrusted(program)), /can be written by others/)
    chmodSync(path.dirname(program), 0o1777)
    assert.equal(whyProgramDistrusted(program), null, 'there nobody can replace it')
  })

  test('a data folder that others can write is refused in one line, as it is', () => {
    const folder = tempFolder()
    chmodSync(folder, 0o770)
    assert.throws(() => openDataDir(folder), { code: 'data-dir-unusable', message: `dataDir: expected a folder that only its user can write, but ${folder} can be written by others (mode 0770); correct that, or choose another folder (--data-dir)` })
    chmodSync(folder, 0o700)
    openDataDir(folder)
  })

  test('so is one in which somebody else has left a token', { skip: notRoot }, () => {
    const folder = tempFolder()
    writeFileSync(path.join(folder, 'admin.token'), 'planted')
    chownSync(path.join(folder, 'admin.token'), OTHER, OTHER)
    assert.throws(() => openDataDir(folder), { code: 'data-dir-unusable', message: /admin\.token belongs to another user \(uid 54321/ })
  })
})
