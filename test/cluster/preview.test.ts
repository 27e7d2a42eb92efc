import assert from 'node:assert/strict'
import { readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { app, untilListed } from '../support/deploys.ts'
import { tempFolder, writeFiles } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import { createRepository } from '../support/repository.ts'
import type { DeckClient as Deck } from '../support/deck-client.ts'
import type { TestOwner } from '../support/deck.ts'

const QUICK = ['--drain-idle-grace-ms', '100', '--restart-min-delay-ms', '1']

async function deployed (t: TestOwner,
  { folder = realpathSync(tempFolder()), flags = [], workers = 1 }: { folder?: string, flags?: string[],
    workers?: number } = {})
{
  writeFiles(folder, { 'app.mjs': app('response.end(\'one\')'),
    'package.json': '{ "name": "shop", "version": "1.0.0" }', 'views/home.html': 'one' })
  const deck = await startReadyHere(t, path.join(folder, 'app.mjs'), { workers, flags: [...QUICK, ...flags] })
  return { deck, folder, cli: (...args: string[]) => runCliHere([...args, '--data-dir', deck.folder]) }
}

async function preview (deck: Deck, body: object = {}) {
  const { status, body: told } = await deck.post('/rollouts/preview', { kind: 'deploy', ...body })
  assert.equal(status, 200, JSON.stringify(told))
  return told
}

/** `folder`: all that a preview could have changed */
async function stateOf (deck: Deck, folder: string) {
  const { rollout, release } = await deck.status()
  const { body: { items } } = await deck.api('/releases')
  return { rollout, release, releases: items, app: readdirSync(folder, { recursive: true }).sort(),
    data: readdirSync(deck.folder).filter((name) => !name.startsWith('history.db') && name !== 'logs').sort() }
}

describe('the preview of a deploy', { concurrency: true }, () => {
  test('tells release, commits and files, changes nothing, and the deploy makes just that', async (t) => {
    const folder = realpathSync(tempFolder())
    writeFiles(folder, { '.gitignore': 'dist\n', 'dist/built.txt': 'one', 'views/old.html': '' })
    writeFiles(folder, { 'app.mjs': app('response.end(\'one\')'),
      'package.json': '{ "name": "shop", "version": "1.0.0" }', 'views/home.html': 'one' })
    const repository = createRepository(folder)
    repository.commit({}, 'First')
    const { deck } = await deployed(t, { folder })
    await untilListed(deck, 'r1')
    const none = await preview(deck)
    assert.deepEqual([none.release?.id, none.files, none.commits, none.warnings], ['r2', { added: 0, changed: 0,
      removed: 0, items: [] }, null, []])

    writeFiles(folder, { 'app.mjs': app('response.end(\'two\')'),
      'package.json': '{ "name": "shop", "version": "1.1.0" }', 'dist/built.txt': 'two', 'views/new.html': '',
      'views/old.html': null })
    repository.commit({}, 'Faster totals')
    const before = await stateOf(deck, folder)
    const told = await preview(deck)
    assert.deepEqual(await stateOf(deck, folder), before)
    assert.deepEqual([told.kind, told.from, told.release?.id, told.release?.isNew, told.release?.mode,
      told.release?.entry, told.release?.path, told.refusals], ['deploy', 'r1', 'r2', true, 'live',
      path.join(folder, 'app.mjs'), folder, []])
    assert.deepEqual(told.release?.package, { name: 'shop', version: '1.1.0' })
    assert.deepEqual([told.commits?.added.items.map(({ subject, author }) => [subject, author]),
      told.commits?.removed.items], [[['Faster totals', 'Ada']], []])
    assert.deepEqual([told.files?.changed, told.files?.added, told.files?.removed], [3, 1, 1])
    assert.deepEqual(told.files?.items, [{ name: 'app.mjs', change: 'changed' }, { name: 'package.json',
      change: 'changed' }, { name: 'dist/built.txt', change: 'changed' }, { name: 'views/new.html', change: 'added' }, {
      name: 'views/old.html',
      change: 'removed'
    }])
    assert.match(told.warnings[0],
      /^r1 runs from the same folder, whose files have changed: it may not be able to come back/)

    const { to } = await deck.rollout('deploy')
    const { body: made } = await deck.api(`/releases/${to as `r${number}`}`)
    assert.deepEqual([made.id, made.changed, made.git, made.entry], [told.release?.id, told.changed, told.release?.git,
      told.release?.entry])
  })

  rareTest('of a copy compares contents, and makes neither a copy nor a shared folder', async (t) => {
    const { deck, folder } = await deployed(t, { flags: ['--releases-mode', 'folder', '--releases-shared', 'data/'] })
    rmSync(path.join(folder, 'data'), { recursive: true })
    writeFiles(folder, { 'views/home.html': 'two', 'app.mjs': app('response.end(\'one\')') })
    const before = await stateOf(deck, folder)
    const told = await preview(deck)
    assert.deepEqual(await stateOf(deck, folder), before)
    assert.deepEqual([told.release?.id, told.release?.mode, told.release?.source, told.warnings], ['r2', 'folder',
      folder, []])
    assert.deepEqual(told.files, { added: 0, changed: 1, removed: 0,
      items: [{ name: 'views/home.html', change: 'changed' }] }, 'app.mjs was written anew with the same content')
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    assert.ok(readdirSync(folder).includes('data'))
  })

  rareTest('of a folder that is named compares it with the one that runs', async (t) => {
    const root = realpathSync(tempFolder())
    for (const version of ['v1', 'v2'])
      writeFiles(root, { [`${version}/app.mjs`]: app(`response.end('${version}')`), [`${version}/package.json`]: '{}' })
    symlinkSync('v1', path.join(root, 'current'))
    const deck = await startReadyHere(t, path.join(root, 'current', 'app.mjs'), { workers: 1,
      flags: [...QUICK, '--releases-root', root] })
    const told = await preview(deck, { path: 'v2' })
    assert.deepEqual([told.release?.mode, told.release?.path, told.files?.items, told.warnings], ['path',
      path.join(root, 'v2'), [{ name: 'app.mjs', change: 'changed' }], []])
    const { refusals: [refused], release } = await preview(deck, { path: '/' })
    assert.deepEqual([refused.code, release], ['path-refused', null])
  })

  test('names all refusals at once, and the command fails with the first', async (t) => {
    const { deck, folder, cli } = await deployed(t, { flags: ['--releases-mode', 'folder'] })
    const codes = async () => (await preview(deck)).refusals.map(({ code }) => code)
    writeFiles(folder, { 'app.mjs': app('response.end(\'two\')') })
    const { id } = await deck.begin({ kind: 'deploy', strategy: { canary: { workers: 1, durationMs: 600_000 } } })
    await deck.untilEvent('rollout.step', { detail: { state: 'canary' } })
    writeFiles(path.join(deck.folder, 'releases', 'r1'), { 'uploads/a.png': '' })
    writeFiles(folder, { 'app.mjs': app('response.end(\'three\')') })
    assert.deepEqual(await codes(), ['rollout-running', 'unshared-files'])
    await deck.post(`/rollouts/${id}/abort`)
    await deck.untilStatus(({ rollout }) => rollout === null, 'the end of the rollout')
    const { code, stdout, stderr } = await cli('deploy', '--dry-run')
    assert.equal(code, 4)
    assert.match(stdout, /^deploy: a dry run, nothing was changed\nrelease {7}r3, new, after r1\n/)
    assert.match(stderr,
      /the deploy would be refused: releases\.shared: expected what the app writes, received uploads\/a\.png/)
    rmSync(path.join(folder, 'app.mjs'))
    assert.deepEqual(await codes(), ['entry-not-found'])
  })

  rareTest('tells what is in the way, the plan in the words of its strategy, and what the last ones took',
    async (t) => {
      const { deck, cli } = await deployed(t, { workers: 2 })
      await deck.rollout('deploy')
      await deck.rollout('restart')
      const told = await preview(deck, { strategy: { canary: { workers: 1 }, surge: 2 } })
      assert.equal(told.plan.text, '2 workers, all at once, after a canary of 1 for 30 s; if one fails, it rolls back')
      assert.deepEqual(told.last.map(({ rollout, state, release }) => [rollout, state, release]), [[1, 'succeeded',
        'r2']])
      assert.ok(told.last[0].tookMs > 0)
      const { id } = await deck.begin({ kind: 'deploy', strategy: { canary: { workers: 1, durationMs: 600_000 } } })
      assert.deepEqual((await preview(deck)).refusals.map(({ code }) => code), ['rollout-running'])
      await deck.post(`/rollouts/${id}/abort`)
      await deck.untilStatus(({ rollout }) => rollout === null, 'the end of the rollout')
      const { code, stdout } = await cli('deploy', '--dry-run', '--surge', '1', '--json')
      assert.deepEqual([code, JSON.parse(stdout).plan.text], [0,
        '2 workers, one at a time; if one fails, it rolls back'])
    })

  rareTest('tells which options have changed since, and when each of them counts', async (t) => {
    const folder = realpathSync(tempFolder())
    const configure = (config: object) =>
      writeFiles(folder, {
        'clusterdeck.config.json': JSON.stringify({ entry: 'app.mjs', workers: 1, drain: { idleGraceMs: 100 },
          ...config })
      })
    writeFiles(folder, { 'app.mjs': app('response.end(\'one\')'), 'package.json': '{}' })
    configure({ env: { LEVEL: 'low' } })
    const deck = await startReadyHere(t, null, { cwd: folder, workers: 1,
      flags: ['--config', path.join(folder, 'clusterdeck.config.json')] })
    assert.deepEqual((await preview(deck)).options, [])
    configure({ env: { LEVEL: 'high' }, execArgv: ['--no-warnings'], rollout: { surge: 2 }, orphanMs: 5000 })
    const { options, changed, release } = await preview(deck)
    assert.deepEqual(options, [{ name: 'execArgv', from: null, to: null, takesEffect: 'deploy' }, { name: 'env',
      from: null, to: null, takesEffect: 'deploy' }, { name: 'orphanMs', from: 60_000, to: 5000, takesEffect: 'start' },
      { name: 'rollout.surge', from: 1, to: 2, takesEffect: 'now' }])
    assert.deepEqual([changed?.environment, changed?.arguments, release?.nodeOptions], [['LEVEL'], true, 1])
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    assert.deepEqual((await preview(deck)).options.map(({ name }) => name), ['orphanMs', 'rollout.surge'],
      'the others are in force')
  })
})

test('the preview of a rollback tells what would come back, and what not', async (t) => {
  const { deck, folder, cli } = await deployed(t)
  const none = await cli('rollback', '--dry-run')
  assert.equal(none.code, 1)
  assert.match(none.stderr, /the rollback would be refused: No release other than r1/)
  await untilListed(deck, 'r1')
  writeFiles(folder, { 'views/home.html': 'two' })
  assert.equal((await deck.rollout('deploy')).state, 'succeeded')
  await untilListed(deck, 'r2')
  const told = await preview(deck, { kind: 'rollback' })
  assert.deepEqual([told.release?.id, told.refusals, told.warnings], ['r1', [], [
    'r1 may not be what it was: 1 file of its folder has changed since its deploy: views/home.html'
  ]])
  writeFiles(folder, { 'app.mjs': app('response.end(\'two\')') })
  const { code, stderr } = await cli('rollback', 'r1', '--dry-run')
  assert.equal(code, 4)
  assert.match(stderr, /the rollback would be refused: r1 cannot come back: files of r1 changed after its deploy/)
  assert.equal((await deck.status()).release.id, 'r2')
})
