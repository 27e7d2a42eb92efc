import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { gunzipSync, gzipSync } from 'node:zlib'
import { openHistory } from '../../../db/history.ts'
import { openSqlite } from '../../../db/sqlite.ts'
import { rootOf } from '../../../server/admin/tokens.ts'
import { openDataDir } from '../../../server/system/data-dir.ts'
import { runCliHere } from '../../support/cli-here.ts'
import { archiveOf, entryOf, fileOf, tarOf } from '../../support/archives.ts'
import { tempFolder } from '../../support/folder.ts'
import { readRecords, writeRecord } from '../../support/records.ts'
import { lacksSmallDisk, smallDisk } from '../../support/small-disk.ts'
import type { AppRecord } from '../../../server/host/records.ts'
import type { Runs } from '../../../server/app/runs.ts'

const SECRET = 'not-for-others'
const RUNS = { order: { cwd: '/srv/shop', flags: {}, env: { SHOP_KEY: SECRET }, dependsOn: [] }, workers: 3,
  changes: [], finished: {}, variables: { DB: SECRET },
  release: { id: 'r4', entry: '/srv/shop/app.js', path: '/srv/shop', createdAt: '2026-01-31T12:00:00.000Z' },
  config: { values: { entry: '/srv/shop/app.js', cwd: '/srv/shop', workers: 2, env: { DB: SECRET } },
    origins: [['env', { source: 'file', from: null }]] } } as unknown as Runs
const ENV = { PATH: '/usr/bin', SHOP_KEY: SECRET, CLUSTERDECK_WORKERS: '2', CLUSTERDECK_FLEET_TOKEN: SECRET }

/** What a host and an app have left, with a token, an alert, and an alert that was deleted. */
function stoppedHost () {
  const top = tempFolder()
  const [folder, dataDir] = [path.join(top, 'host'), path.join(top, 'shop', '.clusterdeck')]
  for (const place of [folder, dataDir]) {
    mkdirSync(place, { recursive: true, mode: 0o700 })
    writeFileSync(path.join(place, 'admin.token'), `admin-${SECRET}\n`, { mode: 0o600 })
    const history = openHistory({ file: path.join(place, 'history.db') })
    const by = { createdAt: Date.now(), createdBy: 'ada' }
    history.alerts.remove(history.alerts.add({ settings: { url: `http://127.0.0.1/${SECRET}` }, ...by }))
    history.alerts.add({ settings: { url: `http://127.0.0.1/${SECRET}` }, ...by })
    history.tokens.create({ hash: 'hash', name: 'ci', role: 'viewer', ...by, createdWith: null,
      root: rootOf(`admin-${SECRET}`), expiresAt: Date.now() + 1e6, kind: 'token' })
    history.sessions.create({ hash: 'session', createdAt: 0, expiresAt: 1, name: null, role: 'admin', token: null,
      owner: null })
    history.close()
  }
  writeRecord(folder, { name: 'shop', dataDir, order: { cwd: '/srv/shop', env: ENV }, runs: RUNS })
  const run = (...args: string[]) =>
    runCliHere(args, { cwd: top, env: { CLUSTERDECK_HOST_DIR: folder, SHOP_KEY: 'new' } })
  return { top, folder, dataDir, run, file: path.join(top, 'host.tgz'), remove () {
    for (const place of [folder, path.dirname(dataDir)]) rmSync(place, { recursive: true })
  } }
}

/** @returns its alerts, tokens and sessions */
function look (place: string) {
  const history = openHistory({ file: path.join(place, 'history.db') })
  const owner = readFileSync(path.join(place, 'admin.token'), 'utf8').trim()
  history.tokens.keepOf(rootOf(owner))
  const found = [owner === `admin-${SECRET}`, history.alerts.list().length, history.tokens.list().length,
    history.sessions.find('session')]
  history.close()
  return found
}

test('a backup has no secret, says the names of what it leaves out, and restores with the variables of the shell', async () => {
  const { folder, dataDir, run, file, remove } = stoppedHost()
  const { code, stdout } = await run('backup', 'host.tgz')
  assert.deepEqual([code, stdout.split('\n').slice(1)], [0, [
    'left out, of shop: the variables CLUSTERDECK_FLEET_TOKEN, SHOP_KEY',
    'left out, of shop: 1 alert',
    'left out, of the host: 1 alert',
    ''
  ]])
  assert.equal(gunzipSync(readFileSync(file)).includes(SECRET), false)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  remove()
  const restored = await run('restore', file, '--update-env')
  assert.deepEqual([restored.code, restored.stderr], [0, ''])
  assert.match(restored.stdout, /^shop +yes +r4 .*\nleft out, of shop: the variables CLUSTERDECK_FLEET_TOKEN\n/m)
  const [{ order, runs }] = readRecords(folder) as [AppRecord & { runs: Runs }]
  assert.deepEqual(order.env, { PATH: '/usr/bin', CLUSTERDECK_WORKERS: '2', SHOP_KEY: 'new' })
  assert.deepEqual(runs, { ...RUNS, order: null, variables: null,
    config: { values: { entry: '/srv/shop/app.js', cwd: '/srv/shop', workers: 2 }, origins: [] } })
  for (const place of [folder, dataDir]) assert.deepEqual(look(place), [false, 0, 1, null])
})

test('with its secrets a backup restores all as it was, but for who is signed in', async () => {
  const { folder, dataDir, run, file, remove } = stoppedHost()
  assert.match((await run('backup', file, '--with-secrets')).stdout, /\nit has secrets/)
  const before = readRecords(folder)
  remove()
  assert.equal((await run('restore', file)).code, 0)
  assert.deepEqual(readRecords(folder), before)
  for (const place of [folder, dataDir]) {
    assert.deepEqual(look(place), [true, 1, 1, null])
    for (const name of ['history.db', 'admin.token'])
      assert.equal(statSync(path.join(place, name)).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(place).filter((name) => name.startsWith('restored')), [])
  }
})

test('what is there is not replaced: neither a file, nor apps and histories, unless --force puts these aside', async () => {
  const { folder, dataDir, run, file } = stoppedHost()
  writeFileSync(file, 'mine')
  const refused = await run('backup', file)
  assert.deepEqual([refused.code, readFileSync(file, 'utf8')], [2, 'mine'])
  assert.equal((await run('backup', file, '--force')).code, 0)
  const { code, stderr } = await run('restore', file)
  assert.equal(code, 2)
  for (const name of ['apps/shop.json', 'history.db']) assert.ok(stderr.includes(path.join(folder, name)), name)
  assert.match((await run('restore', file, '--dry-run')).stdout, /\nit would be refused: /)
  const { putAside } = JSON.parse((await run('restore', file, '--force', '--json')).stdout)
  assert.deepEqual(putAside.map((place: string) => readdirSync(place).filter((name) => !/-(wal|shm)$/.test(name))), [[
    'apps',
    'history.db'
  ], ['history.db']])
  assert.deepEqual([putAside.map(path.dirname), look(folder).slice(1)], [[folder, dataDir], [0, 1, null]])
})

test('a backup that fails leaves nothing behind, and says why', async () => {
  const { top, folder, dataDir, run } = stoppedHost()
  const names = readdirSync(top)
  assert.match((await run('backup', 'none/host.tgz')).stderr, /host\.tgz is not written: ENOENT/)
  writeFileSync(path.join(dataDir, 'history.db'), 'no database'.repeat(1000))
  assert.match((await run('backup', 'host.tgz')).stderr, /shop\/\.clusterdeck\/history\.db: file is not a database/)
  writeFileSync(path.join(folder, 'apps', 'mail.json'), '{ "version": 2 }')
  assert.match((await run('backup', 'host.tgz')).stderr, /mail\.json: expected the record of an app/)
  rmSync(path.join(folder, 'apps'), { recursive: true })
  assert.match((await run('backup', 'host.tgz')).stderr, /no host of this user has run yet/)
  assert.deepEqual(readdirSync(top), names)
})

test('on a full disk a backup leaves nothing behind, and a restore puts nothing in place', { skip: lacksSmallDisk },
  async (t) => {
    const { folder, run, file, remove } = stoppedHost()
    const disk = smallDisk(t)
    const [mail, target] = ['mail', 'host.tgz'].map((name) => path.join(disk.folder, name))
    writeRecord(folder, { name: 'mail', dataDir: mail, order: { cwd: '/srv/mail' } })
    openHistory({ file: openDataDir(mail).historyFile }).close()
    assert.equal((await run('backup', file)).code, 0)
    remove()
    rmSync(path.join(mail, 'history.db'))
    disk.fill()
    const { code, stderr } = await run('restore', file)
    assert.match(stderr, /nothing is restored: ENOSPC/)
    assert.deepEqual([code, existsSync(path.join(folder, 'apps')), existsSync(path.join(folder, 'history.db'))], [1,
      false, false])
    disk.free()
    assert.equal((await run('restore', file)).code, 0)
    assert.deepEqual(readRecords(folder).map(({ name }) => name), ['mail', 'shop'])
    disk.fill()
    const made = await run('backup', target)
    assert.deepEqual([made.code, readdirSync(disk.folder)], [1, ['filler', 'mail']], made.stderr)
  })

type Manifest = { format: number, apps: { record: Record<string, unknown> }[] }

/** A backup of one app, of which somebody has made something else. */
function madeOf (
  { change = () => {}, database, more = [] }: { change?: (manifest: Manifest) => void, database?: Buffer,
    more?: Parameters<typeof archiveOf> }
) {
  const manifest = { format: 1, version: '0.1.0', folder: '/host', createdAt: '2026-01-31T12:00:00.000Z',
    hasSecrets: false, alerts: 0,
    apps: [{ variables: [], alerts: 0,
      record: { version: 1, id: 'shop', name: 'shop', dataDir: '/srv/shop/.clusterdeck', wish: 'running',
        order: { cwd: '/srv/shop' }, runs: null } }] }
  change(manifest)
  return [{ name: 'manifest.json', body: JSON.stringify(manifest) },
    ...database ? [{ name: 'host/history.db', body: database }] : [], ...more]
}

function changed (record: object) {
  return madeOf({ change: ({ apps }) => Object.assign(apps[0].record, record) })
}

function databaseWith (sql: string): Buffer {
  const file = path.join(tempFolder(), 'history.db')
  openHistory({ file }).close()
  const db = openSqlite(file)
  db.exec(`PRAGMA journal_mode = DELETE; ${sql}`)
  db.close()
  return readFileSync(file)
}

for (const [what, why, entries] of [['no manifest', /there is none/, () => [{ name: 'host/history.db' }]], [
  'a newer format',
  /of a newer clusterdeck/,
  () =>
    madeOf({ change: (manifest) => {
      manifest.format = 2
    } })
], ['a newer record', /apps\.0\.record\.version/, () => changed({ version: 2 })], ['an id that leads elsewhere',
  /apps\.0\.record\.id/, () => changed({ id: '../shop' })], ['a data folder that is no plain path', /no absolute path/,
  () => changed({ dataDir: '/srv/../etc' })], ['two apps of one folder', /two apps have the same dataDir/,
  () =>
    madeOf({ change: ({ apps }) => {
      apps.push({ ...apps[0], record: { ...apps[0].record, id: 'other', name: 'other' } })
    } })], ['an entry that leaves its folder', /its name leaves/, () => madeOf({ more: [{ name: '../../evil' }] })], [
  'a link out of it',
  /leaves the folder/,
  () => madeOf({ more: [{ name: 'host/history.db', type: '2', link: '/etc/passwd' }] })
], ['a link', /no backup has such/,
  () => madeOf({ more: [{ name: 'host/history.db', type: '2', link: '../manifest.json' }] })], ['another file',
  /no backup has such/, () => madeOf({ more: [{ name: 'apps/shop/.ssh' }] })], ['a token without secrets',
  /no backup has such/, () => madeOf({ more: [{ name: 'host/admin.token' }] })], ['a history that is none',
  /not a database/, () => madeOf({ database: Buffer.alloc(9999, 'none') })], ['a newer history',
  /expected schema version/, () => madeOf({ database: databaseWith('PRAGMA user_version = 99') })], ['another database',
  /no such table/, () => madeOf({ database: databaseWith('DROP TABLE tokens') })]] as [string, RegExp,
    () => Parameters<typeof archiveOf>][])
{
  test(`a backup with ${what} is refused, and nothing is changed`, async () => {
    const top = tempFolder()
    const { code, stderr } = await runCliHere(['restore', fileOf(archiveOf(...entries())), '--force'], {
      env: { CLUSTERDECK_HOST_DIR: path.join(top, 'host') }
    })
    const left = readdirSync(tmpdir()).filter((name) => name.startsWith('clusterdeck-restore-'))
    assert.deepEqual([code, readdirSync(top), left], [2, [], []], stderr)
    assert.match(stderr, why)
  })
}

test('a file is refused that others could have written, or that is no archive', async () => {
  const file = fileOf(gzipSync(tarOf(entryOf({ name: 'manifest.json' }))))
  chmodSync(file, 0o666)
  assert.match((await runCliHere(['restore', file])).stderr, /only root and this user can write, but .*others/)
  chmodSync(file, 0o600)
  writeFileSync(file, 'text')
  assert.match((await runCliHere(['restore', file])).stderr,
    /expected a backup of clusterdeck, received .*: incorrect header/)
  assert.match((await runCliHere(['restore', `${file}.none`])).stderr, /ENOENT/)
})
