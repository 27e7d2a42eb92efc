import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, lstatSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { underLoad } from '../support/deploys.ts'
import { tempFolder, writeFiles } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import { createRepository, git, versionOf } from '../support/repository.ts'
import type { TestOwner } from '../support/deck.ts'

async function startForPushes (t: TestOwner, { workers = 2 }: { workers?: number } = {}) {
  const folder = tempFolder()
  writeFiles(folder, { ...versionOf('one'), 'dist/built.txt': 'in place' })
  const dataDir = tempFolder()
  const deck = await startReadyHere(t, path.join(folder, 'app.js'), { workers, dataDir, cwd: folder })
  return { deck, folder, dataDir, ask: deck.ask,
    setUp: (...words: string[]) => runCliHere(['setup-git-push', ...words, '--data-dir', dataDir]) }
}

/** Pushes as somebody does who has only git. */
async function push (folder: string, words: string[], env: Record<string, string> = {}) {
  const child = spawn('git', ['-C', folder, 'push', ...words], { stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env } })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  const [code] = await once(child, 'close')
  return { code, output }
}

rareTest(
  'a push from another clone is deployed under load, and says what happens: a good one, and one that does not start',
  async (t) => {
    const { deck, dataDir, ask, setUp } = await startForPushes(t)
    const { code, stdout, stderr } = await setUp()
    assert.equal(code, 0, stderr)
    const [, place] = /git remote add production (\S+)\n/.exec(stdout) ?? []
    assert.equal(place, path.join(dataDir, 'push.git'))
    assert.equal(statSync(place).mode & 0o777, 0o700)

    const clone = createRepository()
    clone.git('remote', 'add', 'production', place)
    const { failures, total } = await underLoad(t, await deck.appUrl(), async () => {
      const commit = clone.commit(versionOf('two'), 'Faster totals')
      const good = await push(clone.folder, ['production', 'HEAD:main'])
      assert.equal(good.code, 0)
      assert.match(good.output,
        /remote: commit [^]*of main: Faster totals[^]*remote: built two[^]*remote: rollout 1 \(deploy[^]*succeeded/)
      const { body: { items: [release] } } = await deck.api('/releases')
      assert.deepEqual([release.git?.commit, release.git?.branch, await ask()], [commit, 'main', 'two'])

      clone.commit(versionOf('worse', { atLoad: 'throw new Error(\'does not start\')' }))
      const worse = await push(clone.folder, ['production', 'HEAD:main'])
      assert.match(worse.output,
        /remote: [^]*built worse[^]*remote: clusterdeck: rollout 2 \(deploy\) failed[^]*remote: clusterdeck: NOT deployed \(exit code 1\)/)
      assert.equal(await ask(), 'two')
    })
    assert.ok(total > 100)
    assert.deepEqual(failures, [])
  }
)

test('only its branch is deployed, setting it up again is harmless, and what git tells its hooks reaches no build', async (t) => {
  const { deck, folder, dataDir, ask, setUp } = await startForPushes(t, { workers: 1 })
  const bare = path.join(tempFolder(), 'it\'s shop.git')
  // An earlier version has deployed after the push.
  mkdirSync(path.join(bare, 'hooks'), { recursive: true })
  git(bare, 'init', '--bare', '--quiet')
  writeFileSync(path.join(bare, 'hooks', 'post-receive'),
    '#!/bin/sh\n# Made by "clusterdeck setup-git-push", which writes it anew.\n', { mode: 0o700 })
  for (let times = 0; times < 2; times++) {
    const { code, stderr } = await setUp(bare, '--branch', 'production')
    assert.equal(code, 0, stderr)
  }
  assert.ok(lstatSync(path.join(dataDir, 'push.git')).isSymbolicLink())
  assert.equal(existsSync(path.join(bare, 'hooks', 'post-receive')), false)
  const clone = createRepository()
  clone.commit(
    versionOf('two', {
      build:
        'if (Object.keys(process.env).some((name) => /^GIT_(DIR|WORK_TREE|INDEX_FILE|QUARANTINE_PATH)$/.test(name))) throw new Error(\'in the wrong repository\')'
    })
  )
  const other = await push(clone.folder, [bare, 'HEAD:refs/heads/main'])
  assert.match(other.output, /remote: clusterdeck: refs\/heads\/main is not deployed, only refs\/heads\/production/)
  assert.equal(await ask(), 'in place')
  const wrongTarget = { CLUSTERDECK_URL: 'http://127.0.0.1:1', CLUSTERDECK_TOKEN: 'x',
    GIT_INDEX_FILE: path.join(tempFolder(), 'index') }
  const { output } = await push(clone.folder, [bare, 'HEAD:refs/heads/production'], wrongTarget)
  assert.match(output, /succeeded/)
  assert.equal(await ask(), 'two')
  assert.equal(existsSync(path.join(folder, '.git')), false)

  for (const { words, why } of [{ words: ['--branch', '../x'], why: /--branch: expected the name of a branch/ }, {
    words: [folder],
    why: /expected a new folder, or a bare repository/
  }, { words: [foreignHook()], why: /without a hook of its own/ }]) {
    const { code, stderr } = await setUp(...words)
    assert.equal(code, 2)
    assert.match(stderr, why)
  }
  assert.deepEqual(await deck.history('type=unexpected'), [])
})

test('what could not be deployed is refused, and is deployed by the next push of the same commit, also from a clone without history', async (t) => {
  const { deck, dataDir, ask, setUp } = await startForPushes(t, { workers: 1 })
  assert.equal((await setUp()).code, 0)
  const place = path.join(dataDir, 'push.git')
  const [origin, away] = [createRepository(), path.join(tempFolder(), 'away')]
  origin.commit(versionOf('before'), 'Before')
  const commit = origin.commit(
    versionOf('two', {
      build: `import { execSync } from 'node:child_process'\nif (readFileSync(${
        JSON.stringify(away)
      }, 'utf8') === 'yes') throw new Error('the registry is away')\nconsole.log(execSync('git log --format=history:%s').toString())`
    }),
    'Two'
  )
  const clone = path.join(tempFolder(), 'clone')
  git(origin.folder, 'clone', '--quiet', '--depth', '1', `file://${origin.folder}`, clone)
  writeFileSync(away, 'yes')
  const refused = await push(clone, [place, 'HEAD:main'])
  assert.equal(refused.code, 1)
  assert.match(refused.output,
    /the registry is away[^]*NOT deployed \(exit code 1\)[^]*\[remote rejected\] HEAD -> main/)
  assert.equal(git(place, 'for-each-ref', 'refs/heads'), '')
  writeFileSync(away, 'no')
  const taken = await push(clone, [place, 'HEAD:main'])
  assert.equal(taken.code, 0, taken.output)
  assert.match(taken.output, /commit [^]*of main: Two[^]*history:Two *\n(?![^]*history:Before)/)
  assert.deepEqual([git(place, 'rev-parse', 'main'), (await deck.status()).release.git?.commit, await ask()], [commit,
    commit, 'two'])

  assert.match((await push(origin.folder, [place, 'HEAD:main'])).output, /Everything up-to-date/)
})

/** @returns a bare repository that has a hook already */
function foreignHook (): string {
  const folder = tempFolder()
  git(folder, 'init', '--bare', '--quiet')
  mkdirSync(path.join(folder, 'hooks'), { recursive: true })
  writeFileSync(path.join(folder, 'hooks', 'update'), '#!/bin/sh\n')
  return folder
}
