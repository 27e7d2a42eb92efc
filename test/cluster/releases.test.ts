import assert from 'node:assert/strict'
import { existsSync, mkdirSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { runCli, startReady } from '../support/deck.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import { createRepository } from '../support/repository.ts'
import type { DeckClient as Deck } from '../support/deck-client.ts'

/** `version`: an app that says which one it is, and what it was started with */
function writeApp (folder: string, version: string) {
  mkdirSync(path.join(folder, 'node_modules', 'dep'), { recursive: true })
  writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: 'told', version, type: 'module' }))
  writeFileSync(path.join(folder, 'node_modules', 'dep', 'index.js.new'), `export default ${JSON.stringify(version)}`)
  renameSync(path.join(folder, 'node_modules', 'dep', 'index.js.new'),
    path.join(folder, 'node_modules', 'dep', 'index.js'))
  writeFileSync(path.join(folder, 'app.js'), `
    import http from 'node:http'
    import dep from './node_modules/dep/index.js'
    const told = { version: ${
    JSON.stringify(version)
  }, dep, release: process.env.CLUSTERDECK_RELEASE, cwd: process.cwd(), args: process.argv.slice(2), level: process.env.LEVEL, gone: process.env.GONE }
    http.createServer((_request, response) => response.end(JSON.stringify(told))).listen(0)
  `)
}

type Told = { version: string, release: string, cwd: string, level: string, args: string[], pid: number }

/** @returns what the worker tells of itself; there is only one */
async function ask (deck: Deck): Promise<Told> {
  return JSON.parse(await deck.ask())
}

/** `deck`: SIGKILLs the one worker and waits for the next */
async function killWorker (deck: Deck) {
  const { workers: [{ id, pid }] } = await deck.until({ ready: 1 })
  process.kill(pid, 'SIGKILL')
  await deck.untilStatus(
    ({ readyWorkers, workers }) => readyWorkers === 1 && workers.length === 1 && Number(workers[0].id) > id,
    'the next worker'
  )
}

/** Until the rollout has succeeded. */
async function deploy (deck: Deck, order: object = {}) {
  const { state, reason } = await deck.rollout({ kind: 'deploy', ...order })
  assert.equal(state, 'succeeded', reason ?? undefined)
  await deck.until({ ready: 1 })
}

test('a worker that is killed comes back on its own release: what a link led to, or a path that was named', async (t) => {
  const root = tempFolder()
  for (const version of ['v1', 'v2', 'v3']) writeApp(path.join(root, version), version)
  symlinkSync('v1', path.join(root, 'current'))
  const deck = await startReady(t, path.join(root, 'current', 'app.js'), { workers: 1,
    flags: ['--releases-root', root, '--cwd', path.join(root, 'current')] })

  symlinkSync('v2', path.join(root, 'next'))
  renameSync(path.join(root, 'next'), path.join(root, 'current'))
  await killWorker(deck)
  assert.deepEqual(pick(await ask(deck)), { version: 'v1', release: 'r1', cwd: path.join(root, 'v1') })
  await deploy(deck)
  assert.deepEqual(pick(await ask(deck)), { version: 'v2', release: 'r2', cwd: path.join(root, 'v2') })

  await deploy(deck, { path: path.join(root, 'v3') })
  await killWorker(deck)
  assert.deepEqual(pick(await ask(deck)), { version: 'v3', release: 'r3', cwd: path.join(root, 'v3') })
  const { body: { items } } = await deck.api('/releases')
  assert.deepEqual(items.map(({ id, mode, path: where, outcome, inUse }) => [id, mode, where, outcome, inUse]), [['r3',
    'path', path.join(root, 'v3'), 'succeeded', true], ['r2', 'symlink', path.join(root, 'v2'), 'succeeded', false], [
    'r1',
    'symlink',
    path.join(root, 'v1'),
    'succeeded',
    false
  ]])

  const refused = await deck.post('/rollouts', { kind: 'deploy', path: path.dirname(root) })
  assert.deepEqual([refused.status, refused.body.code], [422, 'path-refused'])
  assert.equal((await deck.status()).release.id, 'r3')

  await deck.loseMaster()
  await deck.until({ ready: 1 })
  assert.deepEqual(pick(await ask(deck)), { version: 'v3', release: 'r3', cwd: path.join(root, 'v3') })
})

rareTest(
  'a release folder is what its workers run, whatever is done to the app\'s, until the next deploy; also under the next master',
  async (t) => {
    const app = tempFolder()
    writeApp(app, 'one')
    const commit = createRepository(app).commit({}, 'one')
    writeFileSync(path.join(app, 'settings.json'),
      JSON.stringify({ releases: { mode: 'folder' }, envFile: 'app.env', env: { GONE: null } }))
    writeFileSync(path.join(app, 'app.env'), 'LEVEL=low\n')
    const deck = await startReady(t, path.join(app, 'app.js'), { workers: 1, flags: ['--config', 'settings.json'],
      env: { GONE: 'not' }, args: ['--told'], dataDir: path.join(app, '.data') })
    const one = { version: 'one', dep: 'one', release: 'r1', cwd: path.join(app, '.data', 'releases', 'r1'),
      args: ['--told'], level: 'low' }
    assert.deepEqual(await ask(deck), one)

    writeApp(app, 'two')
    writeFileSync(path.join(app, 'app.env'), 'LEVEL=high\n')
    await killWorker(deck)
    assert.deepEqual(await ask(deck), one)
    await deck.loseMaster()
    const { release } = await deck.until({ ready: 1 })
    assert.deepEqual(await ask(deck), one)
    assert.deepEqual([release.id, release.mode, release.environmentChanged, release.git], ['r1', 'folder', undefined, {
      commit,
      branch: 'main',
      isDirty: false,
      author: 'Ada',
      subject: 'one'
    }])

    await deploy(deck)
    await killWorker(deck)
    assert.deepEqual(await ask(deck), { ...one, version: 'two', dep: 'two', release: 'r2',
      cwd: path.join(app, '.data', 'releases', 'r2'), level: 'high' })
    const { body: second } = await deck.api('/releases/r2')
    assert.deepEqual([second.package?.version, second.git?.isDirty, second.changed?.package,
      second.changed?.environment], ['two', true, true, ['LEVEL']])
  }
)

test('variables and arguments are read anew at each deploy, and only there; a configuration that is wrong changes nothing', async (t) => {
  const app = tempFolder()
  writeApp(app, 'one')
  const settings = path.join(app, 'clusterdeck.config.mjs')
  writeFileSync(path.join(app, 'level.mjs'), 'export default "secret-low"')
  writeFileSync(settings, 'import LEVEL from "./level.mjs"\nexport default { env: { LEVEL }, args: ["first"] }')
  const deck = await startReadyHere(t, path.join(app, 'app.js'), { workers: 1 })
  assert.equal((await ask(deck)).level, 'secret-low')

  // What the file imports is no more held on to than the file itself.
  writeFileSync(path.join(app, 'level.mjs'), 'export default "secret-high"')
  writeFileSync(settings, 'import LEVEL from "./level.mjs"\nexport default { env: { LEVEL }, args: ["second"] }')
  await killWorker(deck)
  const { level, args } = await ask(deck)
  assert.deepEqual([level, args], ['secret-low', ['first']])
  await deploy(deck)
  assert.deepEqual([(await ask(deck)).level, (await ask(deck)).args], ['secret-high', ['second']])

  for (const [text, said] of [['export default { stop: { termGraceMs: "long" } }', /termGraceMs/], ['export default {',
    /Unexpected/], ['process.exit(7)', /ended the process/], ['export default { wrokers: 3 }',
    /did you mean "workers"/], ['export default { env: { LEVEL: () => {} } }', /could not be cloned/]] as [string,
      RegExp][])
  {
    writeFileSync(settings, text)
    const { status, body } = await deck.post('/rollouts', { kind: 'deploy' })
    assert.deepEqual([status, body.code], [422, 'invalid-config'], text)
    assert.match(String(body.detail), said)
  }
  await killWorker(deck)
  assert.deepEqual([(await ask(deck)).level, (await ask(deck)).release], ['secret-high', 'r2'])
  const { body: { changed, environment } } = await deck.api('/releases/r2')
  assert.deepEqual([changed?.environment, changed?.arguments, environment?.names], [['LEVEL'], true, ['LEVEL']])
  const told = JSON.stringify([await deck.status(), await deck.history('limit=1000'),
    (await deck.api('/releases')).body])
  assert.doesNotMatch(told, /secret-|"second"/)
})

function pick ({ version, release, cwd }: Told) {
  return { version, release, cwd }
}

rareTest(
  'a start in a folder behind a link: each deploy follows it, a command typed there finds the deck, and old folders may go with all that is in them',
  async (t) => {
    const top = realpathSync(tempFolder())
    const release = (name: string) => path.join(top, 'releases', name)
    const current = path.join(top, 'current')
    const turnTo = (name: string) => {
      symlinkSync(path.join('releases', name), `${current}.new`)
      renameSync(`${current}.new`, current)
    }
    for (const name of ['1', '2']) writeApp(release(name), `${name}.0.0`)
    turnTo('1')
    const dataDir = path.join(release('1'), '.clusterdeck')
    const deck = await startReady(t, null, { workers: 1, cwd: current, env: { PWD: current }, dataDir,
      flags: ['app.js', '--ready-signal', 'listening'] })
    assert.equal((await ask(deck)).cwd, release('1'))

    turnTo('2')
    const typed = await runCli(['deploy', '--wait', '--json'], { cwd: current, env: { PWD: current } })
    assert.equal(typed.code, 0, typed.stderr)
    const { version, cwd } = await ask(deck)
    assert.deepEqual([version, cwd], ['2.0.0', release('2')])

    rmSync(release('1'), { recursive: true })
    const { message } = await deck.untilEvent('unexpected', { message: /data folder/ })
    assert.equal(message, `the data folder ${dataDir} was removed; it is made anew, and the history begins anew there`)
    await killWorker(deck)
    await deck.loseMaster()
    await deck.until({ ready: 1 })
    assert.equal((await ask(deck)).version, '2.0.0')
    assert.equal((await runCliHere(['status', '--data-dir', dataDir])).code, 0)
  }
)

rareTest(
  'the working folder is removed, with a master that dies then: all go on where the entry is, and a command typed there is answered',
  async (t) => {
    const top = realpathSync(tempFolder())
    const [folder, app] = ['work', 'app'].map((name) => path.join(top, name))
    mkdirSync(folder)
    writeApp(app, '1.0.0')
    const deck = await startReady(t, null, { workers: 1, cwd: folder, env: { PWD: folder }, flags: ['../app/app.js'] })
    rmSync(folder, { recursive: true })
    await deck.loseMaster()
    const { message } = await deck.untilEvent('unexpected', { message: /working folder/ })
    assert.equal(message,
      `the working folder ${folder} is gone; the workers of release r1 start in ${app}, where its entry is`)
    await deck.until({ ready: 1 })
    assert.equal((await ask(deck)).cwd, app)
    assert.match(deck.output.stderr, new RegExp(`the working folder ${folder} is gone; the master starts in ${top}\n`))
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    const typed = await runCli(['status', '--data-dir', deck.folder], {
      launch: { through: ['sh', '-c', `mkdir "${folder}" && cd "${folder}" && rmdir "${folder}" && exec "$@"`, 'sh'] }
    })
    assert.equal(typed.code, 0, typed.stderr)
    assert.equal(existsSync(folder), false)
  }
)
