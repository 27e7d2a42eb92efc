import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, linkSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, symlinkSync,
  utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createWriteStream } from 'node:fs'
import { test } from 'node:test'
import { packFolder, type Archive } from '../../../server/cli/archive.ts'
import { unpackArchive } from '../../../server/system/unpack.ts'
import { ARCHIVE } from '../../../server/system/archive.ts'
import { tempFolder } from '../../support/folder.ts'

function folderWith (files: Record<string, string>) {
  const folder = tempFolder()
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.join(folder, path.dirname(name)), { recursive: true })
    writeFileSync(path.join(folder, name), content)
    utimesSync(path.join(folder, name), 1_700_000_000, 1_700_000_000)
  }
  return folder
}

/** @returns a folder with what is in it */
async function unpacked (archive: Archive): Promise<string> {
  const file = path.join(tempFolder(), 'a.tgz')
  await pipeline(archive.read(), createWriteStream(file))
  const folder = tempFolder()
  await unpackArchive(file, folder)
  return folder
}

const names = (folder: string) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()

test('packs a folder so that a host unpacks the same', async (t) => {
  const folder = folderWith({ 'app.js': 'run()', 'node_modules/@a/b/index.js': 'b', '@top/file.js': 'x', '.env': 'A=1',
    '.git/config': 'no', 'sub/.clusterdeck/admin.token': 'no', 'sub/deep/file': '', 'bin/run': '#!',
    'ünï cödé.txt': 'u', [`${'long/'.repeat(40)}name.js`]: 'long' })
  chmodSync(path.join(folder, 'bin/run'), 0o4777)
  mkdirSync(path.join(folder, 'empty'))
  symlinkSync('app.js', path.join(folder, 'current'))
  symlinkSync('../../bin/run', path.join(folder, 'sub/deep/run'))
  symlinkSync(path.join(folder, 'sub'), path.join(folder, 'absolute'))
  linkSync(path.join(folder, 'app.js'), path.join(folder, 'same.js'))

  const archive = await packFolder(folder, { also: ['.env*'] })
  t.after(archive.close)
  const copy = await unpacked(archive)

  const kept = names(folder).filter((name) => !/\.git|\.clusterdeck/.test(name))
  assert.deepEqual(names(copy), kept)
  for (const name of kept.filter((each) => statSync(path.join(folder, each)).isFile()))
    assert.equal(readFileSync(path.join(copy, name), 'utf8'), readFileSync(path.join(folder, name), 'utf8'), name)
  assert.equal(readlinkSync(path.join(copy, 'absolute')), 'sub')
  assert.equal(statSync(path.join(copy, 'bin/run')).mode & 0o7777, 0o755)
  assert.equal(statSync(path.join(copy, 'same.js')).nlink, 1)
  assert.equal(statSync(path.join(copy, 'app.js')).mtimeMs, 1_700_000_000_000)
})

test('sends no data folder, no private key, and .env files only when asked to; what only the owner can read stays so', async (t) => {
  const key = '-----BEGIN EC PRIVATE KEY-----\nx\n'
  const folder = folderWith({ 'app.js': 'run()', 'state/admin.token': 'no', 'state/history.db': 'no',
    'sub/old/master.lock': '', 'sub/old/history.db': '', 'sub/master.json': '{}', '.env': 'A=1',
    'sub/.env.production': 'A=1', '.environment': 'a', 'tls/cert.pem': 'CERTIFICATE', 'tls/key.pem': key,
    'tls/server.key': key, 'tls/id_rsa': '-----BEGIN OPENSSH PRIVATE KEY-----',
    'user.creds': '-----BEGIN USER NKEY SEED-----', 'keys/own': 'x' })
  chmodSync(path.join(folder, 'keys'), 0o700)
  chmodSync(path.join(folder, 'keys/own'), 0o600)
  const archive = await packFolder(folder)
  t.after(archive.close)
  const copy = await unpacked(archive)
  assert.deepEqual(names(copy), ['.environment', 'app.js', 'keys', 'keys/own', 'sub', 'sub/master.json', 'tls',
    'tls/cert.pem'])
  assert.deepEqual(archive.leftOut.map(({ name }) => name), ['.env', 'state', 'sub/.env.production', 'sub/old',
    'tls/id_rsa', 'tls/key.pem', 'tls/server.key', 'user.creds'])
  assert.deepEqual(['keys', 'keys/own', 'app.js'].map((name) => statSync(path.join(copy, name)).mode & 0o777), [0o700,
    0o600, 0o644])
  await assert.rejects(packFolder(path.join(folder, 'state')), { code: 'usage', message: /it is a data folder/ })
})

test('sends what a .gitignore names only when asked to, but packages, whose own .gitignore files say nothing', async (t) => {
  const folder = folderWith({ '.git/HEAD': 'x',
    '.gitignore': 'node_modules\n/dist/\n*.log\n!keep.log\n/packages/api/secret', 'packages/api/secret': 's',
    'packages/api/app.js': 'run()', 'packages/api/a.log': 'l', 'packages/api/keep.log': 'k',
    'packages/api/.gitignore': 'uploads\n!a.log', 'packages/api/uploads/x': 'x', 'packages/api/dist/app.js': 'built',
    'dist/app.js': 'run()', 'dist/.env': 'A=1', 'node_modules/a/index.js': '1', 'node_modules/a/.gitignore': 'index.js',
    'node_modules/a/debug.log': '1' })
  const sent = async (place: string, also: string[] = []) => {
    const archive = await packFolder(path.join(folder, place), { also })
    t.after(archive.close)
    const copy = await unpacked(archive)
    return { files: names(copy).filter((name) => statSync(path.join(copy, name)).isFile()),
      leftOut: archive.leftOut.filter(({ canBeAskedFor }) => canBeAskedFor).map(({ name, why }) => `${name}: ${why}`) }
  }
  const usual = ['.gitignore', 'node_modules/a/.gitignore', 'node_modules/a/debug.log', 'node_modules/a/index.js',
    'packages/api/.gitignore', 'packages/api/a.log', 'packages/api/app.js', 'packages/api/dist/app.js',
    'packages/api/keep.log']
  assert.deepEqual(await sent(''), { files: usual,
    leftOut: ['dist: in .gitignore', 'packages/api/secret: in .gitignore', 'packages/api/uploads: in .gitignore'] })
  assert.deepEqual((await sent('', ['/dist', 'secret'])).files, [...usual, 'dist/app.js', 'packages/api/secret'].sort())
  assert.deepEqual((await sent('', ['dist', '.env'])).files, [...usual, 'dist/.env', 'dist/app.js'].sort())
  // Of a folder of the repository, by what stands above it; and one that is named itself.
  assert.deepEqual((await sent('packages/api')).leftOut, ['secret: in .gitignore', 'uploads: in .gitignore'])
  assert.deepEqual((await sent('dist')).files, ['app.js'])
  await assert.rejects(packFolder(folder, { also: ['dist', 'dits', '.env.local'] }), { code: 'usage',
    message: /received dits, \.env\.local, which match none$/ })
})

test('sends no token of npm, yarn or curl, but files of theirs that name a variable', async (t) => {
  const folder = folderWith({ 'app.js': '1', '.npmrc': '//registry.example/:_authToken=npm_abc',
    'a/.npmrc': '//registry.example/:_authToken=$TOKEN\nsave-exact=true', 'a/.yarnrc.yml': 'npmAuthToken: "abc"',
    '.netrc': 'machine x login y password z', 'tls/server.p12': 'binary' })
  const archive = await packFolder(folder)
  t.after(archive.close)
  assert.deepEqual(names(await unpacked(archive)), ['a', 'a/.npmrc', 'app.js', 'tls'])
  await assert.rejects(packFolder(folder, { also: ['.npmrc'] }), { code: 'usage' })
})

test('sends no secret of other programs, no key by another name, and variables by whatever name only when asked to', async (t) => {
  const key = '-----BEGIN RSA PRIVATE KEY-----\nx\n'
  const secrets = { 'keys/deploy': key, 'key.txt': `\n${key}`, 'gcp.json': `{"private_key": "${key}"}`,
    '.pgpass': '*:*:*:me:secret', '.git-credentials': 'https://me:secret@example.org',
    '.aws/credentials': '[default]\naws_secret_access_key = x',
    '.docker/config.json': '{"auths":{"r":{"auth":"YTpi"}}}', '.npmrc.bak': '//r/:_authToken=x', 'store.jks': 'binary' }
  const variables = { '.ENV': 'A=1', '.envrc': 'export A=1', '.env~': 'A=1', 'sub/prod.env': 'A=1' }
  const plain = { 'app.js': 'const BEGIN = \'-----BEGIN PRIVATE KEY-----\'', 'config.json': '{"port":1}',
    'ca.pem': '-----BEGIN CERTIFICATE-----', 'environment.js': '1', 'key.pub': '-----BEGIN PUBLIC KEY-----', empty: '' }
  const archive = await packFolder(folderWith({ ...secrets, ...variables, ...plain }))
  t.after(archive.close)
  const leftOut = (isAsked: boolean) =>
    archive.leftOut.filter(({ canBeAskedFor }) => canBeAskedFor === isAsked).map(({ name }) => name).sort()
  assert.deepEqual([leftOut(false), leftOut(true)], [Object.keys(secrets).sort(), Object.keys(variables).sort()])
  assert.deepEqual(names(await unpacked(archive)), ['.aws', '.docker', 'keys', 'sub', ...Object.keys(plain)].sort())
})

test('packs equal folders to equal bytes, whoever they belong to and in whatever order they were made', async (t) => {
  const one = folderWith({ 'a.js': 'a', 'b.js': 'b', 'd/c.js': 'c' })
  const other = folderWith({ 'd/c.js': 'c', 'b.js': 'b', 'a.js': 'a' })
  chmodSync(path.join(other, 'a.js'), 0o664)
  const [first, second] = await Promise.all([packFolder(one), packFolder(other)])
  t.after(first.close)
  t.after(second.close)
  assert.equal(first.digest, second.digest)
  assert.match(first.digest, /^sha256:[0-9a-f]{64}$/)
  writeFileSync(path.join(other, 'a.js'), 'A')
  const third = await packFolder(other)
  t.after(third.close)
  assert.notEqual(third.digest, first.digest)
})

test('leaves nothing in the folder for temporary files', async (t) => {
  const before = readdirSync(tmpdir()).filter((name) => name.endsWith('.tgz'))
  const archive = await packFolder(folderWith({ 'a.js': 'a' }))
  t.after(archive.close)
  await unpacked(archive)
  await unpacked(archive)
  assert.deepEqual(readdirSync(tmpdir()).filter((name) => name.endsWith('.tgz')), before)
})

const REFUSED: [string, (folder: string) => void, RegExp, Partial<typeof ARCHIVE>?][] = [['a link to outside',
  (folder) => symlinkSync('../elsewhere', path.join(folder, 'out')),
  /"out" is a link that leaves it: "\.\.\/elsewhere"/], ['an absolute link to outside',
  (folder) => symlinkSync('/etc/hosts', path.join(folder, 'out')), /"out" is a link that leaves it: "\/etc\/hosts"/], [
  'a link that leads by what is behind another one',
  (folder) => symlinkSync('app.js/../../x', path.join(folder, 'out')),
  /"out" is a link that leaves it/
], ['a pipe', (folder) => execFileSync('mkfifo', [path.join(folder, 'pipe')]),
  /"pipe" is not a file, a folder or a symbolic link/], ['a name with a line end',
  (folder) => writeFileSync(path.join(folder, 'a\nb'), ''), /"a\\nb": its name has characters that cannot be shown/], [
  'too many files',
  (folder) => ['a', 'b', 'c'].forEach((name) => writeFileSync(path.join(folder, name), '')),
  /more than 3 files and folders/,
  { maxEntries: 3 }
], ['files that are too large', (folder) => writeFileSync(path.join(folder, 'a'), 'x'.repeat(3000)),
  /larger than 2\.0 kB|larger than 2/, { maxUnpackedBytes: 2000 }], ['what is too large when it is packed',
  (folder) => cpSync(process.execPath, path.join(folder, 'node')), /packed, it is larger than/, { maxBytes: 100_000 }]]

for (const [what, spoil, reason, limits] of REFUSED) {
  test(`refuses ${what}`, async () => {
    const folder = folderWith({ 'app.js': 'run()' })
    spoil(folder)
    await assert.rejects(packFolder(folder, { limits: { ...ARCHIVE, ...limits } }), { code: 'usage', message: reason })
  })
}

test('refuses what is no folder, and one that is empty', async () => {
  await assert.rejects(packFolder(path.join(tempFolder(), 'none')), { code: 'usage',
    message: /--push: expected a folder, received .*none, which is none/ })
  await assert.rejects(packFolder(folderWith({ '.git/config': 'x' })), { code: 'usage', message: /it is empty/ })
})
