import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { lstatSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openSqlite, SQLITE } from '../../db/sqlite.ts'
import { startDeck } from '../support/deck.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { doctor, typeIn, wordsOf } from '../support/mend.ts'
import { rareTest } from '../support/rare.ts'
import { createRepository } from '../support/repository.ts'
import { untilFound } from '../support/until.ts'

const SQLITE_URL = pathToFileURL(createRequire(import.meta.url).resolve(SQLITE)).href

/** It answers with its version and the orders in its database; `/order` adds one. */
const shop = (version: string) =>
  `import http from 'node:http'
import Database from '${SQLITE_URL}'
const db = new Database('shop.db')
http.createServer((request, response) => {
  if (request.url === '/order') db.exec('INSERT INTO orders DEFAULT VALUES')
  response.end(JSON.stringify({ version: '${version}', orders: db.prepare('SELECT count(*) FROM orders').pluck().get() }))
}).listen(0)
`

function fillShop (folder: string) {
  writeFileSync(path.join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(path.join(folder, 'app.js'), shop('one'))
  openSqlite(path.join(folder, 'shop.db')).exec('CREATE TABLE orders (id INTEGER PRIMARY KEY)').close()
}

/** Why no limit can be raised. */
const lacksRaise: string | false =
  spawnSync('bash', ['-c', 'ulimit -n 1024; prlimit --pid $$ --nofile=2048:2048'], { stdio: 'ignore' }).status === 0
    ? false
    : 'it takes root, prlimit and CAP_SYS_RESOURCE'

test('what is proposed for an app in its working folder makes a deploy come back, and loses nothing that it has written', async (t) => {
  const folder = tempFolder()
  fillShop(folder)
  mkdirSync(path.join(folder, 'uploads'))
  writeFileSync(path.join(folder, '.env'), 'LEVEL=debug')
  writeFileSync(path.join(folder, '.gitignore'), '.env\nuploads\n*.db\n')
  createRepository(folder).commit({}, 'one')
  const before = await doctor(['./app.js'], { cwd: folder })
  assert.equal(before.code, 6)
  const [{ how, text }] = before.of('in-place')?.mend ?? []
  assert.deepEqual([before.of('in-place')?.severity, how, text], ['warning', 'flags',
    '--releases-mode folder --releases-shared \'.env shop.db uploads/\''])

  const dataDir = tempFolder()
  const flags = wordsOf(String(text))
  const after = await doctor(['./app.js', '--data-dir', dataDir, ...flags], { cwd: folder })
  assert.deepEqual([after.of('in-place')?.severity, after.of('unshared-files')?.severity], ['ok', 'ok'])

  const deck = await startReadyHere(t, path.join(folder, 'app.js'), { workers: 1, dataDir,
    flags: [...flags, '--drain-idle-grace-ms', '100'], cwd: folder })
  const ask = async (route?: string) => JSON.parse(await deck.ask(route))
  await ask('/order')
  writeFileSync(path.join(folder, 'app.js'), shop('two'))
  assert.equal((await deck.rollout('deploy')).state, 'succeeded')
  assert.deepEqual(await ask('/order'), { version: 'two', orders: 2 })
  assert.equal((await deck.rollout({ kind: 'rollback', release: 'r1' })).state, 'succeeded')
  assert.deepEqual(await ask(), { version: 'one', orders: 2 })
  const running = await doctor(['--data-dir', dataDir], { cwd: folder })
  assert.deepEqual([running.report.isRunning, running.of('in-place')?.severity, running.of('unshared-files')?.severity],
    [true, 'ok', 'ok'])
})

test('an option line that is pasted into the config file mends it, and keeps what that has set', async () => {
  const folder = tempFolder()
  fillShop(folder)
  const write = (options: string) =>
    writeFileSync(path.join(folder, 'clusterdeck.config.json'),
      `{ "entry": "app.js", "releases": { "keep": 4 }${options} }`)
  write('')
  const before = await doctor([], { cwd: folder })
  const [{ how, text, where }] = before.of('in-place')?.mend ?? []
  assert.deepEqual([how, text, where], ['option', '"releases": {"keep":4,"mode":"folder","shared":["shop.db"]}',
    path.join(folder, 'clusterdeck.config.json')])
  write(`, ${text}`)
  const after = await doctor([], { cwd: folder })
  assert.deepEqual([after.of('in-place')?.severity, after.of('unshared-files')?.severity], ['ok', 'ok'])
})

test('a database in a release behind a link is moved to where all releases find it', async () => {
  const top = tempFolder()
  const release = path.join(top, 'releases', '1')
  mkdirSync(release, { recursive: true })
  fillShop(release)
  symlinkSync('releases/1', path.join(top, 'current'))
  const args = [path.join(top, 'current', 'app.js'), '--data-dir', path.join(top, 'data')]
  const before = await doctor(args, { cwd: top })
  assert.deepEqual([before.of('in-place')?.severity, before.of('unshared-files')?.severity], ['ok', 'error'])
  const [{ how, text }] = before.of('unshared-files')?.mend ?? []
  assert.equal(how, 'command')
  const { status, stderr } = typeIn(String(text), { cwd: top })
  assert.deepEqual([status, stderr], [0, ''])
  assert.equal((await doctor(args, { cwd: top })).of('unshared-files')?.severity, 'ok')
  assert.ok(lstatSync(path.join(release, 'shop.db')).isSymbolicLink())
  assert.equal(
    openSqlite(path.join(release, 'shop.db'), { readonly: true }).prepare('SELECT count(*) FROM orders').pluck().get(),
    0
  )
})

rareTest('what an app has written into the folder of its release is brought back by what is proposed', async (t) => {
  const folder = tempFolder()
  fillShop(folder)
  rmSync(path.join(folder, 'shop.db'))
  writeFileSync(path.join(folder, 'app.js'),
    shop('one').replace('new Database(\'shop.db\')',
      'new Database(\'shop.db\').exec(\'CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY)\')'))
  const start = (flags: string[]) =>
    startDeck(t, path.join(folder, 'app.js'), { workers: 1, dataDir: path.join(folder, '.clusterdeck'),
      flags: ['--releases-mode', 'folder', ...flags], cwd: folder })
  const deck = await start([])
  await deck.until({ ready: 1 })
  await deck.ask('/order')
  const before = await doctor([], { cwd: folder })
  assert.deepEqual([before.of('unshared-files')?.severity, before.of('keeper')?.severity], ['error', 'ok'])
  const [command, option] = before.of('unshared-files')?.mend ?? []
  const { status, stderr } = typeIn(command.text, { cwd: String(command.where) })
  assert.equal(status, 0, stderr)
  await deck.exited

  const next = await start(wordsOf(option.text))
  await next.until({ ready: 1 })
  assert.deepEqual(JSON.parse(await next.ask()), { version: 'one', orders: 1 })
  assert.equal((await doctor([], { cwd: folder })).of('unshared-files')?.severity, 'ok')
})

rareTest('an app that answers errors at first is asked by the path that it has for that', async (t) => {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'app.mjs'), `import http from 'node:http'
let isWarm = false
http.createServer((request, response) => {
  if (request.url === '/warm') isWarm = true
  response.writeHead(isWarm ? 200 : 503).end(request.url === '/healthz' ? 'ok' : 'hello')
}).listen(0)
if (process.argv.includes('--warm')) isWarm = true
`)
  const dataDir = tempFolder()
  const deck = await startReadyHere(t, path.join(folder, 'app.mjs'), { workers: 1, dataDir, cwd: folder })
  for (const route of ['/', '/', '/warm', '/']) await deck.ask(route)
  const { mend } = await untilChecked(['--data-dir', dataDir], folder, 'readiness', 'warning')
  assert.deepEqual(mend.map(({ text }) => text), ['--ready-path /healthz'])
  await deck.stop()
  await startReadyHere(t, path.join(folder, 'app.mjs'), { workers: 1, dataDir, flags: wordsOf(mend[0].text),
    args: ['--warm'], cwd: folder })
  assert.equal((await doctor(['--data-dir', dataDir], { cwd: folder })).of('readiness')?.severity, 'ok')
})

test('a low limit of files is raised in the shell that starts the app', { skip: lacksRaise }, () => {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'app.js'), '')
  const ask = 'clusterdeck doctor ./app.js --json'
  const find = (stdout: string) => JSON.parse(stdout).items.find(({ id }: { id: string }) => id === 'descriptors')
  const { severity, mend: [{ text }] } = find(typeIn(ask, { cwd: folder, before: 'ulimit -n 1024' }).stdout)
  assert.equal(severity, 'warning')
  assert.equal(find(typeIn(text, { cwd: folder, before: 'ulimit -n 1024', after: ask }).stdout).severity, 'ok')
})

rareTest('requests that a deploy has cut off are found, with more time for them', async (t) => {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'app.mjs'), `import http from 'node:http'
http.createServer((request, response) => { if (request.url === '/slow') response.write('…')
  else response.end() }).listen(0)
`)
  const dataDir = tempFolder()
  const deck = await startReadyHere(t, path.join(folder, 'app.mjs'), { workers: 1, dataDir,
    flags: ['--drain-deadline-ms', '200', '--ready-path', '/'], cwd: folder })
  const slow = await fetch(new URL('/slow', await deck.appUrl()))
  await deck.rollout('deploy')
  await assert.rejects(slow.text())
  const { mend } = await untilChecked(['--data-dir', dataDir], folder, 'drain', 'error')
  assert.deepEqual(mend.map(({ text }) => text), ['--drain-deadline-ms 4000'])
})

test('an app of a workspace shares what is in its own folder', async () => {
  const top = tempFolder()
  const folder = path.join(top, 'packages', 'shop')
  mkdirSync(path.join(folder, 'data'), { recursive: true })
  writeFileSync(path.join(top, 'package.json'), '{"workspaces":["packages/*"]}')
  fillShop(folder)
  openSqlite(path.join(folder, 'data', 'orders.sqlite')).exec('CREATE TABLE orders (id INTEGER)').close()
  const { of } = await doctor(['./app.js'], { cwd: folder })
  const [{ text }] = of('in-place')?.mend ?? []
  assert.equal(text, '--releases-mode folder --releases-shared \'data/ shop.db\'')
  assert.equal((await doctor(['./app.js', ...wordsOf(text)], { cwd: folder })).of('in-place')?.severity, 'ok')
})

test('a text for people, and exit codes for CI', async () => {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'app.js'), '')
  const { status, stdout } = typeIn('clusterdeck doctor ./app.js', { cwd: folder })
  assert.equal(status, 6)
  assert.match(stdout, /^\d+ problems?, \d+ of \d+ checks passed; the app does not run/)
  assert.match(stdout,
    /^WARNING {4}Releases run in place\n {11}A deploy replaces .*\n {11}add to clusterdeck start: --releases-mode folder$/m)
  assert.equal(typeIn('clusterdeck doctor ./none.js', { cwd: folder }).status, 2)
  assert.equal(typeIn('clusterdeck doctor -n nobody', { cwd: folder }).status, 5)
  assert.equal(readFileSync(path.join(folder, 'app.js'), 'utf8'), '')
})

/** Workers report each second. */
async function untilChecked (args: string[], cwd: string, id: string, severity: string) {
  return await untilFound(async () => {
    const found = (await doctor(args, { cwd })).of(id)
    return found?.severity === severity && found
  }, `${id} to be ${severity}`)
}
