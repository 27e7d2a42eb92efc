import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { findMaster } from '../../../server/cli/find-master.ts'
import { userId } from '../../../server/system/user.ts'
import { TOKEN } from '../../support/admin.ts'
import { openApps } from '../../support/apps.ts'
import { startFakeHost } from '../../support/fake-host.ts'
import { tempFolder } from '../../support/folder.ts'
import { lacksStrangers, OTHER_UID } from '../../support/stranger.ts'
import type { AppView } from '../../../server/host/api-apps.ts'
import type { Seen } from '../../support/event-log.ts'

const APPS = { dataDir: 'data', apps: { shop: { entry: 'shop.js' }, mail: { entry: 'mail.js', dataDir: 'post' } } }

test('the master of one of several apps is found by the name of the app', async () => {
  const cwd = folderWith(APPS)
  for (const [folder, app] of [['data/shop', 'shop'], ['post', 'mail']]) {
    mkdirSync(path.join(cwd, folder), { recursive: true, mode: 0o700 })
    writeFileSync(path.join(cwd, folder, 'master.json'),
      JSON.stringify({ adminUrl: `http://127.0.0.1:1/${app}`, pid: process.pid }))
    writeFileSync(path.join(cwd, folder, 'admin.token'), `token of ${app}\n`)
  }
  const [shop, mail] = [await findMaster({ app: 'shop' }, { env: {}, cwd }),
    await findMaster({}, { env: { CLUSTERDECK_APP: 'mail' }, cwd })]
  assert.deepEqual([shop.dataDir, shop.token], [path.join(cwd, 'data/shop'), 'token of shop'])
  assert.deepEqual([mail.dataDir, mail.token], [path.join(cwd, 'post'), 'token of mail'])
})

test('of several apps one has to be named, unless the master is', async () => {
  const cwd = folderWith(APPS)
  await assert.rejects(findMaster({}, { env: {}, cwd }), { code: 'invalid-config',
    message: /^app: expected one of shop, mail \(option --app\)/ })
  assert.equal((await findMaster({ url: 'http://127.0.0.1:1', token: 'a' }, { env: {}, cwd })).url,
    'http://127.0.0.1:1')
  await assert.rejects(findMaster({ dataDir: 'other' }, { env: {}, cwd }), { code: 'no-master' })
})

test('a deck is found by its name from any folder, whatever else the shell has set', async (t) => {
  const { env, pretend } = openApps(t, {})
  const [shop, mail] = [masterOf('shop'), masterOf('mail')]
  pretend({ name: 'shop', dataDir: shop })
  pretend({ name: 'mail', dataDir: mail })
  const cwd = tempFolder()
  assert.deepEqual(
    await findMaster({ name: 'shop' }, {
      env: { ...env, CLUSTERDECK_DATA_DIR: mail, CLUSTERDECK_APP: 'mail', CLUSTERDECK_URL: 'http://127.0.0.1:2',
        CLUSTERDECK_NAME: 'mail' },
      cwd
    }),
    { url: 'http://127.0.0.1:1', token: 'token of shop', fingerprint: null,
      recipient: { owner: userId(), processes: [{ pid: process.pid, startTime: null }], pidNamespace: null },
      dataDir: shop, app: null }
  )
  assert.equal((await findMaster({}, { env: { ...env, CLUSTERDECK_NAME: 'mail' }, cwd })).dataDir, mail)
  assert.equal((await findMaster({ dataDir: shop }, { env: { ...env, CLUSTERDECK_NAME: 'mail' }, cwd })).dataDir, shop)
})

test('a name that no deck has, or several, is refused with those that there are', async (t) => {
  const { env, pretend } = openApps(t, {})
  const place = { env, cwd: tempFolder() }
  await assert.rejects(findMaster({ name: 'shop' }, place), { code: 'no-master',
    message: 'no deck of this user is called "shop"; none runs' })
  const folders = [masterOf('a'), masterOf('b')].sort()
  for (const dataDir of folders) pretend({ name: 'shop', dataDir })
  pretend({ name: 'mail', dataDir: masterOf('mail') })
  await assert.rejects(findMaster({ name: 'shpo' }, place), { code: 'no-master',
    message: 'no deck of this user is called "shpo" (did you mean "shop"?); running: mail, shop' })
  await assert.rejects(findMaster({ name: 'shop' }, place), { code: 'usage',
    message: `--name: expected the name of one deck, received "shop", which 2 decks have; choose one by --data-dir: ${
      folders.join(', ')
    }` })
  for (const [key, flag] of Object.entries({ dataDir: '--data-dir', app: '--app', url: '--url' })) {
    await assert.rejects(findMaster({ name: 'mail', [key]: 'x' }, place), { code: 'usage',
      message: `--name: expected without ${flag}, received both` })
  }
})

test('an app of a host is found by folder and by name at its host, whose token and processes count', async (t) => {
  const { url, folder, env, view } = await startFakeHost(t, { shop: {} })
  const { cwd, dataDir } = view('shop') as Seen<AppView>
  const expected = { url: `${url}/apps/shop`, token: TOKEN, fingerprint: null,
    recipient: { owner: userId(), processes: [{ pid: process.pid, startTime: null }], pidNamespace: null }, dataDir,
    app: { name: 'shop', hostUrl: url, hostDir: folder } }
  assert.deepEqual(await findMaster({}, { env, cwd }), expected)
  assert.deepEqual(await findMaster({ name: 'shop' }, { env, cwd: tempFolder() }), expected)
  assert.deepEqual(
    await findMaster({ dataDir }, { env: { ...env, CLUSTERDECK_HOST_DIR: tempFolder() }, cwd: tempFolder() }),
    expected,
    'the folder of the app says which host'
  )
  chmodSync(folder, 0o777)
  await assert.rejects(findMaster({}, { env, cwd }), { code: 'data-dir-unusable' })
  chmodSync(folder, 0o700)
})

test('the token of a host goes where the host says, whatever the folder of an app says', async (t) => {
  const { url, folder, env, view } = await startFakeHost(t, { shop: {} })
  const { cwd, dataDir } = view('shop') as Seen<AppView>
  const announce = (fields: object) =>
    writeFileSync(path.join(dataDir, 'master.json'),
      JSON.stringify({ pid: process.pid, adminUrl: 'http://192.0.2.1/apps/shop', fingerprint: 'AA', host: folder,
        ...fields }))
  announce({})
  assert.deepEqual(await findMaster({}, { env, cwd }), { ...await findMaster({ name: 'shop' }, { env, cwd }),
    url: `${url}/apps/shop`, fingerprint: null })
  for (const fields of [{ host: 'relative' }, { adminUrl: 'http://192.0.2.1/apps/../x' }, {
    adminUrl: 'http://192.0.2.1/apps/shop/api'
  }, { adminUrl: 'http://192.0.2.1' }, { host: tempFolder() }]) {
    announce(fields)
    await assert.rejects(findMaster({}, { env, cwd }), { code: 'no-master' }, JSON.stringify(fields))
  }
})

test('the token of a host of another user than that of the folder goes nowhere', { skip: lacksStrangers },
  async (t) => {
    const { env, view } = await startFakeHost(t, { shop: {} })
    const { dataDir } = view('shop') as Seen<AppView>
    for (const file of ['', 'master.json']) chownSync(path.join(dataDir, file), OTHER_UID, OTHER_UID)
    await assert.rejects(findMaster({ dataDir }, { env, cwd: tempFolder() }), { code: 'no-master' })
  })

test('an app of the host that does not run is known by its name, and how to start it', async (t) => {
  const { env, view } = await startFakeHost(t, { shop: {}, mail: { state: 'stopped' },
    bad: { state: 'failed', reason: 'workers: expected an integer' } })
  const place = { env, cwd: tempFolder() }
  await assert.rejects(findMaster({ name: 'mail' }, place), { code: 'app-not-running', exitCode: 5,
    message: 'mail is stopped (clusterdeck start mail)' })
  await assert.rejects(findMaster({}, { env, cwd: String(view('mail')?.cwd) }), { code: 'app-not-running',
    message: 'mail is stopped (clusterdeck start mail)' })
  await assert.rejects(findMaster({ name: 'bad' }, place), { code: 'app-not-running',
    message: 'bad has failed: workers: expected an integer (clusterdeck start bad)' })
  await assert.rejects(findMaster({ name: 'mial' }, place), { code: 'no-master',
    message: 'no deck of this user is called "mial" (did you mean "mail"?); running: shop; not running: bad, mail' })
})

/** @returns the data folder of a master that says that it runs */
function masterOf (name: string): string {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'master.json'), JSON.stringify({ adminUrl: 'http://127.0.0.1:1', pid: process.pid }))
  writeFileSync(path.join(folder, 'admin.token'), `token of ${name}\n`)
  return folder
}

/** `values`: of its config file */
function folderWith (values: object) {
  const cwd = tempFolder()
  writeFileSync(path.join(cwd, 'clusterdeck.config.json'), JSON.stringify(values))
  return cwd
}
