import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { startDeck, type Deck, startReady } from '../support/deck.ts'
import { tempFolder, writeFiles } from '../support/folder.ts'
import { startApp } from '../support/git-app.ts'
import { serveHttp } from '../support/http-server.ts'
import { isGone } from '../support/is-gone.ts'
import { rareTest } from '../support/rare.ts'
import { createRepository, versionOf, withPackage } from '../support/repository.ts'
import { until } from '../support/until.ts'

describe('deploy --git', { concurrency: 2 }, () => {
  test('is refused where the app has a database or an .env in its own folder that no release would share, and nothing changes', async (t) => {
    const { deck, repository, ask, cli, folders } = await startApp(t)
    repository.commit(versionOf('two'))
    writeFiles(repository.app, { 'data/shop.sqlite': 'SQLite format 3\0', 'data/shop.sqlite-wal': '',
      'elsewhere.txt': 'A=1', 'config/.env': 'B=1', '.env.example': '', '.env.own': 'C=1' })
    symlinkSync('elsewhere.txt', path.join(repository.app, '.env'))
    const refused = await cli('deploy', '--git', 'main', '--yes', '--wait')
    assert.equal(refused.code, 4)
    assert.match(refused.stderr,
      /releases\.shared: expected the databases, uploads and \.env files of the app, received none of data\/, \.env, \.env\.own, config\/\.env in /)
    assert.deepEqual([folders(), (await deck.status()).release.id], [[], 'r1'])

    writeFiles(repository.app, {
      'clusterdeck.config.json': JSON.stringify({ envFile: '.env.own',
        releases: { shared: ['data/', '.env'], exclude: ['config'] } })
    })
    const deployed = await cli('deploy', '--git', 'main', '--yes', '--wait')
    assert.equal(deployed.code, 0, deployed.stderr)
    assert.equal(await ask(), 'two')
    const { release } = await deck.status()
    assert.equal(readFileSync(path.join(release.path, 'data/shop.sqlite'), 'utf8'), 'SQLite format 3\0')
    assert.equal(readFileSync(path.join(release.path, '.env'), 'utf8'), 'A=1')
  })

  rareTest('runs the program of the release where the app is one of node_modules, named by its path', async (t) => {
    const repository = createRepository()
    const { 'app.js': code, 'package-lock.json': _, ...files } = versionOf('two')
    mkdirSync(path.join(repository.app, 'node_modules/.bin'), { recursive: true })
    symlinkSync('../serve/serve.js', path.join(repository.app, 'node_modules/.bin/serve'))
    repository.commit({ ...files, '.gitignore': 'dist',
      'node_modules/serve/package.json': '{"name":"serve","type":"module","bin":"serve.js"}',
      'node_modules/serve/serve.js': `#!/usr/bin/env node\n${code}` })
    writeFiles(repository.app, { 'dist/built.txt': 'in place' })
    const dataDir = tempFolder()
    const deck = await startReady(t, path.join(repository.app, 'node_modules/.bin/serve'), { workers: 1, dataDir,
      cwd: repository.app })
    const deployed = await runCliHere(['deploy', '--git', 'main', '--yes', '--wait', '--data-dir', dataDir])
    assert.equal(deployed.code, 0, deployed.stderr)
    const { release } = await deck.status()
    assert.deepEqual([release.id, path.relative(release.path, release.entry)], ['r2', 'node_modules/serve/serve.js'])
  })

  test('exports and builds a commit, whatever is in the folder of the app, and its release stays what it was', async (t) => {
    const { deck, repository, ask, cli, folders } = await startApp(t, { config: { releases: { shared: ['data/'] } } })
    assert.equal(await ask(), 'in place')
    const commit = repository.commit(versionOf('two'), 'Faster totals')
    writeFiles(repository.app, { 'app.js': 'throw new Error("not in any commit")' })

    const refused = await cli('deploy', '--git', 'main', '--wait')
    assert.equal(refused.code, 2)
    assert.match(refused.stderr,
      /hooks\.build: expected a command, received none; as far as can be guessed, npm ci, then npm run build builds the app.*--yes/)
    assert.deepEqual(folders(), [])

    const { code, stdout, stderr } = await cli('deploy', '--git', 'main', '--wait', '--yes', '--note', 'by hand')
    assert.equal(code, 0, stderr)
    assert.match(stdout,
      new RegExp(
        `commit ${
          commit.slice(0, 10)
        } of main: Faster totals \\(Ada\\)[^]*\\$ npm ci\\n[^]*\\$ npm run build\\n[^]*built two\\n[^]*succeeded`
      ))
    assert.equal(await ask(), 'two')
    const { body: { items: [release] } } = await deck.api('/releases')
    assert.deepEqual([release.mode, release.git, release.build, release.note, release.package?.version], ['folder', {
      commit,
      branch: 'main',
      isDirty: false,
      author: 'Ada',
      subject: 'Faster totals'
    }, 'npm ci, then npm run build', 'by hand', '1.0.0'])
    assert.equal(readFileSync(path.join(release.path, 'data', '..', 'dist', 'built.txt'), 'utf8'), 'two')
    writeFiles(repository.app, { 'data/note.txt': 'shared' })
    assert.equal(readFileSync(path.join(release.path, 'data', 'note.txt'), 'utf8'), 'shared')

    // The same commit is the same release, and nobody is asked again.
    const again = await cli('deploy', '--git', commit, '--wait')
    assert.equal(again.code, 0, again.stderr)
    assert.match(again.stdout, new RegExp(`${release.id} is of this commit already: nothing is built`))
    repository.git('checkout', '--quiet', '--', '.')
    repository.commit(versionOf('three'))
    assert.equal((await cli('deploy', '--git', 'main', '--wait')).code, 0)
    assert.equal(await ask(), 'three')
    for (const name of ['app.js', 'dist', '.git', 'package.json'])
      rmSync(path.join(repository.app, name), { recursive: true })
    assert.equal((await deck.rollout({ kind: 'rollback', release: release.id })).state, 'succeeded')
    assert.equal(await ask(), 'two')
    assert.deepEqual(await deck.history('type=unexpected'), [])
  })

  test('a build that fails changes nothing, leaves nothing, and says why with its last output', async (t) => {
    const { deck, repository, ask, cli, order, untilEnd, folders } = await startApp(t)
    repository.commit(
      versionOf('broken', {
        build: 'console.log(\'compiling\'); console.error(\'no such module: totals\'); process.exit(3)'
      })
    )
    const { code, stderr } = await cli('deploy', '--git', 'main', '--wait', '--yes')
    assert.equal(code, 1)
    assert.match(stderr,
      /no such module: totals\n[^]*clusterdeck: npm run build exited with code 3 after .*\. Nothing has changed/)
    assert.equal(await ask(), 'in place')
    assert.deepEqual([folders(), (await deck.api('/releases')).body.items.length,
      (await deck.api('/rollouts')).body.items], [[], 1, []])
    const [failed] = await deck.history('type=job.command-failed')
    assert.equal(failed.cause, 'build-failed')

    const { status, body: run } = await order({ git: 'main', guess: true })
    assert.equal(status, 202)
    const ended = await untilEnd(run)
    assert.deepEqual([ended.state, ended.cause, ended.code, ended.release, ended.rollout], ['failed', 'build-failed', 3,
      null, null])
    assert.match(ended.output, /compiling\nno such module: totals\n/)
    assert.deepEqual(folders(), [])
  })

  test('git tells a build, a hook and a job about the release that they are in, and what they change there the repository of the app does not see', async (t) => {
    const ask =
      'git describe --tags --dirty && git rev-parse --abbrev-ref HEAD && git log -1 --format=%H:%s && git config core.hooksPath .husky && git branch -f mine && git gc --quiet && git fsck'
    const { deck, repository, cli } = await startApp(t, {
      config: {
        hooks: { build: { command: ['sh', '-c', `${ask} && node build.js`] },
          afterDeploy: { command: ['sh', '-c', ask] } },
        jobs: { ask: { command: ask } }
      }
    })
    repository.commit({})
    repository.git('checkout', '--quiet', '-b', 'next')
    const commit = repository.commit(versionOf('two'), 'Faster totals')
    repository.git('tag', 'v2')
    repository.git('checkout', '--quiet', 'main')
    const state =
      () => [repository.git('config', '--list', '--local'), repository.git('show-ref'),
        repository.git('status', '--porcelain', '--ignored')]
    const before = state()
    const told = new RegExp(`^v2\\nnext\\n${commit}:Faster totals\\n`, 'm')
    const { code, stdout, stderr } = await cli('deploy', '--git', 'v2', '--wait')
    assert.equal(code, 0, stderr)
    assert.match(stdout, told)
    const { detail } = await deck.untilEvent('hook.succeeded')
    assert.match(String(detail?.output), told)
    assert.match((await cli('jobs', 'run', 'ask', '--wait')).stdout, told)
    assert.deepEqual(state(), before)
  })

  test('refuses what it cannot export whole, and what is no name of a commit', async (t) => {
    const { repository, order, untilEnd, folders } = await startApp(t)
    for (const name of ['-upload-pack=touch x', '', ' main', 'main\nother', 'x'.repeat(251)])
      assert.equal((await order({ git: name })).status, 422, name)
    for (const name of ['nope', 'main..main', 'main^{tree}', ':/nothing like this', 'HEAD:app.js', '0'.repeat(40)]) {
      const { status, body } = await order({ git: name })
      assert.deepEqual([status, body.code], [404, 'not-found'], name)
    }
    repository.commit({
      'big.bin': `version https://git-lfs.github.com/spec/v1\noid sha256:${'a'.repeat(64)}\nsize 12345\n`
    })
    const pointers = await untilEnd((await order({ git: 'main', guess: true })).body)
    assert.match(pointers.reason, /pointers of Git LFS: big\.bin/)
    const other = createRepository()
    const commit = other.commit({ 'a.txt': 'a' })
    repository.git('rm', '--quiet', 'big.bin')
    repository.git('update-index', '--add', '--cacheinfo', `160000,${commit},lib`)
    repository.git('commit', '--quiet', '--message', 'A submodule')
    const submodule = await untilEnd((await order({ git: 'main', guess: true })).body)
    assert.deepEqual([submodule.cause, /submodules.*received lib/.test(submodule.reason)], ['git-failed', true])
    assert.deepEqual(folders(), [])
  })

  rareTest('the packages of a lock file that has not changed are linked, and go with the last release that needs them',
    async (t) => {
      const { deck, repository, ask, cli, folders } = await startApp(t, { config: { releases: { keep: 1 } } })
      const packages = withPackage(repository.app)
      const uses = (version: string) => ({ ...versionOf(version, { atLoad: 'import \'answer\'' }), ...packages })
      repository.commit(uses('two'))
      const first = await cli('deploy', '--git', 'main', '--wait', '--yes')
      assert.equal(first.code, 0, first.stderr)
      const inodes = async () => {
        const { body: { items: [release] } } = await deck.api('/releases')
        return { id: release.id, inode: statSync(path.join(release.path, 'node_modules', 'answer', 'index.js')).ino }
      }
      const before = await inodes()
      repository.commit(uses('three'))
      const second = await cli('deploy', '--git', 'main', '--wait')
      assert.equal(second.code, 0, second.stderr)
      assert.match(second.stdout, /files of packages are those of the last package-lock\.json, linked in/)
      assert.doesNotMatch(second.stdout, /npm ci/)
      const after = await inodes()
      assert.deepEqual([await ask(), after.id !== before.id, after.inode], ['three', true, before.inode])
      const kept = folders().filter((name) => name.startsWith('.modules-'))
      assert.equal(kept.length, 1)

      // Another lock file, and no release has the old one any more.
      for (const version of ['four', 'five', 'six']) {
        repository.commit({ ...versionOf(version) })
        assert.equal((await cli('deploy', '--git', 'main', '--wait', '--yes')).code, 0)
      }
      await until(() => !folders().includes(kept[0]) && folders().length === 3,
        () => `two releases and their packages in ${folders()}`)
    })

  for (const [how, wanted] of [['is ended', 'operator'], ['loses its master', 'master-lost']]) {
    rareTest(`a build that ${how} leaves no process and no folder, and that is told`, async (t) => {
      const { deck, repository, order, folders, dataDir, ask } = await startApp(t, { start: startDeck })
      const pidFile = path.join(dataDir, 'pid')
      repository.commit(
        versionOf('slow', {
          build: `import { spawn } from 'node:child_process'\nimport { writeFileSync as note } from 'node:fs'\nnote(${
            JSON.stringify(pidFile)
          }, String(spawn('sleep', ['600']).pid))\nawait new Promise(() => setInterval(() => {}, 1000))`
        })
      )
      const { body: run } = await order({ git: 'main', guess: true })
      await until(() => existsSync(pidFile) && readFileSync(pidFile, 'utf8') !== '', 'the build')
      if (how === 'loses its master') await (deck as Deck).loseMaster()
      else assert.equal((await deck.post(`/jobs/runs/${run.id}/end`, {})).status, 202)
      const { cause } = await deck.untilEvent('job.interrupted', { detail: { run: run.id } })
      assert.equal(cause, wanted)
      await until(() => isGone(readFileSync(pidFile, 'utf8')), 'the end of what the build has started')
      await until(() => folders().length === 0, 'an empty folder')
      assert.equal(await ask(), 'in place')
    })
  }

  test('a build has no secrets and its output shows none; its release has those that are read in its folder, also at the next start, which goes on with that commit', async (t) => {
    const repository = createRepository()
    const secrets = (value: string) => ({ 'secrets.json': JSON.stringify({ CANARY: value }) })
    const says = (version: string) =>
      versionOf(version, { atRequest: 'if (request.url === \'/canary\') return response.end(process.env.CANARY)',
        build: 'console.log(\'canary\', process.env.CANARY ?? \'none\', process.env.PLAIN, \'first-canary\')' })
    writeFiles(repository.app, secrets('first-canary'))
    const config = { env: { PLAIN: 'plain' }, secrets: { from: 'command', command: ['cat', 'secrets.json'] } }
    const { deck, startAgain, ask, cli, order, untilEnd, folders } = await startApp(t, { repository, config })
    repository.commit({ ...says('two'), ...secrets('second-canary') })
    writeFiles(repository.app, { 'secrets.json': 'of no commit' })
    const { code, stdout, stderr } = await cli('deploy', '--git', 'main', '--wait', '--yes')
    assert.equal(code, 0, stderr)
    assert.match(stdout, /canary none plain \[CANARY\]\n/)
    assert.deepEqual([await ask(), await ask('/canary')], ['two', 'second-canary'])
    assert.match((await cli('deploy', '--git', 'main', '--wait')).stdout,
      /r2 is of this commit already: nothing is built/)

    const kept = folders()
    repository.commit({ ...says('three'), 'secrets.json': 'no JSON' })
    const failed = await untilEnd((await order({ git: 'main' })).body)
    assert.deepEqual([failed.state, failed.cause, failed.release], ['failed', 'secrets-failed', null])
    assert.deepEqual([folders(), await ask('/canary')], [kept, 'second-canary'])

    await deck.stop()
    const next = await startAgain()
    assert.deepEqual([await next.ask(), await next.ask('/canary')], ['two', 'second-canary'])
  })

  rareTest('an app in a folder of its repository is built there, with hooks.build, and finds what it shares',
    async (t) => {
      const repository = createRepository(tempFolder(), 'apps/web')
      const { deck, ask, cli } = await startApp(t, { repository,
        config: { releases: { shared: ['.env'] },
          hooks: {
            build: {
              command: ['sh', '-c', 'pwd; node build.js; cat ../common.txt .env; echo "$CLUSTERDECK_HOOK $GIT_DIR"']
            }
          } } })
      writeFiles(repository.folder, { 'apps/common.txt': 'common\n', 'apps/web/.gitignore': 'dist\n.env\n' })
      writeFiles(repository.app, { '.env': 'SECRET=1\n' })
      repository.commit(versionOf('two'))
      const { code, stdout, stderr } = await cli('deploy', '--git', 'main', '--wait')
      assert.equal(code, 0, stderr)
      assert.match(stdout, /\/releases\/r2\/apps\/web\n[^]*built two\ncommon\nSECRET=1\nbuild \n/)
      const { body: { items: [release] } } = await deck.api('/releases')
      assert.deepEqual([release.build, release.entry, release.cwd], ['hooks.build', path.join(release.path, 'app.js'),
        release.path])
      assert.ok(release.path.endsWith('/r2/apps/web'))
      assert.equal(await ask(), 'two')
    })

  test('a token in the address of the repository is shown to nobody, and is in no log, also where git names it', async (t) => {
    const { port } = await serveHttp(t,
      (request, response) => response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end())
    const { deck, cli, dataDir } = await startApp(t, {
      config: { releases: { git: `http://t0ken-ABC@127.0.0.1:${port}/x.git` } }
    })
    const said = [await cli('deploy', '--git', 'main', '--wait', '--yes'),
      await cli('deploy', '--git', 'main', '--dry-run'), await cli('config')]
    assert.equal((await deck.post('/jobs/runs', { command: ['true', 'ftp://ada:t0ken-ABC@x'] })).status, 201)
    assert.deepEqual(said.map(({ code }) => code), [1, 1, 0])
    assert.match(said[0].stdout, /^fetching http:\/\/…@127\.0\.0\.1:\d+\/x\.git\n/)
    assert.match(said[0].stderr, /git fetch exited with code 128.*could not read Password for 'http:\/\/…@127/)
    const { origin } = new URL(deck.adminUrl)
    const headers = { authorization: `Bearer ${deck.token}` }
    const { body: { items: runs } } = await deck.api('/jobs/runs')
    const places = ['/api/v1/config', '/api/v1/events', '/api/v1/jobs/runs', '/api/v1/checks', '/api/v1/notices',
      '/api/v1/status', '/api/v1/events.csv', ...runs.map(({ id }) => `/api/v1/jobs/runs/${id}`)]
    const shown = await Promise.all(
      places.map(async (place) => await (await fetch(origin + place, { headers })).text())
    )
    const log = readFileSync(path.join(dataDir, 'logs/jobs/command.log'), 'utf8')
    assert.match(log, /git fetch http:\/\/…@127/)
    assert.doesNotMatch([...shown, log, ...said.flatMap(({ stdout, stderr }) => [stdout, stderr])].join('\n'),
      /t0ken-ABC/)
  })
})
