import assert from 'node:assert/strict'
import { readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { writeFiles } from '../support/folder.ts'
import { startApp } from '../support/git-app.ts'
import { rareTest } from '../support/rare.ts'
import { createRepository, versionOf, withPackage } from '../support/repository.ts'

type App = Awaited<ReturnType<typeof startApp>>

async function preview ({ deck }: App, order: object) {
  const { status, body } = await deck.post('/rollouts/preview', { kind: 'deploy', ...order })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

/** `app`: all that a preview could have changed */
async function stateOf ({ deck, repository, dataDir, folders }: App) {
  const { body: { items } } = await deck.api('/releases')
  return { releases: items, runs: (await deck.api('/jobs/runs')).body.items, folders: folders(),
    app: readdirSync(repository.app).sort(),
    data: readdirSync(dataDir).filter((name) => !name.startsWith('history.db') && name !== 'logs').sort() }
}

const codesOf = ({ refusals }: Awaited<ReturnType<typeof preview>>) => refusals.map(({ code }) => code)

describe('the preview of a commit', { concurrency: 2 }, () => {
  test('tells commit, files, build and changes by git alone, and the deploy makes just that; it goes with a deploy alone, and with no path', async (t) => {
    const app = await startApp(t, { config: { releases: { shared: ['data/'] } } })
    const { deck, repository, cli } = app
    repository.commit({ ...versionOf('two'), 'views/old.html': 'old', ...withPackage(repository.app) }, 'Second')
    const first = await cli('deploy', '--git', 'main', '--wait', '--yes')
    assert.equal(first.code, 0, first.stderr)
    repository.commit({ 'app.js': `${versionOf('three')['app.js']}// faster\n`, 'views/new.html': '' }, 'Faster totals')
    repository.git('rm', '--quiet', 'views/old.html')
    const commit = repository.commit({}, 'Tidy up')
    writeFiles(repository.app, { 'app.js': 'of no commit', 'more.txt': '' })

    const before = await stateOf(app)
    const told = await preview(app, { git: 'main' })
    assert.deepEqual(await stateOf(app), before)
    assert.deepEqual([told.from, told.release?.id, told.release?.isNew, told.release?.mode, told.refusals,
      told.warnings], ['r2', 'r3', true, 'folder', [], []])
    assert.deepEqual(told.release?.git, { commit, branch: 'main', isDirty: false, author: 'Ada', subject: 'Tidy up' })
    assert.deepEqual(told.release?.package, { name: 'shop', version: '1.0.0' })
    assert.deepEqual(told.commits?.added.items.map(({ subject }) => subject), ['Tidy up', 'Faster totals'])
    assert.deepEqual(told.files, { added: 1, changed: 1, removed: 1,
      items: [{ name: 'app.js', change: 'changed' }, { name: 'views/new.html', change: 'added' }, {
        name: 'views/old.html',
        change: 'removed'
      }] })
    assert.deepEqual(told.build, { text: 'npm ci, then npm run build', isGuess: true, packages: 'kept' })
    const { code, stdout } = await cli('deploy', '--git', 'main', '--dry-run')
    assert.equal(code, 0)
    assert.match(stdout,
      new RegExp(
        `^deploy: a dry run, nothing was changed\nrelease +r3, new, after r2\ncommit +${
          commit.slice(0, 10)
        } on main “Tidy up” by Ada\n[^]*\nbuild +npm ci, then npm run build \\(guessed\\); the packages of the same lock file are linked\n`
      ))

    assert.equal((await cli('deploy', '--git', 'main', '--wait')).code, 0)
    const { body: made } = await deck.api('/releases/r3')
    for (const name of ['id', 'mode', 'entry', 'path', 'cwd', 'source', 'package', 'git'] as const)
      assert.deepEqual(told.release?.[name], made[name], name)
    assert.deepEqual([told.changed, told.build.text], [made.changed, made.build])
    const again = await preview(app, { git: commit })
    assert.deepEqual([again.release?.id, again.release?.isNew, again.build, again.files?.items], ['r3', false, null,
      []])
    repository.git('checkout', '--quiet', '--', 'app.js')
    repository.commit({ 'package-lock.json': JSON.stringify({ lockfileVersion: 3 }) })
    assert.equal((await preview(app, { git: 'main' })).build?.packages, 'installed')

    for (const [order, field] of [[{ git: 'main', path: 'v2' }, 'git'], [{ kind: 'rollback', git: 'main' }, 'git'], [{
      kind: 'rollback',
      guess: true
    }, 'guess'], [{ git: '-x' }, 'git']] as [object, string][]) {
      const { status, body } = await deck.post('/rollouts/preview', { kind: 'deploy', ...order })
      assert.deepEqual([status, body.code, body.detail?.startsWith(`${field}:`)], [422, 'invalid-body', true],
        JSON.stringify(body))
    }
    const both = await cli('deploy', '--git', 'main', '--path', 'v2', '--dry-run')
    assert.deepEqual([both.code, /expected either --git or --path/.test(both.stderr)], [2, true])
  })

  test('what an agent has confirmed is the commit that was shown, wherever its branch leads by then, and nothing once the build is another', async (t) => {
    const config = { hooks: { build: { command: ['node', 'build.js'] } } }
    const { deck, repository, ask, cli } = await startApp(t, { config })
    const shown = repository.commit(versionOf('shown'))
    const call = async (name: string, given: object) => {
      const { origin } = new URL(deck.adminUrl)
      const answer = await fetch(`${origin}/mcp?role=operator`, { method: 'POST',
        headers: { authorization: `Bearer ${deck.token}`, 'content-type': 'application/json',
          accept: 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: given } }) })
      return (await answer.json() as { result: { content: { text: string }[] } }).result.content[0].text
    }
    const preview = async () =>
      /confirmation "([^"]+)"/.exec(await call('preview_change', { operation: 'deployCommit', input: { git: 'main' } }))
        ?.[1]
    const [first, second] = [await preview(), await preview()]
    repository.commit(versionOf('unseen'))
    assert.match(await call('confirm_change', { confirmation: first }), /^Done: a deploy to r2/)
    await deck.untilEvent('rollout.succeeded')
    assert.equal((await deck.status()).release.git?.commit, shown)
    assert.equal(await ask(), 'shown')
    assert.match(await call('confirm_change', { confirmation: second }),
      /preview the change again.*precondition-failed/)
    const third = await preview()
    writeFiles(repository.app, {
      'clusterdeck.config.json': JSON.stringify({ ...config,
        hooks: { build: { command: ['sh', '-c', 'node build.js; touch evil'] } } })
    })
    assert.match(await call('confirm_change', { confirmation: third }), /preview the change again/)
    assert.equal((await cli('releases', '--json')).stdout.includes('"r3"'), false)
  })

  rareTest('names all refusals at once: what is not shared, submodules, a guess that nobody has accepted',
    async (t) => {
      const app = await startApp(t)
      const { repository, cli, order } = app
      repository.commit(versionOf('two'))
      assert.deepEqual(codesOf(await preview(app, { git: 'main' })), ['build-unconfirmed'])
      const guessed = await cli('deploy', '--git', 'main', '--dry-run')
      assert.deepEqual([guessed.code, /build +npm ci, then npm run build \(guessed\)/.test(guessed.stdout)], [2, true])
      assert.match(guessed.stderr, /the deploy would be refused: hooks\.build: expected a command/)
      assert.equal((await cli('deploy', '--git', 'main', '--dry-run', '--yes')).code, 0)
      assert.equal((await cli('deploy', '--git', 'main', '--wait', '--yes')).code, 0)

      writeFiles(path.join(app.dataDir, 'releases', 'r2'), { 'uploads/a.png': '' })
      writeFiles(repository.app, {
        'clusterdeck.config.json': JSON.stringify({ hooks: { beforeDeploy: { command: ['true'] } },
          releases: { shared: ['not-there'] } })
      })
      const other = createRepository()
      const lib = other.commit({ 'a.txt': 'a' })
      repository.git('update-index', '--add', '--cacheinfo', `160000,${lib},lib`)
      repository.git('commit', '--quiet', '--message', 'A submodule')
      const refused = await preview(app, { git: 'main' })
      assert.deepEqual(codesOf(refused), ['invalid-config', 'unshared-files', 'git-failed'])
      assert.match(refused.refusals[2].message, /submodules.*received lib/)
      assert.deepEqual([refused.release?.hooks, refused.options.map(({ name }) => name)], [['beforeDeploy'], [
        'releases.shared',
        'hooks.beforeDeploy'
      ]])
      // What is wrong with the folder of the app is refused before anything is built.
      const { status, body } = await order({ git: 'main' })
      assert.deepEqual([status, body.code], [422, 'invalid-config'])

      const unknown = await preview(app, { git: 'nope' })
      assert.deepEqual([codesOf(unknown), unknown.release], [['invalid-config', 'unshared-files', 'not-found'], null])
    })

  rareTest('a rollout that runs is no refusal: the deploy of a commit waits for it', async (t) => {
    const app = await startApp(t)
    app.repository.commit(versionOf('two'))
    assert.equal((await preview(app, { git: 'main', guess: true })).files?.changed, 1)
    // The release that runs then is of no commit.
    writeFiles(app.repository.app, { 'build.js': 'changed' })
    assert.equal((await app.deck.rollout({ kind: 'deploy' })).state, 'succeeded')
    assert.equal((await preview(app, { git: 'main', guess: true })).files, null)
    const { id } = await app.deck.begin({ kind: 'deploy', strategy: { canary: { workers: 1, durationMs: 600_000 } } })
    const told = await preview(app, { git: 'main', guess: true })
    assert.deepEqual(told.refusals, [])
    assert.match(told.warnings[0],
      new RegExp(`^once it is built, the deploy waits: rollout ${id} \\(deploy\\) is running`))
    await app.deck.post(`/rollouts/${id}/abort`)
    await app.deck.untilStatus(({ rollout }) => rollout === null, 'the end of the rollout')
  })

  rareTest('where the repository has an address, git fetches first, as a run that is seen, and so does the deploy',
    async (t) => {
      const origin = createRepository()
      const commit = origin.commit(versionOf('theirs'), 'From elsewhere')
      const app = await startApp(t, { config: { releases: { git: `file://${origin.folder}` } } })
      const told = await preview(app, { git: 'main', guess: true })
      // The release that runs is of another repository.
      assert.deepEqual([told.release?.git?.commit, told.release?.git?.subject, told.files, told.refusals], [commit,
        'From elsewhere', null, []])
      const runsOf = async () =>
        (await app.deck.api('/jobs/runs')).body.items.map(({ command, state }) => [command, state])
      assert.deepEqual(await runsOf(), [[`git fetch file://${origin.folder}`, 'succeeded']])
      const { code, stdout, stderr } = await app.cli('deploy', '--git', 'main', '--wait', '--yes')
      assert.equal(code, 0, stderr)
      assert.match(stdout, /fetching file:\/\/[^]*of main: From elsewhere/)
      assert.equal(await app.ask(), 'theirs')

      // A commit that is here already needs no fetch.
      rmSync(path.join(origin.folder, '.git'), { recursive: true })
      const { length } = await runsOf()
      assert.deepEqual(codesOf(await preview(app, { git: commit, guess: true })), [])
      assert.equal((await runsOf()).length, length)
      const gone = await preview(app, { git: 'main', guess: true })
      assert.deepEqual([codesOf(gone), gone.release], [['git-failed'], null])
      assert.match(gone.refusals[0].message, /git fetch exited with code 128/)
      const failed = await app.cli('deploy', '--git', 'other', '--wait')
      assert.deepEqual([failed.code, /git fetch exited with code 128/.test(failed.stderr)], [1, true], failed.stderr)
    })

  rareTest('does not read secrets of a release that is not there, nor count them as changed', async (t) => {
    const repository = createRepository()
    writeFiles(repository.app, { 'secrets.json': '{ "CANARY": "one" }' })
    const app = await startApp(t, { repository,
      config: { env: { LEVEL: 'info' }, secrets: { from: 'command', command: ['cat', 'secrets.json'] } } })
    repository.commit({ ...versionOf('two'), 'secrets.json': 'no JSON' })
    writeFiles(repository.app, {
      'clusterdeck.config.json': JSON.stringify({ env: { LEVEL: 'warn' },
        secrets: { from: 'command', command: ['cat', 'secrets.json'] } })
    })
    const told = await preview(app, { git: 'main', guess: true })
    assert.deepEqual([told.refusals, told.changed?.environment], [[], ['LEVEL']])
  })
})
