import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createPackages, type Unpack } from '../../../server/fleet/packages.ts'
import { archiveOf } from '../../support/archives.ts'
import { tempFolder } from '../../support/folder.ts'

const digestOf = (bytes: Buffer) => `sha256:${createHash('sha256').update(bytes).digest('hex')}`
const APP = archiveOf({ name: 'app.js', body: 'run()' })
const DIGEST = digestOf(APP)

function member (
  { root = tempFolder(), bytes = APP, releases = [], unpack }: { root?: string, bytes?: Buffer,
    releases?: { path: string }[], unpack?: Unpack } = {}
) {
  const read: string[] = []
  const errors: unknown[] = []
  const store = { async *read (digest: string) {
    read.push(digest)
    yield bytes.subarray(0, 10)
    yield bytes.subarray(10)
  } }
  const packages = createPackages({ root, member: 'one', app: 'shop', store, releases: () => releases,
    onError: (error) => errors.push(error), ...(unpack && { unpack }) })
  return { root, home: path.join(root, 'fleet-one.shop'), packages, read, errors }
}

test('unpacks what was pushed into a folder by its digest, once', async () => {
  const { packages, home, read } = member()
  const [first, second] = await Promise.all([packages.fetch(DIGEST), packages.fetch(DIGEST)])
  assert.deepEqual([first, second], Array(2).fill(path.join(home, DIGEST.slice(7))))
  assert.equal(readFileSync(path.join(first, 'app.js'), 'utf8'), 'run()')
  assert.deepEqual(readdirSync(home), [DIGEST.slice(7)])
  assert.deepEqual(read, [DIGEST])
})

test('leaves nothing of what is another thing, cannot be unpacked, or ends in the middle', async () => {
  const wrong = member({ bytes: archiveOf({ name: 'app.js', body: 'other' }) })
  await assert.rejects(wrong.packages.fetch(DIGEST), { code: 'invalid-body',
    message: /the archive in NATS has changed: expected sha256:\w+, received sha256/ })
  const garbage = Buffer.from('no archive at all')
  const broken = member({ bytes: garbage })
  await assert.rejects(broken.packages.fetch(digestOf(garbage)), { code: 'invalid-body',
    message: /cannot unpack .*: incorrect header check/ })
  const full = member({ unpack: async ({ folder }) => {
    writeFileSync(path.join(folder, 'half'), '')
    throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
  } })
  await assert.rejects(full.packages.fetch(DIGEST), {
    message: /cannot unpack .*: the disk with .*fleet-one.shop is full/
  })
  assert.deepEqual([wrong, broken, full].map(({ home }) => readdirSync(home)), [[], [], []])
})

test('removes what a master before it has left unfinished', async () => {
  const { packages, home, root } = member()
  mkdirSync(path.join(home, '.unfinished-1/sub'), { recursive: true })
  writeFileSync(path.join(home, '.unfinished-1.tgz'), 'x')
  writeFileSync(path.join(root, '.unfinished-2'), 'not its own')
  await packages.sweep()
  assert.deepEqual(readdirSync(home), [])
  assert.deepEqual(readdirSync(root).sort(), ['.unfinished-2', 'fleet-one.shop'])
})

test('keeps the last three, and what a release still needs', async () => {
  const root = tempFolder()
  const home = path.join(root, 'fleet-one.shop')
  const names = Array.from({ length: 6 }, (_, index) => String(index).repeat(64))
  for (const [index, name] of names.entries()) {
    mkdirSync(path.join(home, name, 'app'), { recursive: true })
    utimesSync(path.join(home, name), index, index)
  }
  writeFileSync(path.join(home, 'notes.txt'), '')
  const { packages, errors } = member({ root,
    releases: [{ path: path.join(home, names[0], 'app') }, { path: '/elsewhere' }, { path: home }] })
  await packages.clean()
  assert.deepEqual(errors, [])
  assert.deepEqual(readdirSync(home).sort(), [names[0], ...names.slice(3), 'notes.txt'])
})

test('says what is wrong with releases.root', async () => {
  const store = { async *read () {} }
  const of = (root: string | undefined) =>
    createPackages({ root, member: 'one', app: 'shop', store, releases: () => [], onError () {} }).fetch(DIGEST)
  await assert.rejects(of(undefined), { code: 'path-refused',
    message: /^releases\.root: expected a folder to unpack pushes into, received nothing$/ })
  await assert.rejects(of('/none'), { code: 'path-refused',
    message: /^releases\.root: expected a readable folder, received \/none \(ENOENT\)$/ })
  const linked = tempFolder()
  symlinkSync(tempFolder(), path.join(linked, 'fleet-one.shop'))
  await assert.rejects(of(linked), { code: 'path-refused',
    message: /fleet-one.shop to be a folder that only this user can write, but it is no folder/ })
  const open = tempFolder()
  mkdirSync(path.join(open, 'fleet-one.shop'))
  chmodSync(path.join(open, 'fleet-one.shop'), 0o777)
  await assert.rejects(of(open), { code: 'path-refused',
    message: /fleet-one.shop to be a folder .* but it can be written by others/ })
})

test('what is under way when the master ends comes to nothing', async () => {
  const one = member()
  const unpacking = one.packages.fetch(DIGEST)
  one.packages.close()
  await assert.rejects(unpacking, { message: /the master is stopping/ })
  assert.deepEqual(readdirSync(one.home), [])
})
