import assert from 'node:assert/strict'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readEcosystem } from '../../../server/import/ecosystem-file.ts'
import { durationText } from '../../../server/lifecycle/duration.ts'
import { runCliHere } from '../../support/cli-here.ts'
import { tempFolder } from '../../support/folder.ts'
import { play } from '../../support/transcript.ts'

const FIXTURES = fileURLToPath(new URL('../../fixtures/ecosystems/', import.meta.url))

/** `fixture`: becomes the ecosystem.config.cjs of the folder */
function place (fixture?: string) {
  const cwd = tempFolder()
  if (fixture) cpSync(path.join(FIXTURES, fixture), path.join(cwd, 'ecosystem.config.cjs'))
  const at = (name: string) => path.join(cwd, name)
  return { cwd, at, run: (args: string[], env = {}) => runCliHere(['import', ...args], { cwd, env }) }
}

test('import finds the file of the folder, writes the config beside it, and says what became of each key and what to type', async () => {
  const { at, run } = place('cluster-max.cjs')
  const { code, stdout, stderr } = await run([])
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^web\nPM2 +IS +CLUSTERDECK\n/)
  assert.match(stdout, /^max_memory_restart +carried over +recycle\.maxRssBytes/m)
  assert.match(stdout, /clusterdeck\.config\.mjs is written\. Check it, then start it by: clusterdeck start\n$/)
  assert.match(readFileSync(at('clusterdeck.config.mjs'), 'utf8'), /maxRssBytes: 314572800/)
})

test('several apps are started by one command', async () => {
  const { stdout } = await place('several-apps.cjs').run(['--output', 'conf.mjs'])
  assert.match(stdout, /start all 3 apps by: clusterdeck up --detach --config conf\.mjs\n$/)
})

test('import overwrites nothing without --force', async () => {
  const { at, run } = place('one-app.cjs')
  writeFileSync(at('clusterdeck.config.mjs'), 'mine')
  assert.deepEqual(await run([]), { code: 2, stdout: '',
    stderr: `clusterdeck: --output: expected a file that does not exist yet, or --force, received ${
      at('clusterdeck.config.mjs')
    }\n` })
  assert.equal(readFileSync(at('clusterdeck.config.mjs'), 'utf8'), 'mine')
  assert.equal((await run(['--force'])).code, 0)
  assert.match(readFileSync(at('clusterdeck.config.mjs'), 'utf8'), /entry: 'apps\/web\.cjs'/)
})

test('--print prints the config alone to stdout, and writes nothing', async () => {
  const { at, run } = place('one-app.cjs')
  const { code, stdout, stderr } = await run(['ecosystem.config.cjs', '--print'])
  assert.equal(code, 0)
  assert.match(stdout, /^\/\/ Made by .*\n\nexport default \{\n[^]*\n\}\n$/)
  assert.match(stderr, /^web\n/)
  assert.equal(existsSync(at('clusterdeck.config.mjs')), false)
})

test('a config is no more readable than the file that it is made from', async () => {
  const { at, run } = place('one-app.cjs')
  chmodSync(at('ecosystem.config.cjs'), 0o600)
  await run([])
  assert.equal(statSync(at('clusterdeck.config.mjs')).mode & 0o777, 0o600)
})

test('where no app has a program, nothing is written, and what is nearest is printed', async () => {
  const { at, run } = place()
  writeFileSync(at('process.json'), JSON.stringify({ apps: [{ name: 'report', script: 'serve' }] }))
  const { code, stdout, stderr } = await run([])
  assert.deepEqual([code, stderr], [1,
    'clusterdeck: import: expected an app with a program, received 1 without a program; nothing is written\n'])
  assert.match(stdout, /Left out: report\..* Nearest: npm install http-server/s)
  assert.equal(existsSync(at('clusterdeck.config.mjs')), false)
})

for (const [what, name, text, reason] of [['throws', 'ecosystem.config.cjs', 'throw new Error("no database\\nhere")',
  'no database'], ['is no JavaScript', 'ecosystem.config.cjs', 'module.exports = }', 'Unexpected token'], [
  'ends the process',
  'ecosystem.config.cjs',
  'process.exit(0)',
  'it ended the process'
], ['fails later', 'ecosystem.config.mjs',
  'setImmediate(() => { throw new TypeError("later") }); await new Promise(() => {})', 'TypeError: later'], [
  'has a circle',
  'ecosystem.config.cjs',
  'const app = { script: "a.js" }; app.env = { app }; module.exports = app',
  'a circle'
], ['is no YAML', 'ecosystem.yaml', 'apps: [', 'Flow sequence'], ['is no JSON, nor nearly', 'process.json',
  '{ "apps": ', 'Unexpected']])
{
  test(`a file that ${what} is refused with the reason`, async () => {
    const { at, run } = place()
    writeFileSync(at(name), text)
    const { code, stderr } = await run([])
    assert.equal(code, 2)
    assert.match(stderr,
      new RegExp(`^clusterdeck: .*${name}: expected a file of PM2 that loads, received: .*${reason}.*\\n$`))
  })
}

test('a file that never comes to its end is given up, and its process ended', async () => {
  const { at } = place()
  writeFileSync(at('slow.mjs'),
    `import { writeFileSync } from 'node:fs'; writeFileSync(${
      JSON.stringify(at('pid'))
    }, String(process.pid)); for (;;);`)
  // On a busy machine its process may be given up before it has begun: then there is nobody whose end could be seen.
  for (let patienceMs = 500; !existsSync(at('pid')); patienceMs *= 4) {
    await assert.rejects(readEcosystem(at('slow.mjs'), { env: process.env, patienceMs }), { code: 'invalid-config',
      message: new RegExp(`received: nothing within ${durationText(patienceMs)}$`) })
  }
  assert.throws(() => process.kill(Number(readFileSync(at('pid'), 'utf8')), 0), { code: 'ESRCH' })
})

test('what a file has begun is not waited for', async () => {
  const { at } = place()
  writeFileSync(at('timer.cjs'), 'setInterval(() => {}, 1000); module.exports = { script: "a.js" }')
  assert.deepEqual(await readEcosystem(at('timer.cjs'), { env: process.env }), { value: { script: 'a.js' },
    dropped: [] })
})

test('import without a file, with one that is none, or with what does not go together is refused', async () => {
  await play(`
    $
    !! import: expected a file of PM2, such as ecosystem.config.js, or --pm2, received neither…
    $ missing.js
    !! …received …missing.js, which does not exist…
    $ ecosystem.config.cjs --output config.js
    !! --output: expected a file that ends with .mjs, received config.js
    $ --pm2 ecosystem.config.cjs
    !! --pm2: expected without a file, received ecosystem.config.cjs
    $ --pm2 --env production
    !! --env: expected without --pm2, …
    $ a b
    !! too many arguments for "import"…`, place().run)
})

test('--pm2 asks a PM2 that runs, and starts none', async () => {
  const { at, run } = place()
  const bin = at('bin')
  mkdirSync(bin)
  const list = [{ name: 'shop',
    pm2_env: { name: 'shop', pm_exec_path: at('server.js'), pm_cwd: at('.'), exec_mode: 'fork_mode',
      env: { TOKEN_OF_SHOP: 'hush', PM2_HOME: at('.pm2') } } }]
  writeFileSync(path.join(bin, 'pm2'),
    `#!/bin/sh\necho asked > '${at('asked')}'\necho '>>>> In-memory PM2 is out-of-date'\necho '${
      JSON.stringify(list)
    }'\n`, { mode: 0o755 })
  const env = { PM2_HOME: at('.pm2'), PATH: `${bin}:${process.env.PATH}` }
  assert.match((await run(['--pm2'], env)).stderr, /^clusterdeck: --pm2: expected a PM2 that runs, received none/)
  assert.equal(existsSync(at('asked')), false)

  mkdirSync(at('.pm2'))
  writeFileSync(at('.pm2/pm2.pid'), String(process.pid))
  const { code, stdout, stderr } = await run(['--pm2'], env)
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /^shop: these may be secret: TOKEN_OF_SHOP\./m)
  assert.equal(statSync(at('clusterdeck.config.mjs')).mode & 0o777, 0o600)
  assert.match(readFileSync(at('clusterdeck.config.mjs'), 'utf8'), /TOKEN_OF_SHOP: 'hush'/)
})
