import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { attempt } from '../../../server/errors.ts'
import fc from '../../support/fast-check.ts'
import { configText } from '../../../server/import/config-text.ts'
import { convertEcosystem } from '../../../server/import/convert.ts'
import { readEcosystem } from '../../../server/import/ecosystem-file.ts'
import { KEYS, namesOfKey } from '../../../server/import/keys.ts'
import { lookUpScript } from '../../../server/import/look.ts'
import { tempFolder } from '../../support/folder.ts'
import { assertRetold } from '../../support/golden.ts'
import { loadGenerated } from '../../support/generated-config.ts'
import { rareTest } from '../../support/rare.ts'
import { PM2_KEYS } from './pm2-keys.ts'
import type { Sight } from '../../../server/import/program.ts'

const FOLDER = fileURLToPath(new URL('../../fixtures/ecosystems/', import.meta.url))
/** What `module.mjs` asks for. */
const CPUS = Math.max(1, availableParallelism() - 1)
const FILES = [...readdirSync(FOLDER).filter((name) => /\.(cjs|mjs|json|yaml)$/.test(name) && name !== 'package.json'),
  'plain-js/ecosystem.config.js']

test('each of these files becomes a config that loads, with the values that are expected', async () => {
  const told = new Set<string>()
  await assertRetold(import.meta, 'ecosystems', async (file) => {
    told.add(file)
    const config = JSON.stringify(await loadGenerated((await imported(file)).text))
    return file === 'module.mjs' ? config.replace(`"workers":${CPUS}`, '"workers":"all CPUs but one"') : config
  })
  assert.deepEqual(FILES.filter((file) => !told.has(file)), [])
})

rareTest('what is written passes the linter', async () => {
  const folder = tempFolder()
  for (const [index, file] of FILES.entries())
    writeFileSync(path.join(folder, `${index}.mjs`), (await imported(file)).text)
  const { status, stdout } = spawnSync(process.execPath, ['node_modules/oxlint/bin/oxlint', '-c', '.oxlintrc.json',
    folder], { cwd: path.join(FOLDER, '../../..'), encoding: 'utf8' })
  assert.equal(status, 0, stdout)
})

test('cron_restart with autostart: false is a job of any program, and each explanation is written once', async () => {
  const common = { cron_restart: '@daily', autostart: false, merge_logs: true, instances: 2 }
  const given = [{ name: 'runs', script: 'jobs/a.js', cwd: 'jobs' }, { name: 'py', script: 'x.py' }, { name: 'ts',
    script: 'x.ts', interpreter: 'tsx' }, { name: 'npm', script: 'npm run x' }]
  const conversion = convertEcosystem(given.map((app) => ({ ...app, ...common })), { folder: '/srv', target: '/srv',
    look: (file, cwd) => ({ file: file.startsWith('npm') ? null : path.resolve(cwd, file.replace('jobs/', '')),
      runs: 'node' }) })
  const text = configText(conversion, { source: 'a file' })
  const { apps } = await loadGenerated(text)
  assert.deepEqual(
    Object.values(apps).map((app) =>
      Object.entries(app.jobs).map(([name, { cron, command }]) => [name, cron, command])
    ),
    [[['runs-job', '0 0 * * *', ['node', 'jobs/a.js']]], [['py', '0 0 * * *', ['python3', 'x.py']]], [['ts',
      '0 0 * * *', ['npx', '--no', 'tsx', 'x.ts']]], [['npm', '0 0 * * *', ['npm', 'run', 'x']]]]
  )
  for (const words of [/what is not\s+(\/\/\s+)?kept running is a job/g, /prints all workers together/g,
    /it is for workers/g]) assert.equal(text.match(words)?.length, words.source.includes('workers,') ? 2 : 1, text)
  assert.match(text, /^ {6}\/\/ Left out, as explained above: merge_logs, instances$/m)
})

test('--env puts the variables of env_<name> over env, and those of the deploy between', async () => {
  const { text } = await imported('deploy.cjs', { envName: 'production' })
  assert.deepEqual((await loadGenerated(text)).env, { APP_FROM: 'deploy', APP_SITE: 'deploy', PORT: '4326',
    NODE_ENV: 'production' })
  const { conversion } = await imported('env-production.cjs', { envName: 'production' })
  const [{ name, settings }] = conversion.apps
  assert.equal(name, 'web-production')
  assert.match(JSON.stringify(settings.get('env')), /"APP_LEVEL":"warn"/)
  await assert.rejects(imported('env-production.cjs', { envName: 'prod' }), { code: 'usage',
    message: '--env: expected one of production, staging, received "prod"' })
  await assert.rejects(imported('one-app.cjs', { envName: 'prod' }), /and none has any/)
})

test('pm2 deploy becomes a repository and a build, as far as that can be told, and the rest is named', async () => {
  const { text } = await imported('deploy.cjs')
  const comments = text.replace(/\n\s*\/\/\s*/g, ' ')
  assert.match(comments,
    /In place of pm2 deploy production, on the machine itself: clusterdeck deploy --git main --wait, .* Left out: user, host, path\./)
  assert.match(comments, /post-deploy without what it tells PM2, in the folder of the new release/)

  const notesOf = (production: object) =>
    convertEcosystem({ apps: [{ script: 'a.js' }], deploy: { production } }, { folder: '/srv', target: '/srv',
      look: nothing }).apps[0].notes.map((note) => note.text).join('\n')
  const repo = 'https://git.example.com/shop.git'
  assert.match(notesOf({ repo, ref: 'v1', 'post-deploy': 'pm2 stop web && npm ci' }),
    /post-deploy is left out, as it could not be read: pm2 stop web && npm ci\. Nearest: hooks\.build/)
  assert.match(notesOf({ repo, ref: 'v1' }), /clusterdeck deploy --git v1 --wait/)
  assert.match(notesOf({ repo, ref: '-x; rm' }), /deploy --git main/)
})

test('a program that Node does not run is started as PM2 would, without what needs Node; the file server of PM2 is left out', async () => {
  const { text, conversion: { foreign } } = await imported('other-programs.cjs')
  assert.deepEqual(foreign.map(({ name, reason }) => [name, reason]), [['static',
    'It is PM2\'s own server of static files']])
  assert.match(text, /\n\/\/ Left out: static\. .* Nearest: npm install http-server/)
})

test('no text ends the comment that it stands in', async () => {
  const apps = [{ script: 'a.js' },
    ...['\u2028', '\u2029', '\n', '\ud800'].map((end) => ({ name: end, script: 'b.py', args: [`${end}process.exit(1)`],
      env: { A: `${end}process.exit(1)` }, [`${end}process.exit(1)`]: 1 })
    )]
  const conversion = convertEcosystem(apps, { folder: '/srv', target: '/srv', look: nothing })
  const loaded = await loadGenerated(configText(conversion, { source: '\u2028process.exit(1)' }))
  assert.deepEqual(Object.values(loaded.apps).map(({ entry }) => entry), ['a.js', 'python3', 'python3', 'python3',
    'python3'])
})

test('a port for each instance keeps the shared one too', () => {
  const { notes, items } = one({ script: 'a.js', increment_var: 'PORT', instances: 2, env: { PORT: 3000 } })
  assert.equal(notes.length, 1)
  assert.match(String(items[1].note), /worker 1 also has 3001, worker 2 3002/)
})

test('each setting of PM2 becomes the one that does the same, or is left out with the reason', async () => {
  await assertRetold(import.meta, 'settings', (given) => {
    const { envName, ...value } = JSON.parse(given)
    const look = (script: string, cwd: string): Sight =>
      /^(\.\/server|run\.py)$/.test(script) ? { file: path.resolve(cwd, script), runs: 'other' } : nothing()
    const { apps: [{ settings, items }], items: above } = convertEcosystem(
      value.apps ? value : { script: 'a.js', ...value },
      { folder: '/srv', target: '/srv', look, envName }
    )
    const { workers, ...made } = Object.fromEntries(settings)
    const left = [...above, ...items].filter(({ fate }) => fate === 'left out').map(({ key, note }) =>
      `; without ${key}: ${note}`
    )
    return JSON.stringify({ ...workers !== 1 && { workers }, ...made }) + left.join('')
  })
})

test('filter_env with a list takes each variable of the shell that has a part of it', async (t) => {
  process.env.CLUSTERDECK_TEST_HIDDEN = 'x'
  t.after(() => {
    delete process.env.CLUSTERDECK_TEST_HIDDEN
  })
  const { env } = await loadGenerated(
    configText(
      convertEcosystem({ script: 'a.js', filter_env: ['TEST_HID'], env: { A: 1 } }, { folder: '/srv', target: '/srv',
        look: nothing }),
      { source: 'x' }
    )
  )
  assert.deepEqual(env, { CLUSTERDECK_TEST_HIDDEN: null, A: '1' })
})

test('apps get names that a config file can have, each once', () => {
  const names = ['shop', 'shop', '__proto__', 'my app!', '@scope/web', '', 7].map((name) => ({ name,
    script: 'server.js' })
  )
  assert.deepEqual(
    convertEcosystem(names, { folder: '/srv', target: '/srv', look: nothing }).apps.map(({ name }) => name),
    ['shop', 'shop-2', 'proto__', 'my-app', 'scope-web', 'server', '7']
  )
})

test('a config file elsewhere has paths from there, and says the working folder', () => {
  const { apps: [{ settings }] } = convertEcosystem({ script: 'a.js' }, { folder: '/srv/app', target: '/srv/conf',
    look: nothing })
  assert.deepEqual(Object.fromEntries(settings), { entry: '../app/a.js', cwd: '../app', workers: 1 })
})

test('every key that PM2 knows has a row, by all of its names', () => {
  for (const [key, also] of Object.entries(PM2_KEYS)) {
    assert.ok(KEYS[key], key)
    for (const name of also) assert.ok(namesOfKey(key).includes(name), `${key}: ${name}`)
  }
})

test('every key is told of, whatever becomes of it; one that nobody knows with the nearest', () => {
  for (const key of Object.keys(KEYS).flatMap(namesOfKey)) {
    if (namesOfKey('script').includes(key) || key === 'env_<name>') continue
    const { items } = one({ script: 'a.js', [key]: key.toLowerCase().endsWith('interpreter') ? 'node@20' : '1' })
    const item = items.find((each) => each.key === key)
    assert.ok(item?.fate !== 'left out' || item?.note, key)
  }
  assert.deepEqual(one({ script: 'a.js', max_memory_resart: '1G' }).items[1], { key: 'max_memory_resart',
    fate: 'left out', to: [], note: 'PM2 does not know it either (did you mean "max_memory_restart"?)' })
})

for (const [what, given, message] of [['nothing', undefined, /received nothing/], ['an object of something else', {
  app: []
}, /expected a list of apps, an object with "apps", or an app with "script", received an object without these/], [
  'no app',
  { apps: [] },
  /expected at least one app/
], ['a list with a text', { apps: [{ script: 'a.js' }, 'b.js'] },
  /apps\[1\]: expected an object, received a string/]] as [string, unknown, RegExp][])
{
  test(`${what} is refused`, () => {
    assert.throws(() => convertEcosystem(given, { folder: '/srv', target: '/srv', look: nothing }), {
      code: 'invalid-config',
      message
    })
  })
}

test('whatever stands in whatever key, the config loads', async () => {
  const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 20 }),
    fc.constantFrom('\'', '*/', '\n', '\u2028', '${x}', '</script>', '\ud800', 'max', '300M', 'npm', 'node', 'PORT',
      '0 3 * * *', '1h', '../x', '\0', '__proto__', 'python app.py', 'FOO=1 node a.js', 'a | b'))
  const scalar = fc.oneof(text, fc.integer(), fc.double(), fc.boolean(), fc.constant(null))
  const value = fc.oneof(scalar, fc.array(scalar, { maxLength: 4 }), fc.dictionary(text, scalar, { maxKeys: 4 }),
    fc.anything({ maxDepth: 2, withNullPrototype: false, withObjectString: false }).filter(isData))
  const key = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...Object.keys(KEYS), 'env_x') }, { weight: 1,
    arbitrary: text })
  const app = fc.record({ script: fc.oneof(fc.constantFrom('a.js', 'b.py'), text),
    rest: fc.dictionary(key, value, { maxKeys: 12 }) }).map(({ script, rest }) => ({ script, ...rest }))
  await fc.assert(fc.asyncProperty(fc.array(app, { minLength: 1, maxLength: 3 }), text, async (apps, source) => {
    const conversion = convertEcosystem({ apps }, { folder: '/srv', target: '/srv', look: nothing })
    if (conversion.apps.length > 0) await loadGenerated(configText(conversion, { source, remarks: [source] }))
  }), { numRuns: 150 })
})

async function imported (file: string, { envName }: { envName?: string } = {}) {
  const full = path.join(FOLDER, file)
  const folder = path.dirname(full)
  const { value, dropped } = await readEcosystem(full, { env: process.env })
  const conversion = convertEcosystem(value, { folder, target: folder, look: lookUpScript, envName })
  return { conversion, text: configText(conversion, { source: file, remarks: dropped }) }
}

function one (app: object) {
  const { apps: [converted] } = convertEcosystem(app, { folder: '/srv', target: '/srv', look: nothing })
  return converted
}

/** A machine on which nothing is installed. */
function nothing () {
  return { file: null, runs: null }
}

/** What can come out of a file. */
function isData (value: unknown) {
  // A BigInt.
  return attempt(() => JSON.stringify(value) !== undefined, false)
}
