import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { runCliHere } from '../../support/cli-here.ts'
import { tempFolder } from '../../support/folder.ts'
import { play } from '../../support/transcript.ts'

const TWO = { apps: { shop: { entry: 'shop.js' }, mail: { entry: 'mail.js', dependsOn: ['shop'] } } }
const CIRCLE = { apps: { shop: { dependsOn: ['mail'] }, mail: { dependsOn: ['shop'] } } }

/** What is typed in a folder with a config file, and nothing is started. `config`: null: there is no file */
const REFUSED: [what: string, config: object | null, transcript: string, env?: Record<string, string>][] = [[
  'an app that there is not',
  TWO,
  `
    $ up shpo
    !! up: expected some of shop, mail, the apps of …clusterdeck.config.json, received "shpo" (did you mean "shop"?)
    $ down shop mial
    !! down: expected some of shop, mail, …, received "mial" (did you mean "mail"?)
    $ restart shpo
    !! restart: expected some of mail, shop, received "shpo" (did you mean "shop"?)`
], ['a config file without apps', { entry: 'shop.js' }, `
    $ up
    !! up: expected a config file with apps, received …clusterdeck.config.json, which has none`], ['no config file',
  null, `
    $ up --detach
    !! up: expected a config file with apps, received no config file
    $ down --config other.json
    !! config: expected a file, received …other.json, which does not exist`], ['apps in a circle', CIRCLE, `
    $ up mail
    !! apps.shop.dependsOn in …: expected no circle, received shop → mail → shop`], ['one data folder for all', TWO, `
    $ up
    !! CLUSTERDECK_DATA_DIR: expected nothing with up, where each app has its own, received "data"`, {
  CLUSTERDECK_DATA_DIR: 'data'
}], ['a time that is none', TWO, `
    $ up --timeout soon
    !! --timeout: expected a duration such as 500ms, 30s, 5m or 1h, received "soon"`], [
  'a time of the environment that is none',
  TWO,
  `
    $ down
    !! CLUSTERDECK_TIMEOUT: expected a duration such as 500ms, 30s, 5m or 1h, received "soon"`,
  { CLUSTERDECK_TIMEOUT: 'soon' }
], ['more than one way to say which app', TWO, `
    $ deploy shop --all
    !! deploy: expected either apps or --all, received both
    $ stop --all --data-dir data
    !! stop: expected either --all or --data-dir, received both
    $ restart shop --app mail
    !! restart: expected either an app or --app, received both
    $ restart shop -n other
    !! restart: expected either an app or --name, received both
    $ rollback shop r1 r2
    !! rollback: expected a release such as r12 once, received r1 and r2`], [
  'several apps, or none, where that is not possible',
  TWO,
  `
    $ scale shop mail
    !! scale: expected an integer from 1 to 256, received "shop mail"
    $ status shop mail --watch
    !! --watch: expected with one app, received several
    $ history shop mail --csv
    !! --csv: expected with one app, received several
    $ status --watch
    !! app: expected one of shop, mail (option --app), …, received none`
]]

for (const [what, config, transcript, env] of REFUSED) {
  test(`${what} is refused, and nothing is started`, async () => {
    const cwd = tempFolder()
    if (config) writeFileSync(path.join(cwd, 'clusterdeck.config.json'), JSON.stringify(config))
    const before = readdirSync(cwd)
    await play(transcript, (words) => runCliHere(words, { cwd, env }))
    assert.deepEqual(readdirSync(cwd), before)
  })
}
