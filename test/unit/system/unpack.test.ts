import assert from 'node:assert/strict'
import { once } from 'node:events'
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, realpathSync, statSync, symlinkSync,
  writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { gzipSync } from 'node:zlib'
import { unpackArchive } from '../../../server/system/unpack.ts'
import { ARCHIVE } from '../../../server/system/archive.ts'
import { archiveOf, entryOf, fileOf, paxOf, tarOf } from '../../support/archives.ts'
import { tempFolder } from '../../support/folder.ts'
import { rareTest } from '../../support/rare.ts'

/** A folder to unpack into, beside what nobody may touch. */
function site () {
  const root = tempFolder()
  const folder = path.join(root, 'in')
  mkdirSync(folder)
  mkdirSync(path.join(root, 'outside'))
  writeFileSync(path.join(root, 'outside', 'secret'), 'secret')
  return { root, folder }
}

/** @returns all that is there, with what it holds */
function look (root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name !== 'in' && !name.startsWith('in/')
  ).sort().map((name) => {
    const file = path.join(root, name)
    const found = lstatSync(file)
    return `${name} ${found.mode.toString(8)} ${found.nlink} ${found.isFile() ? readFileSync(file, 'utf8') : ''}`
  })
}

test('unpacks files, folders and links, with the modes that they may have', async () => {
  const { folder } = site()
  await unpackArchive(
    fileOf(
      archiveOf({ name: './', type: '5', mode: 0o777 }, { name: './bin/', type: '5', mode: 0o2777 }, {
        name: './bin/run',
        mode: 0o6777,
        body: '#!/bin/sh\n'
      }, { name: './lib/deep/app.js', mode: 0o666, body: 'run()\n' }, { name: './link', type: '2',
        link: 'lib/deep/app.js' }, { name: './bin/up', type: '2', link: '../lib/./deep' }, { name: './bin/dangling',
        type: '2', link: '../.git/config' })
    ),
    folder
  )
  const modeOf = (name: string) => (statSync(path.join(folder, name)).mode & 0o7777).toString(8)
  assert.deepEqual(['bin', 'bin/run', 'lib', 'lib/deep', 'lib/deep/app.js'].map(modeOf), ['755', '755', '755', '755',
    '644'])
  assert.equal(readFileSync(path.join(folder, 'link'), 'utf8'), 'run()\n')
  assert.equal(readlinkSync(path.join(folder, 'bin/up')), '../lib/./deep')
  assert.equal(statSync(path.join(folder, 'bin/run')).mtimeMs, 1_700_000_000_000)
  assert.deepEqual(readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort(), ['bin', 'bin/dangling', 'bin/run',
    'bin/up', 'bin/up/app.js', 'lib', 'lib/deep', 'lib/deep/app.js', 'link'])
})

const FILE = entryOf({ name: 'app.js', body: 'run()' })
const SMALL = { ...ARCHIVE, maxEntries: 1000, maxUnpackedBytes: 1024 ** 2 }

const REFUSED: [string, Buffer | ((root: string) => Buffer), RegExp][] = [['a name with ..',
  archiveOf({ name: '../outside/new', body: 'x' }), /its name leaves the folder/], ['a name with .. in the middle',
  archiveOf({ name: 'a/../../outside/secret', body: 'x' }), /its name leaves the folder/], ['an absolute name',
  (root) => archiveOf({ name: `${root}/outside/secret`.slice(0, 100), body: 'x' }), /its name leaves the folder/], [
  'a long name that is absolute',
  (root) => gzipSync(tarOf(paxOf({ path: `${root}/outside/secret` }), FILE)),
  /its name leaves the folder/
], ['a prefix with ..', archiveOf({ name: 'outside/secret', prefix: '..', body: 'x' }), /its name leaves the folder/], [
  'a name that is empty in the middle',
  archiveOf({ name: 'a//b', body: 'x' }),
  /its name leaves the folder/
], ['a name that is too long', gzipSync(tarOf(paxOf({ path: 'n'.repeat(256) }), FILE)), /its name is too long/], [
  'a way that is too deep',
  gzipSync(tarOf(paxOf({ path: 'd/'.repeat(101) + 'f' }), FILE)),
  /deeper than 100 folders/
], ['a link to outside', archiveOf({ name: 'out', type: '2', link: '../outside' }), /a link that leaves the folder/], [
  'a link to an absolute place',
  archiveOf({ name: 'out', type: '2', link: '/etc/passwd' }),
  /a link that leaves the folder/
], ['a file through a link to outside',
  archiveOf({ name: 'out', type: '2', link: '../outside' }, { name: 'out/secret', body: 'x' }),
  /a link that leaves the folder/], ['a file through a link to inside',
  archiveOf({ name: 'in', type: '5' }, { name: 'to', type: '2', link: 'in' }, { name: 'to/file', body: 'x' }),
  /"to" is not a folder/], ['a file in place of a link',
  archiveOf({ name: 'to', type: '2', link: 'b' }, { name: 'to', body: 'x' }), /occurs twice/], [
  'a link in place of a file',
  archiveOf({ name: 'to', body: 'x' }, { name: 'to', type: '2', link: 'b' }),
  /occurs twice/
], ['a link in place of a folder', archiveOf({ name: 'to/f', body: 'x' }, { name: 'to', type: '2', link: 'b' }),
  /occurs twice/], ['a folder in place of a link',
  archiveOf({ name: 'to', type: '2', link: 'b' }, { name: 'to/', type: '5' }), /occurs twice/], [
  'links that leave only together',
  archiveOf({ name: 'a/b/top', type: '2', link: '../..' }, { name: 'leaves', type: '2', link: 'a/b/top/../outside' }),
  /a link that leaves the folder/
], ['a hard link to outside', archiveOf({ name: 'hard', type: '1', link: '../outside/secret' }),
  /not a file, a folder/], ['a hard link to an absolute place',
  (root) => archiveOf({ name: 'hard', type: '1', link: `${root}/outside/secret`.slice(0, 100) }),
  /not a file, a folder/], ['a device', archiveOf({ name: 'disk', type: '4' }), /not a file, a folder.*BlockDevice/], [
  'a pipe',
  archiveOf({ name: 'pipe', type: '6' }),
  /not a file, a folder.*FIFO/
], ['something that nobody knows', archiveOf({ name: 'what', type: 'Z' }), /not a file, a folder/], ['a sparse file',
  archiveOf({ name: 'sparse', type: 'S' }), /not a file, a folder/], ['a description that is too long',
  gzipSync(tarOf(paxOf({ comment: 'x'.repeat(1024 ** 2) }), FILE)), /larger than 1048576 bytes|not a file, a folder/], [
  'a header that tells of a huge file',
  archiveOf({ name: 'huge', size: 8 * 1024 ** 3 - 1 }),
  /larger than 1048576 bytes/
], ['a header with a huge size in pax', gzipSync(tarOf(paxOf({ size: '9007199254740991' }), FILE)),
  /larger than 1048576 bytes/], ['a name with a line end', archiveOf({ name: 'two\nlines', body: 'x' }),
  /its name has characters that cannot be shown/], ['many files',
  gzipSync(tarOf(...Array.from({ length: 1001 }, (_, index) => entryOf({ name: `f${index}` })))),
  /more than 1000 files and folders/], ['many folders that are only on the way',
  gzipSync(tarOf(...Array.from({ length: 101 }, (_, index) => entryOf({ name: `${index}/a/b/c/d/e/f/g/h/f` })))),
  /more than 1000 files and folders/], ['much that only describes',
  gzipSync(tarOf(...Array.from({ length: 1001 }, () => paxOf({ comment: 'x' })), FILE)),
  /more than 1000 files and folders/], ['a bomb', gzipSync(tarOf(FILE, Buffer.alloc(2 * 1024 ** 2))),
  /larger than 1048576 bytes/], ['a bomb that is packed twice', gzipSync(gzipSync(tarOf(FILE))), /packed twice/], [
  'one that is cut',
  archiveOf({ name: 'app.js', body: 'x'.repeat(5000) }).subarray(0, 60),
  /unexpected end of file/
], ['one whose last file is cut', gzipSync(entryOf({ name: 'app.js', body: 'x', size: 5000 })), /Truncated input/], [
  'one with a wrong checksum',
  gzipSync(tarOf(Buffer.concat([Buffer.from('b'), FILE.subarray(1)]))),
  /checksum/
], ['what is no archive', gzipSync(Buffer.from('hello')), /Unrecognized archive|Truncated|format/i], [
  'what is not packed',
  Buffer.from('hello'),
  /incorrect header check/
], ['nothing', Buffer.alloc(0), /unexpected end of file/], ['nothing, packed', gzipSync(Buffer.alloc(0)),
  /Unrecognized archive|format/i]]

for (const [what, bytes, reason] of REFUSED) {
  test(`refuses ${what}`, async () => {
    const { root, folder } = site()
    const before = look(root)
    await assert.rejects(unpackArchive(fileOf(typeof bytes === 'function' ? bytes(root) : bytes), folder, SMALL),
      reason)
    assert.deepEqual(look(root), before, 'nothing outside has changed')
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      const file = path.join(folder, name)
      if (lstatSync(file).isSymbolicLink())
        assert.ok(path.resolve(path.dirname(file), readlinkSync(file)).startsWith(folder), `${name} leads outside`)
    }
  })
}

test('goes through no link that is in the folder already', async () => {
  const { root, folder } = site()
  symlinkSync('../outside', path.join(folder, 'out'))
  const before = look(root)
  await assert.rejects(unpackArchive(fileOf(archiveOf({ name: 'out/secret', body: 'x' })), folder),
    /TAR_SYMLINK_ERROR|symlink/i)
  assert.deepEqual(look(root), before)
  assert.equal(realpathSync(path.join(folder, 'out')), realpathSync(path.join(root, 'outside')))
})

rareTest('takes no more memory for thousands of files than for one', async () => {
  const { folder } = site()
  const file = fileOf(
    archiveOf(
      ...Array.from({ length: 6000 },
        (_, index) => ({ name: `package-${index % 100}/file-number-${index}.js`, body: '0123456789' }))
    )
  )
  const thread = new Worker(new URL('../../../server/fleet/unpack-thread.ts', import.meta.url), { execArgv: [], env: {},
    workerData: { file, folder }, resourceLimits: { maxOldGenerationSizeMb: 24 } })
  const [{ problem }] = await once(thread, 'message')
  assert.equal(problem, null)
  assert.equal(readdirSync(folder, { recursive: true }).length, 6100)
})
