import assert from 'node:assert/strict'
import { chmodSync, chownSync, existsSync, lchownSync, mkdirSync, readdirSync, readFileSync, symlinkSync,
  writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { openDataDir } from '../../../server/system/data-dir.ts'
import { fallbackFolders } from '../../../server/system/fallback-folder.ts'
import { runtimeFolder, runningDecks } from '../../../server/system/running-decks.ts'
import { hasOthers, whyDistrusted, whyFolderDistrusted, whyPathDistrusted, whyPlaceDistrusted,
  whyProgramDistrusted } from '../../../server/system/trust.ts'
import { tempFolder } from '../../support/folder.ts'
import { lacksSmallDisk, smallDisk } from '../../support/small-disk.ts'

const OTHER = 54321
const isRoot = process.geteuid?.() === 0
const notRoot = !isRoot && 'only root can give a file away'
const noOwners = !process.geteuid && 'this system knows no owners'

function file (name: string, mode: number = 0o600) {
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
    for (const mode of [0o620, 0o602, 0o777])
      assert.match(String(whyDistrusted(file('f', mode))), /^can be written by others \(mode 0\d+\)$/)
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
    assert.throws(() => openDataDir(folder), { code: 'data-dir-unusable',
      message:
        `dataDir: expected a folder that only its user can write, but ${folder} can be written by others (mode 0770); correct that, or choose another folder (--data-dir)` })
    chmodSync(folder, 0o700)
    openDataDir(folder)
  })

  test('so is one in which somebody else has left a token', { skip: notRoot }, () => {
    const folder = tempFolder()
    writeFileSync(path.join(folder, 'admin.token'), 'planted')
    chownSync(path.join(folder, 'admin.token'), OTHER, OTHER)
    assert.throws(() => openDataDir(folder), { code: 'data-dir-unusable',
      message: /admin\.token belongs to another user \(uid 54321/ })
  })

  test('so is one below a folder of somebody else, who could put another one in its place, and nothing is made there', {
    skip: notRoot
  }, () => {
    const home = theirs()
    assert.throws(() => openDataDir(path.join(home, 'app', 'data')), { code: 'data-dir-unusable',
      message:
        `dataDir: expected a folder that only its user can write, but ${home} belongs to another user (uid 54321, this process has 0); correct that, or choose another folder (--data-dir)` })
    assert.deepEqual(readdirSync(home), [])
  })

  test('a path is no better than any folder or link on the way', { skip: notRoot }, () => {
    const folder = tempFolder()
    const way = path.join(folder, 'a', 'b')
    mkdirSync(path.join(way, 'c'), { recursive: true })
    assert.equal(whyPathDistrusted(path.join(way, 'c')), null)
    assert.equal(whyPathDistrusted(path.join(way, 'not', 'there')), null)
    symlinkSync('a/../a/b', path.join(folder, 'link'))
    assert.equal(whyPathDistrusted(path.join(folder, 'link', 'c')), null)
    lchownSync(path.join(folder, 'link'), OTHER, OTHER)
    assert.equal(whyPathDistrusted(path.join(folder, 'link', 'c')),
      `${path.join(folder, 'link')} belongs to another user (uid 54321, this process has 0)`)
    const ours = path.join(folder, 'ours')
    symlinkSync(path.join(theirs(), 'data'), ours)
    assert.match(String(whyPathDistrusted(ours)), /belongs to another user/)
    symlinkSync('round', path.join(folder, 'round'))
    assert.equal(whyPathDistrusted(path.join(folder, 'round')), null, 'it leads nowhere')
  })

  test('everybody may write to a folder above where nobody can replace what is in it, and a group of its own user', () => {
    const folder = path.join(tempFolder(), 'above')
    mkdirSync(path.join(folder, 'data'), { recursive: true })
    for (const [mode, isFine] of [[0o775, true], [0o2775, true], [0o1777, true], [0o777, false], [0o702,
      false]] as const)
    {
      chmodSync(folder, mode)
      const reason = whyPathDistrusted(path.join(folder, 'data'))
      if (isFine) assert.equal(reason, null)
      else assert.match(String(reason), /above can be written by others \(mode 0\d+\)$/)
    }
  })

  test('no group in which somebody else is may write to a file, or to a folder above it', { skip: notRoot }, () => {
    const folder = path.join(tempFolder(), 'shared')
    const config = path.join(folder, 'config.js')
    mkdirSync(folder)
    writeFileSync(config, '')
    for (const place of [folder, config]) {
      chownSync(place, 0, OTHER)
      chmodSync(place, 0o775)
      assert.equal(whyPathDistrusted(config), `${place} can be written by group 54321, in which others are (mode 0775)`)
      assert.match(String(whyPlaceDistrusted(config)), /can be written by group 54321/)
      chmodSync(place, 0o755)
      assert.equal(whyPathDistrusted(config), null)
    }
  })

  test('and to a volume of root\'s, as Kubernetes makes them, but no program of an upgrade is taken from there', {
    skip: lacksSmallDisk
  }, (t) => {
    const { folder } = smallDisk(t)
    chmodSync(folder, 0o777)
    openDataDir(path.join(folder, 'data'))
    assert.match(String(whyProgramDistrusted(path.join(folder, 'data'))), /can be written by others/)
  })

  test('what a link in a data folder leads to is no better', { skip: notRoot }, () => {
    const folder = tempFolder()
    symlinkSync(path.join(theirs(), 'memory.json'), path.join(folder, 'memory.json'))
    assert.throws(() => openDataDir(folder), { code: 'data-dir-unusable',
      message: /memory\.json leads to what others choose: .* belongs to another user/ })
  })

  test('a link of somebody else in the place of the fallback folder takes nothing away from where it leads', {
    skip: notRoot
  }, (t) => {
    const [folder, other, runtime] = [tempFolder(), tempFolder(), tempFolder()]
    chmodSync(runtime, 0o1777)
    writeFileSync(path.join(other, 'master.json'), '{}')
    const before = process.env.XDG_RUNTIME_DIR
    t.after(() => {
      before === undefined ? delete process.env.XDG_RUNTIME_DIR : process.env.XDG_RUNTIME_DIR = before
    })
    process.env.XDG_RUNTIME_DIR = runtime
    const [place] = fallbackFolders(folder)
    symlinkSync(other, place)
    lchownSync(place, OTHER, OTHER)
    openDataDir(folder).announce({ pid: process.pid, startTime: null, keeper: null, pidNamespace: null,
      adminUrl: 'http://127.0.0.1:1', startedAt: '' })
    assert.ok(existsSync(path.join(other, 'master.json')))
    lchownSync(place, 0, 0)
    openDataDir(folder).announce({ pid: process.pid, startTime: null, keeper: null, pidNamespace: null,
      adminUrl: 'http://127.0.0.1:1', startedAt: '' })
    assert.ok(!existsSync(path.join(other, 'master.json')), 'one of our own is followed')
  })

  test('the list of running decks is not read in a folder of somebody else', { skip: notRoot }, () => {
    const env = { CLUSTERDECK_RUNTIME_DIR: path.join(theirs(), 'running') }
    mkdirSync(runtimeFolder(env), { mode: 0o700 })
    assert.throws(() => runningDecks(env), { code: 'runtime-dir-unusable',
      message: /belongs to another user \(uid 54321/ })
  })

  test('a data folder keeps itself out of repositories, unless it is somebody\'s folder of other things', () => {
    const [made, mixed, old, full] = [path.join(tempFolder(), 'data'), tempFolder(),
      path.join(tempFolder(), '.clusterdeck'), path.join(tempFolder(), '.clusterdeck')]
    writeFileSync(path.join(mixed, 'notes.txt'), '')
    for (const folder of [old, full]) mkdirSync(folder)
    writeFileSync(path.join(old, 'admin.token'), 'a', { mode: 0o600 })
    // As a full disk leaves it.
    writeFileSync(path.join(full, '.gitignore'), '')
    for (const folder of [made, mixed, old, full]) openDataDir(folder)
    for (const folder of [made, old, full]) assert.match(readFileSync(path.join(folder, '.gitignore'), 'utf8'), /^\*$/m)
    assert.ok(!existsSync(path.join(mixed, '.gitignore')))
    writeFileSync(path.join(made, '.gitignore'), '# mine\n')
    openDataDir(made)
    assert.equal(readFileSync(path.join(made, '.gitignore'), 'utf8'), '# mine\n')
  })
})

/** @returns a folder of somebody else */
function theirs (): string {
  const folder = tempFolder()
  chownSync(folder, OTHER, OTHER)
  chmodSync(folder, 0o755)
  return folder
}

const FILES: Record<string, string> = {
  '/etc/passwd':
    'root:x:0:0::/root:/bin/sh\noperator:x:11:0::/:/sbin/nologin\nada:x:1000:1000::/home/ada:/bin/sh\nbob:x:1001:100::/home/bob:/bin/sh\n\n',
  '/etc/group':
    '# groups\nroot:x:0:\nada:x:1000:\nusers:x:100:\nstaff:x:50:\ndeploy:x:2000:ada\nteam:x:2001:root,ada,bob\ngone:x:2002:carol\n'
}
const inFiles = { read: (file: string) => FILES[file], ownGroups: () => [1000, 3000] }

test('a group is as good as its user where nobody else is in it', () => {
  const seen = Object.fromEntries([0, 1000, 50, 2000, 3000].map((gid) => [gid, hasOthers(gid, [1000], inFiles)]))
  assert.deepEqual(seen, { 0: false, 1000: false, 50: false, 2000: false, 3000: false })
})

test('others are in a group by name, as their own one, or as nobody can tell who is', () => {
  const seen = Object.fromEntries([100, 2001, 2002, 4000].map((gid) => [gid, hasOthers(gid, [1000], inFiles)]))
  assert.deepEqual(seen, { 100: true, 2001: true, 2002: true, 4000: true })
  assert.equal(hasOthers(1000, [1001], inFiles), true, 'somebody else\'s own')
  assert.equal(hasOthers(1000, [1001, 1000], inFiles), false, 'who is trusted')
})

test('without these files the groups of this process are its own', () => {
  const nothing = { ...inFiles, read: () => '' }
  assert.deepEqual([3000, 4000].map((gid) => hasOthers(gid, [1000], nothing)), [false, true])
})
