import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import fc from '../../support/fast-check.ts'
import { configText } from '../../../server/import/config-text.ts'
import { convertEcosystem } from '../../../server/import/convert.ts'
import { readEcosystem } from '../../../server/import/ecosystem-file.ts'
import { KEYS } from '../../../server/import/keys.ts'
import { lookUpScript } from '../../../server/import/look.ts'
import { tempFolder } from '../../support/folder.ts'
import { loadGenerated } from '../../support/generated-config.ts'
import { rareTest } from '../../support/rare.ts'
import { PM2_KEYS } from './pm2-keys.ts'
import type { Sight } from '../../../server/import/program.ts'

const FOLDER = fileURLToPath(new URL('../../fixtures/ecosystems/', import.meta.url))
const FILES = [...readdirSync(FOLDER).filter((name) => /\.(cjs|mjs|json|yaml)$/.test(name) && name !== 'package.json'),
  'plain-js/ecosystem.config.js']
const web = { entry: 'apps/web.cjs', workers: 1 }

/** What each of the files becomes. */
const BECOMES: Record<string, object> = { 'one-app.cjs': { name: 'web', ...web, env: { PORT: '4301' } },
  'cluster-max.cjs': { name: 'web', ...web, workers: 'max', env: { PORT: '4302', APP_MODE: 'cluster' },
    recycle: { maxRssBytes: 300 * 1024 ** 2 } },
  'several-apps.cjs': {
    apps: { api: { entry: 'apps/api/server.cjs', cwd: 'apps/api', workers: 2, env: { PORT: '4303', APP_NAME: 'api' } },
      shop: { entry: 'apps/shop/server.cjs', cwd: 'apps/shop', workers: 1, env: { PORT: '4304', APP_NAME: 'shop' } },
      mail: { ...web, env: { PORT: '4305', APP_NAME: 'mail' } } }
  },
  'npm-script.cjs': { name: 'web', entry: 'npm', args: ['run', 'serve'], workers: 1,
    env: { PORT: '4306', APP_BY: 'npm' } },
  'npm-line.cjs': { name: 'web', entry: 'npm', args: ['run', 'serve', '--', '--port', '4307'], workers: 1 },
  'env-production.cjs': { name: 'web', ...web,
    env: { PORT: '4308', NODE_ENV: 'development', APP_LEVEL: 'debug', APP_LIMITS: '{"rows":10}' } },
  'restarts.cjs': {
    apps: {
      web: { ...web, env: { PORT: '4309' }, restart: { minDelayMs: 4000, maxDelayMs: 4000, resetAfterMs: 10_000 },
        recycle: { maxRssBytes: 1024 ** 3 } },
      stubborn: { ...web, env: { PORT: '4310' },
        restart: { minDelayMs: 100, maxDelayMs: 15_000, resetAfterMs: 30_000, policy: 'on-failure' } }
    }
  },
  'python-beside-node.cjs': {
    apps: { web: { ...web, env: { PORT: '4311' } },
      report: { entry: 'python3', args: ['./apps/report.py', '--every', '1 hour'], workers: 1,
        env: { APP_RATE: '100%' } } }
  },
  'other-programs.cjs': {
    apps: { web: { ...web, env: { PORT: '4332' } }, search: { entry: 'java', args: ['-jar', 'search.jar'], workers: 1 },
      backup: { entry: '/bin/sh', args: ['-c', 'tar czf - data | ssh backup "cat > data.tgz"'], workers: 1 } }
  },
  'functions.cjs': {
    apps: { one: { ...web, cwd: '.', env: { PORT: '4312', APP_NAME: 'one' } },
      two: { ...web, cwd: '.', env: { PORT: '4313', APP_NAME: 'two' } } }
  }, 'increment-port.cjs': { name: 'web', ...web, workers: 3, env: { PORT: '4314' }, portPerSlot: 4314 },
  'cron.cjs': {
    apps: { nightly: { entry: 'apps/job.cjs', workers: 1, restart: { policy: 'never', cron: '0 3 * * *' } },
      web: { ...web, env: { PORT: '4318' }, restart: { cron: '0 0 * * *' } } }
  },
  'services.yaml': {
    apps: { web: { ...web, workers: 2, env: { PORT: '4319', APP_DEBUG: 'true' } },
      admin: { ...web, workers: 2, args: ['--color', 'dark blue'], env: { PORT: '4320' } } }
  },
  'services.json': { name: 'web', ...web, workers: 2, args: ['--verbose', 'a b'],
    env: { PORT: '4321', APP_KIND: 'json' } }, 'loose.json': { name: 'web', ...web, env: { PORT: '4322' } },
  'module.mjs': { name: 'web', ...web, workers: Math.max(1, (await import('node:os')).availableParallelism() - 1),
    env: { PORT: '4323' } }, 'named-export.mjs': { name: 'web', ...web, workers: 'max', env: { PORT: '4324' } },
  'single-object.cjs': { ...web, env: { PORT: '4325' } },
  'deploy.cjs': { name: 'web', ...web, env: { PORT: '4326', APP_FROM: 'env' },
    releases: { git: 'git@example.com:shop.git' }, hooks: { build: { command: ['npm', 'ci'] } } },
  'logs.cjs': { name: 'web', ...web, env: { PORT: '4327' } },
  'quoted-args.cjs': { name: 'web', ...web, args: ['--title', 'two words', '--name=\'it is\'', '--path=/tmp/x', '-v'],
    execArgv: ['--max-old-space-size=128', '--no-warnings'], env: { PORT: '4328' } },
  'runners.cjs': {
    apps: { typed: { entry: 'node_modules/.bin/ts-node', args: ['--transpile-only', './src/index.ts'], workers: 1 },
      next: { entry: '/srv/front/node_modules/next/dist/bin/next', args: ['start', '-p', '3000'], cwd: '/srv/front',
        workers: 1 }, bin: { entry: 'next', args: ['start'], workers: 1 },
      line: { entry: 'dist/main.js', args: ['--port', '80'], execArgv: ['--enable-source-maps', '-r', 'dotenv/config'],
        env: { NODE_ENV: 'production' }, workers: 1 }, old: { entry: 'dist/main.js', node: '18.20.4', workers: 1 },
      yarn: { entry: 'yarn', args: ['start'], workers: 1 } }
  },
  'graceful.cjs': { name: 'web', ...web, workers: 2, env: { PORT: '4329' }, ready: { signal: 'message' },
    stop: { termGraceMs: 3000, message: 'text' } },
  'watch.cjs': { name: 'web', ...web, env: { PORT: '4330' }, watch: true },
  'plain-js/ecosystem.config.js': { name: 'web', entry: '../apps/web.cjs', workers: 1, env: { PORT: '4331' } } }

for (const file of FILES) {
  test(`${file} becomes a config that loads, with the values that are expected`, async () => {
    assert.deepEqual(await loadGenerated((await imported(file)).text), BECOMES[file])
  })
}

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

  const of = (deploy: object, envName?: string) => {
    const { apps: [{ settings, notes }], items } = convertEcosystem({ apps: [{ script: 'a.js' }], deploy }, {
      folder: '/srv',
      target: '/srv',
      look: nothing,
      envName
    })
    return { git: settings.get('releases.git'),
      build: (settings.get('hooks.build') as { command: string[] } | undefined)?.command,
      notes: notes.map((note) => note.text).join('\n'), item: items[0] }
  }
  const repo = 'https://git.example.com/shop.git'
  const built = (hook: string) => of({ production: { repo, ref: 'v1', 'post-deploy': hook } })
  for (const [hook, command] of [[
    'npm install && npm run build && pm2 startOrReload ecosystem.config.js --env production',
    ['sh', '-c', 'npm install && npm run build']
  ], ['yarn; pm2 reload all; pm2 save', ['yarn']], ['source ~/.nvm/nvm.sh && npm ci && npx pm2 reload web', ['bash',
    '-c', 'source ~/.nvm/nvm.sh && npm ci']], ['pm2 reload ecosystem.config.js', undefined], ['', undefined], [
    'pm2 stop web && npm ci && pm2 start web',
    undefined
  ], ['sh -c \'npm ci && pm2 reload all\'', undefined], ['npm ci || exit 1', undefined]] as [string,
    string[] | undefined][]) assert.deepEqual([built(hook).git, built(hook).build], [repo, command], hook)
  assert.match(built('pm2 stop web && npm ci').notes,
    /post-deploy is left out, as it could not be read: pm2 stop web && npm ci\. Nearest: hooks\.build/)
  assert.match(built('').notes, /clusterdeck deploy --git v1 --wait/)

  const two = { production: { repo, ref: 'origin/main' }, staging: { repo: 'git@example.com:other.git' } }
  assert.deepEqual([of(two).git, of(two).item], [undefined, { key: 'deploy', fate: 'left out', to: [],
    note: 'it has 2 environments. Nearest: clusterdeck import --env production' }])
  assert.deepEqual([of(two, 'staging').git, of(two, 'staging').item.fate], ['git@example.com:other.git', 'replaced'])
  for (const bad of ['ext::sh -c touch% x', '--upload-pack=x', 'https://ada:secret@example.com/shop.git', 7,
    undefined])
  {
    const { git, build, item } = of({ production: { repo: bad, 'post-deploy': 'npm ci' } })
    assert.deepEqual([git, build, item.fate, item.note?.includes('secret')], [undefined, undefined, 'left out', false],
      String(bad))
  }
  assert.match(of({ production: { repo, ref: '-x; rm' } }).notes, /deploy --git main/)
})

test('a program that Node does not run is started as PM2 would, without what needs Node; the file server of PM2 is left out', async () => {
  const { text, conversion: { foreign } } = await imported('other-programs.cjs')
  assert.deepEqual(foreign.map(({ name, reason }) => [name, reason]), [['static',
    'It is PM2\'s own server of static files']])
  assert.match(text, /\n\/\/ Left out: static\. .* Nearest: npm install http-server/)
  const of = (app: Record<string, unknown>, runs: Sight['runs'] = null) => {
    const look = (script: string, cwd: string) => ({ file: runs && path.resolve(cwd, script), runs })
    const { apps: [{ settings, items }] } = convertEcosystem([app], { folder: '/srv', target: '/srv', look })
    return { entry: settings.get('entry'), args: settings.get('args'), items, settings }
  }
  for (const [app, entry, args, runs] of [[{ script: 'app.py', interpreter: 'python3', interpreter_args: '-u' },
    'python3', ['-u', 'app.py']], [{ script: 'app.py', interpreter: '.venv/bin/python', args: ['--port', '80'] },
    '.venv/bin/python', ['app.py', '--port', '80']], [{ script: 'server.ts', interpreter: 'bun' }, 'bun', [
    'server.ts'
  ]], [{ script: 'main.ts', interpreter: 'deno', interpreter_args: 'run --allow-net' }, 'deno', ['run', '--allow-net',
    'main.ts']], [{ script: './server', args: '-v' }, './server', ['-v'], 'other'], [{ script: 'run.py',
    interpreter: 'none' }, 'run.py', [], 'other'], [{ script: 'run.sh' }, 'bash', ['run.sh']]] as [
      Record<string, unknown>,
      string,
      string[],
      'other'?
    ][])
  {
    const made = of(app, runs)
    assert.deepEqual([made.entry, made.args ?? []], [entry, args], JSON.stringify(app))
    assert.equal(made.settings.has('execArgv'), false)
  }
  const { settings, items } = of({ script: 'app.py', interpreter: 'python3', wait_ready: true,
    max_memory_restart: '200M' })
  assert.equal(settings.get('recycle.maxRssBytes'), 200 * 1024 ** 2)
  assert.equal(settings.has('ready.signal'), false)
  assert.match(String(items.find(({ key }) => key === 'wait_ready')?.note),
    /^expected "auto", .* as it sends no message$/)
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
  assert.deepEqual(one({ script: 'a.js', increment_var: 'SHARD', env: { SHARD: 0 } }).settings.get('portPerSlot'),
    undefined)
})

test('the name that PM2 gives the number of an instance is carried over', () => {
  for (const key of ['instance_var', 'instanceVar']) {
    const { settings } = one({ script: 'a.js', env: { A: 1 }, [key]: 'INSTANCE_ID' })
    assert.deepEqual([settings.get('instanceVariable'), settings.get('env')], ['INSTANCE_ID', { A: '1' }])
  }
  assert.equal(one({ script: 'a.js', instance_var: 'NODE_APP_INSTANCE' }).settings.get('instanceVariable'), undefined)
  for (const bad of ['', 'no name', 'CLUSTERDECK_SLOT', 7]) {
    const { settings, items } = one({ script: 'a.js', instance_var: bad })
    assert.equal(settings.get('instanceVariable'), undefined)
    assert.deepEqual([items[1].fate, items[1].note], ['left out',
      'expected the name of a variable that does not begin with CLUSTERDECK_'])
  }
})

for (const [given, expected] of [[{ instances: 'max' }, { workers: 'max' }], [{ instances: 0 }, { workers: 'max' }], [{
  instances: '4'
}, { workers: 4 }], [{ instances: 1000 }, { workers: 256 }], [{ instances: [] }, { workers: 1 }], [{
  autorestart: false
}, { 'restart.policy': 'never' }], [{ max_restarts: 0 }, { 'restart.policy': 'never' }], [{ stop_exit_codes: 0 }, {
  'restart.policy': 'on-failure'
}], [{ stop_exit_codes: [2] }, {}], [{ max_memory_restart: '1.5G' }, { 'recycle.maxRssBytes': 1.5 * 1024 ** 3 }], [{
  max_memory_restart: '1M'
}, {}], [{ max_memory_restart: 'much' }, {}], [{ listen_timeout: 60_000 }, { 'ready.timeoutMs': 60_000 }], [{
  listen_timeout: 3000
}, {}], [{ min_uptime: '1h' }, { 'restart.resetAfterMs': 3_600_000 }], [{ kill_timeout: 2 ** 40 }, {}], [{
  cron_restart: '*/5 * * * *'
}, { 'restart.cron': '*/5 * * * *' }], [{ cron: '0 0 4 * * MON' }, { 'restart.cron': '0 0 4 * * MON' }], [{
  cron_restart: 'at noon'
}, {}], [{ port: 80, env: { PORT: 1 } }, { env: { PORT: '80' } }], [{ env_file: 'conf/.env' }, {
  envFile: 'conf/.env'
}], [{ filter_env: 'SECRET' }, { env: { SECRET: null } }], [{ sourceMapSupport: true }, {
  execArgv: ['--enable-source-maps']
}], [{ interpreter: 'node', interpreterArgs: '--inspect' }, { execArgv: ['--inspect'] }], [{
  interpreter: '/opt/node20/bin/node'
}, { node: '/opt/node20/bin/node' }], [{ cwd: '/srv/a', script: 'b/c.js' }, { cwd: 'a', entry: 'a/b/c.js' }], [{
  cwd: '/opt/a/b/c/d',
  script: 'e.js'
}, { cwd: '../opt/a/b/c/d', entry: '../opt/a/b/c/d/e.js' }], [{ cwd: null, exec_mode: 'fork_mode' }, {}]] as [object,
  Record<string, unknown>][])
{
  test(`${JSON.stringify(given)} becomes ${JSON.stringify(expected)}`, () => {
    const { settings } = one({ script: 'a.js', ...given })
    assert.deepEqual(Object.fromEntries(settings), { entry: 'a.js', workers: 1, ...expected })
  })
}

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
    for (const name of also) assert.ok(KEYS[key].also?.includes(name), `${key}: ${name}`)
  }
})

test('every key is told of, whatever becomes of it; one that nobody knows with the nearest', () => {
  for (const key of Object.keys(KEYS).flatMap((each) => [each, ...KEYS[each].also ?? []])) {
    if (KEYS.script.also?.includes(key) || key === 'script' || key === 'env_<name>') continue
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
  try {
    return JSON.stringify(value) !== undefined
  } catch {
    // A BigInt.
    return false
  }
}
