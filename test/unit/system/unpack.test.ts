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

const named = (name: string, more: Partial<Parameters<typeof entryOf>[0]> = { body: 'x' }) =>
  archiveOf({ name, ...more })
const link = (name: string, link: string) => ({ name, type: '2', link })
const withPax = (fields: Record<string, string>, ...more: Buffer[]) => gzipSync(tarOf(paxOf(fields), FILE, ...more))
const many = (count: number, entry: (index: number) => Buffer) =>
  Array.from({ length: count }, (_, index) => entry(index))

/** what is refused, by the reason */
const REFUSED: Record<string, Record<string, Buffer | ((root: string) => Buffer)>> = {
  'its name leaves the folder': { 'a name with ..': named('../outside/new'),
    'a name with .. in the middle': named('a/../../outside/secret'), 'an absolute name': (root) =>
      named(`${root}/outside/secret`.slice(0, 100)), 'a long name that is absolute': (root) =>
      withPax({ path: `${root}/outside/secret` }),
    'a prefix with ..': named('outside/secret', { prefix: '..', body: 'x' }),
    'a name that is empty in the middle': named('a//b') },
  'its name is too long': { 'a name that is too long': withPax({ path: 'n'.repeat(256) }) },
  'deeper than 100 folders': { 'a way that is too deep': withPax({ path: 'd/'.repeat(101) + 'f' }) },
  'a link that leaves the folder': { 'a link to outside': archiveOf(link('out', '../outside')),
    'a link to an absolute place': archiveOf(link('out', '/etc/passwd')),
    'a file through a link to outside': archiveOf(link('out', '../outside'), { name: 'out/secret', body: 'x' }),
    'links that leave only together': archiveOf(link('a/b/top', '../..'), link('leaves', 'a/b/top/../outside')) },
  '"to" is not a folder': {
    'a file through a link to inside': archiveOf({ name: 'in', type: '5' }, link('to', 'in'), { name: 'to/file',
      body: 'x' })
  },
  'occurs twice': { 'a file in place of a link': archiveOf(link('to', 'b'), { name: 'to', body: 'x' }),
    'a link in place of a file': archiveOf({ name: 'to', body: 'x' }, link('to', 'b')),
    'a link in place of a folder': archiveOf({ name: 'to/f', body: 'x' }, link('to', 'b')),
    'a folder in place of a link': archiveOf(link('to', 'b'), { name: 'to/', type: '5' }) },
  'not a file, a folder': { 'a hard link to outside': named('hard', { type: '1', link: '../outside/secret' }),
    'a hard link to an absolute place': (root) =>
      named('hard', { type: '1', link: `${root}/outside/secret`.slice(0, 100) }),
    'something that nobody knows': named('what', { type: 'Z' }), 'a sparse file': named('sparse', { type: 'S' }) },
  'not a file, a folder.*BlockDevice': { 'a device': named('disk', { type: '4' }) },
  'not a file, a folder.*FIFO': { 'a pipe': named('pipe', { type: '6' }) },
  'larger than 1048576 bytes|not a file, a folder': {
    'a description that is too long': withPax({ comment: 'x'.repeat(1024 ** 2) })
  },
  'larger than 1048576 bytes': { 'a header that tells of a huge file': named('huge', { size: 8 * 1024 ** 3 - 1 }),
    'a header with a huge size in pax': withPax({ size: '9007199254740991' }),
    'a bomb': gzipSync(tarOf(FILE, Buffer.alloc(2 * 1024 ** 2))) },
  'its name has characters that cannot be shown': { 'a name with a line end': named('two\nlines') },
  'more than 1000 files and folders': {
    'many files': gzipSync(tarOf(...many(1001, (index) => entryOf({ name: `f${index}` })))),
    'many folders that are only on the way': gzipSync(
      tarOf(...many(101, (index) => entryOf({ name: `${index}/a/b/c/d/e/f/g/h/f` })))
    ),
    'much that only describes': gzipSync(tarOf(...many(1001, () => paxOf({ comment: 'x' })), FILE))
  },
  'packed twice': { 'a bomb that is packed twice': gzipSync(gzipSync(tarOf(FILE))) },
  'unexpected end of file': { 'one that is cut': named('app.js', { body: 'x'.repeat(5000) }).subarray(0, 60),
    nothing: Buffer.alloc(0) },
  'Truncated input': { 'one whose last file is cut': gzipSync(entryOf({ name: 'app.js', body: 'x', size: 5000 })) },
  checksum: { 'one with a wrong checksum': gzipSync(tarOf(Buffer.concat([Buffer.from('b'), FILE.subarray(1)]))) },
  'Unrecognized archive|Truncated|format': { 'what is no archive': gzipSync(Buffer.from('hello')) },
  'Unrecognized archive|format': { 'nothing, packed': gzipSync(Buffer.alloc(0)) },
  'incorrect header check': { 'what is not packed': Buffer.from('hello') }
}

for (const [reason, what, bytes] of Object.entries(REFUSED).flatMap(([why, all]) =>
  Object.entries(all).map((each) => [why, ...each] as const)
)) {
  test(`refuses ${what}`, async () => {
    const { root, folder } = site()
    const before = look(root)
    await assert.rejects(unpackArchive(fileOf(typeof bytes === 'function' ? bytes(root) : bytes), folder, SMALL),
      new RegExp(reason, 'i'))
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
