import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { runCliHere } from '../../support/cli-here.ts'
import { tempFolder } from '../../support/folder.ts'

const TWO = { apps: { shop: { entry: 'shop.js' }, mail: { entry: 'mail.js', dependsOn: ['shop'] } } }

for (const [what, line, { config = TWO, env = {} }, expected] of [['an app that there is not', 'up shpo', {},
  /^clusterdeck: up: expected some of shop, mail, the apps of .*clusterdeck\.config\.json, received "shpo" \(did you mean "shop"\?\)\n$/],
  ['an app that there is not', 'down shop mial', {},
    /^clusterdeck: down: expected some of shop, mail, .*, received "mial" \(did you mean "mail"\?\)\n$/], [
  'a config file without apps',
  'up',
  { config: { entry: 'shop.js' } },
  /^clusterdeck: up: expected a config file with apps, received .*clusterdeck\.config\.json, which has none\n$/
], ['no config file', 'up --detach', { config: null },
  /^clusterdeck: up: expected a config file with apps, received no config file\n$/], ['a config file that is not there',
  'down --config other.json', {},
  /^clusterdeck: config: expected a file, received .*other\.json, which does not exist\n$/], ['apps in a circle',
  'up mail', { config: { apps: { shop: { dependsOn: ['mail'] }, mail: { dependsOn: ['shop'] } } } },
  /^clusterdeck: apps\.shop\.dependsOn in .*: expected no circle, received shop → mail → shop\n$/], [
  'one data folder for all',
  'up',
  { env: { CLUSTERDECK_DATA_DIR: 'data' } },
  /^clusterdeck: CLUSTERDECK_DATA_DIR: expected nothing with up, where each app has its own, received "data"\n$/
], ['a time that is none', 'up --timeout soon', {},
  /^clusterdeck: --timeout: expected a duration such as 500ms, 30s, 5m or 1h, received "soon"\n$/], [
  'a time of the environment that is none',
  'down',
  { env: { CLUSTERDECK_TIMEOUT: 'soon' } },
  /^clusterdeck: CLUSTERDECK_TIMEOUT: expected a duration such as 500ms, 30s, 5m or 1h, received "soon"\n$/
], ['an app that there is not', 'restart shpo', {},
  /^clusterdeck: restart: expected some of mail, shop, received "shpo" \(did you mean "shop"\?\)\n$/], [
  'all apps and one',
  'deploy shop --all',
  {},
  /^clusterdeck: deploy: expected either apps or --all, received both\n$/
], ['all apps and a deck', 'stop --all --data-dir data', {},
  /^clusterdeck: stop: expected either --all or --data-dir, received both\n$/], ['two releases', 'rollback shop r1 r2',
  {}, /^clusterdeck: rollback: expected a release such as r12 once, received r1 and r2\n$/], [
  'several apps without a number',
  'scale shop mail',
  {},
  /^clusterdeck: scale: expected an integer from 1 to 256, received "shop mail"\n$/
], ['several apps, to be watched', 'status shop mail --watch', {},
  /^clusterdeck: --watch: expected with one app, received several\n$/], ['several apps, as one file',
  'history shop mail --csv', {}, /^clusterdeck: --csv: expected with one app, received several\n$/], ['two apps',
  'restart shop --app mail', {}, /^clusterdeck: restart: expected either an app or --app, received both\n$/], [
  'an app and a deck',
  'restart shop -n other',
  {},
  /^clusterdeck: restart: expected either an app or --name, received both\n$/
], ['none of several apps, to be watched', 'status --watch', {},
  /^clusterdeck: app: expected one of shop, mail \(option --app\), .*, received none\n$/]] as [string, string,
    { config?: object | null, env?: Record<string, string> }, RegExp][])
{
  test(`${what} is refused by ${line}, and nothing is started`, async () => {
    const cwd = tempFolder()
    if (config) writeFileSync(path.join(cwd, 'clusterdeck.config.json'), JSON.stringify(config))
    const before = readdirSync(cwd)
    const { code, stdout, stderr } = await runCliHere(line.split(' '), { cwd, env })
    assert.match(stderr, expected)
    assert.deepEqual([code, stdout], [2, ''])
    assert.deepEqual(readdirSync(cwd), before)
  })
}
