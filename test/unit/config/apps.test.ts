import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { appsOf } from '../../../server/config/apps.ts'
import { loadConfig } from '../../../server/config/config.ts'
import { tempFolder } from '../../support/folder.ts'

const SHOP = { entry: 'shop.js', workers: 3 }
const MAIL = { entry: 'mail.js', drain: { idleGraceMs: 1 } }

test('one of several apps has what it says, over what stands beside them, in a data folder of its own', async () => {
  const { cwd, load } = folderWith({ workers: 2, drain: { deadlineMs: 7, idleGraceMs: 9 },
    apps: { shop: SHOP, mail: MAIL } })
  const [shop, mail] = [await load({ app: 'shop' }), await load({}, { CLUSTERDECK_APP: 'mail' })]
  assert.deepEqual([shop.entry, shop.workers, shop.drain.deadlineMs, shop.drain.idleGraceMs, shop.dataDir], [
    path.join(cwd, 'conf/shop.js'),
    3,
    7,
    9,
    path.join(cwd, '.clusterdeck/shop')
  ])
  assert.deepEqual([mail.entry, mail.workers, mail.drain.deadlineMs, mail.drain.idleGraceMs, mail.dataDir], [
    path.join(cwd, 'conf/mail.js'),
    2,
    7,
    1,
    path.join(cwd, '.clusterdeck/mail')
  ])
})

test('a flag counts more than what an app says, and a variable too', async () => {
  const { cwd, load } = folderWith({ apps: { shop: { ...SHOP, dataDir: 'own' } } })
  assert.equal((await load({ app: 'shop' })).dataDir, path.join(cwd, 'conf/own'))
  const config = await load({ app: 'shop', workers: '5', dataDir: 'given' }, { CLUSTERDECK_DRAIN_DEADLINE_MS: '8' })
  assert.deepEqual([config.workers, config.dataDir, config.drain.deadlineMs], [5, path.join(cwd, 'given'), 8])
})

test('the data folder that all have in common is that of the file', async () => {
  const { cwd, load } = folderWith({ dataDir: 'data', apps: { shop: SHOP } })
  assert.equal((await load({ app: 'shop' })).dataDir, path.join(cwd, 'conf/data/shop'))
})

test('the only one need not be named', async () => {
  assert.equal((await folderWith({ apps: { shop: SHOP } }).load()).workers, 3)
})

test('what an app depends on, and whether it is started without being named, is known of all, and no option of its own', async () => {
  const values = { apps: { mail: { ...MAIL, dependsOn: ['shop'], autostart: false }, shop: SHOP } }
  assert.equal((await folderWith(values).load({ app: 'mail' })).workers,
    (await folderWith({ apps: { mail: MAIL, shop: SHOP } }).load({ app: 'mail' })).workers)
  assert.deepEqual([...appsOf({ file: 'c.json', values })], [['mail', { dependsOn: ['shop'], autostart: false }], [
    'shop',
    { dependsOn: [], autostart: true }
  ]])
  assert.deepEqual([...appsOf({ file: 'c.json', values: { entry: 'shop.js' } })], [])
})

test('an app is called by its name, unless it or a flag says otherwise', async () => {
  const { load } = folderWith({ name: 'all', apps: { shop: SHOP, mail: { ...MAIL, name: 'post' } } })
  assert.deepEqual([(await load({ app: 'shop' })).name, (await load({ app: 'mail' })).name,
    (await load({ app: 'shop', name: 'other' })).name], ['shop', 'post', 'other'])
})

for (const [what, values, app, expected] of [['no name', { apps: { shop: SHOP, mail: MAIL } }, undefined,
  /^app: expected one of shop, mail \(option --app\), the apps of .*conf\/c\.json, received none$/], [
  'a name that there is not',
  { apps: { shop: SHOP, mail: MAIL } },
  'shpo',
  /^app: expected one of shop, mail .*, received "shpo" \(did you mean "shop"\?\)$/
], ['a name of what every object has', { apps: { shop: SHOP, mail: MAIL } }, 'constructor',
  /^app: expected one of shop, mail .*, received "constructor"/], ['a name in a file of one app', { entry: 'shop.js' },
  'shop', /^app: expected a config file with apps, received "shop" and .*conf\/c\.json, which has none$/], [
  'apps that are a list',
  { apps: [SHOP] },
  undefined,
  /^apps in .*: expected an object of apps, .* received \[/
], ['no apps', { apps: {} }, undefined, /^apps in .*: expected an object of apps, .* received \{\}$/], [
  'an app that is no object',
  { apps: { shop: 'shop.js' } },
  'shop',
  /^apps\.shop in .*: expected an object of options, received "shop\.js"$/
], ['a name that leads elsewhere', { apps: { '../shop': SHOP } }, undefined,
  /^apps in .*: expected a name of letters, digits, .* received "\.\.\/shop"$/], ['an option that there is not', {
  apps: { shop: { ...SHOP, worker: 1 } }
}, 'shop', /^unknown option "worker" in .*\(did you mean "workers"\?\)$/], ['a dependency that is no list', {
  apps: { shop: SHOP, mail: { dependsOn: 'shop' } }
}, 'shop', /^apps\.mail\.dependsOn in .*c\.json: expected a list of names of apps, received "shop"$/], [
  'a dependency that there is not',
  { apps: { shop: SHOP, mail: { dependsOn: ['shpo'] } } },
  'shop',
  /^apps\.mail\.dependsOn in .*: expected some of shop, mail, received "shpo" \(did you mean "shop"\?\)$/
], ['a dependency of what every object has', { apps: { shop: SHOP, mail: { dependsOn: ['toString'] } } }, 'shop',
  /^apps\.mail\.dependsOn in .*: expected some of shop, mail, received "toString"$/], ['an app that depends on itself',
  { apps: { shop: { dependsOn: ['shop'] } } }, 'shop',
  /^apps\.shop\.dependsOn in .*: expected other apps, received "shop" itself$/], ['apps that depend on each other', {
  apps: { shop: { dependsOn: ['mail'] }, mail: { dependsOn: ['shop'] } }
}, 'shop', /^apps\.shop\.dependsOn in .*: expected no circle, received shop → mail → shop$/], [
  'a data folder of all that is none',
  { dataDir: 7, apps: { shop: SHOP } },
  'shop',
  /^dataDir in .*: expected .*, received 7$/
]] as [string, object, string | undefined, RegExp][]) {
  test(`${what} is refused`, async () => {
    await assert.rejects(folderWith(values).load({ app }), { message: expected })
  })
}

test('a name without a config file is refused', async () => {
  await assert.rejects(loadConfig({ flags: { app: 'shop' }, env: {}, cwd: tempFolder() }), { code: 'invalid-config',
    message: 'app: expected a config file with apps, received "shop" and no config file' })
})

/** `values`: of a config file in a folder of its own */
function folderWith (values: object) {
  const cwd = tempFolder()
  mkdirSync(path.join(cwd, 'conf'))
  for (const [name, text] of Object.entries({ 'c.json': JSON.stringify(values), 'shop.js': '', 'mail.js': '' }))
    writeFileSync(path.join(cwd, 'conf', name), text)
  return { cwd,
    load: (flags: Record<string, unknown> = {}, env: Record<string, string> = {}) =>
      loadConfig({ flags: { config: 'conf/c.json', ...flags }, env, cwd }) }
}
