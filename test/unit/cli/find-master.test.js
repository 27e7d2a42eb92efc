import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { findMaster } from '../../../server/cli/find-master.js'
import { tempFolder } from '../../support/folder.js'

const APPS = { dataDir: 'data', apps: { shop: { entry: 'shop.js' }, mail: { entry: 'mail.js', dataDir: 'post' } } }

test('the master of one of several apps is found by the name of the app', async () => {
  const cwd = folderWith(APPS)
  for (const [folder, app] of [['data/shop', 'shop'], ['post', 'mail']]) {
    mkdirSync(path.join(cwd, folder), { recursive: true })
    writeFileSync(path.join(cwd, folder, 'master.json'), JSON.stringify({ adminUrl: `http://127.0.0.1:1/${app}`, pid: process.pid }))
    writeFileSync(path.join(cwd, folder, 'admin.token'), `token of ${app}\n`)
  }
  const [shop, mail] = [await findMaster({ app: 'shop' }, { env: {}, cwd }), await findMaster({}, { env: { CLUSTERDECK_APP: 'mail' }, cwd })]
  assert.deepEqual([shop.dataDir, shop.token], [path.join(cwd, 'data/shop'), 'token of shop'])
  assert.deepEqual([mail.dataDir, mail.token], [path.join(cwd, 'post'), 'token of mail'])
})

test('of several apps one has to be named, unless the master is', async () => {
  const cwd = folderWith(APPS)
  await assert.rejects(findMaster({}, { env: {}, cwd }), { code: 'invalid-config', message: /^app: expected one of shop, mail \(option --app\)/ })
  assert.equal((await findMaster({ url: 'http://127.0.0.1:1', token: 'a' }, { env: {}, cwd })).url, 'http://127.0.0.1:1')
  await assert.rejects(findMaster({ dataDir: 'other' }, { env: {}, cwd }), { code: 'no-master' })
})

/** @param {object} values of its config file */
function folderWith (values) {
  const cwd = tempFolder()
  writeFileSync(path.join(cwd, 'clusterdeck.config.json'), JSON.stringify(values))
  return cwd
}
