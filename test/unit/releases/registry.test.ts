import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync,
  realpathSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { openHistory } from '../../../db/history.ts'
import { openDataDir } from '../../../server/system/data-dir.ts'
import { readCommits, readGit, readGitAhead } from '../../../server/releases/git.ts'
import { createEventStream, type DeckEvent } from '../../../server/events/stream.ts'
import { keepOutcomes } from '../../../server/releases/outcomes.ts'
import { openReleases } from '../../../server/releases/registry.ts'
import { copyTree } from '../../../server/releases/tree-copy.ts'
import { listTree } from '../../../server/releases/tree.ts'
import { tempFolder, writeFiles } from '../../support/folder.ts'
import { createRepository, git } from '../../support/repository.ts'
import { DeckError } from '../../../server/errors.ts'
import { releaseServices } from '../../support/release-services.ts'
import { fake, type Parts } from '../../support/fake.ts'
import type { WorkerConfig } from '../../../server/releases/launch-spec.ts'
import type { Config } from '../../../server/config/config.ts'
import type { Release } from '../../../server/lifecycle/state.ts'

const ACTOR = { actor: 'api' }

/** `files`: by path */
function write (files: Record<string, string>, folder: string = tempFolder()) {
  writeFiles(folder, files)
  return folder
}

/** Releases of an app in a folder of its own, kept in a real database. */
async function registry (
  { folder = write({ 'app.js': '' }), entry = path.join(folder, 'app.js'), cwd = folder, mode = 'auto', root, keep = 10,
    shared = [], exclude = [], current = 'r0', data = tempFolder(), lastNumber = 0, inUse = [], drifted = [], time,
    before = null, last = null, ...more }:
      & { folder?: string, entry?: string, cwd?: string, mode?: 'auto' | 'folder' | 'live', root?: string,
        keep?: number, shared?: string[], exclude?: string[], current?: string, data?: string, lastNumber?: number,
        inUse?: string[], drifted?: string[], time?: () => number, before?: Release | null, last?: Release | null }
      & Partial<WorkerConfig> = {}
) {
  const dataDir = openDataDir(data)
  const history = openHistory({ file: dataDir.historyFile })
  const created = [] as string[]
  const errors = [] as unknown[]
  const config = fake<Config>({ entry, cwd, args: [], execArgv: [], env: {}, ...more,
    releases: { mode, root, keep, shared, exclude } })
  const answer: { config: Config | Error } = { config }
  const clock = { time: Date.UTC(2026, 0, 1) }
  const releases = await openReleases({ ...releaseServices(), config, history, lastNumber, before, last,
    cluster: () => ({ releasesInUse: () => inUse, snapshot: () => ({ release: { id: current } }) }),
    events: { publish: (event) => {
      created.push(String(event.release))
      return event as DeckEvent
    } }, reload: async () => {
      if (answer.config instanceof Error) throw answer.config
      return answer.config
    }, dataDir,
    drift: { knows: (id) => drifted.includes(id),
      of: (id) =>
        drifted.includes(id) ? { kind: 'code', count: 1, files: ['/srv/app.js'], since: null, by: null } : null },
    onError: (error) => errors.push(error), now: time ?? (() => clock.time++) })
  return { releases, folder, data, dataDir, history, created, errors, inUse,
    configure (changes: Parts<Config> | Error) {
      answer.config = changes instanceof Error ? changes : fake<Config>({ ...config, ...changes })
    } }
}

/** Releases that hear of the ends of rollouts, as `end` tells them. */
async function withOutcomes () {
  const parts = await registry()
  const events = createEventStream({ lastId: 0 })
  keepOutcomes({ releases: parts.releases, events })
  let last = 0
  return { ...parts, end (type: string, rollout: Record<string, unknown>) {
    events.publish({ type, rollout: ++last, detail: { id: last, actor: 'cli', note: null, reason: null, ...rollout } })
  } }
}

describe('where a release lies', () => {
  test('a plain folder is run in place, and each deploy of it is a release of its own', async () => {
    const { releases, folder, created } = await registry()
    const first = await releases.prepare({ ...ACTOR, note: 'why' })
    assert.deepEqual([first.id, first.mode, first.entry, first.path, first.cwd, first.createdBy, first.note,
      first.changed], ['r1', 'live', path.join(folder, 'app.js'), folder, folder, 'api', 'why', null])
    assert.equal((await releases.prepare(ACTOR)).id, 'r2')
    assert.deepEqual(created, ['r1', 'r2'])
  })

  test('an entry that goes through a link is what that leads to, as is the working folder; the same target is the same release', async () => {
    const root = write({ 'package.json': '{ "name": "above" }', 'v1/dist/app.js': '',
      'v1/package.json': '{ "name": "app", "version": "1.0.0" }', 'v2/dist/app.js': '' })
    symlinkSync('v1', path.join(root, 'current'))
    const { releases, created } = await registry({ folder: root, entry: path.join(root, 'current', 'dist', 'app.js'),
      cwd: path.join(root, 'current') })
    const first = await releases.prepare(ACTOR)
    assert.deepEqual([first.mode, first.entry, first.path, first.cwd, first.package], ['symlink',
      path.join(root, 'v1', 'dist', 'app.js'), path.join(root, 'v1'), path.join(root, 'v1'), { name: 'app',
      version: '1.0.0' }])
    releases.settle({ release: 'r1', outcome: 'succeeded' })
    relink(root, 'v2')
    const second = await releases.prepare(ACTOR)
    // The package.json above belongs to no release.
    assert.deepEqual([second.id, second.path, second.package], ['r2', path.join(root, 'v2'), null])
    assert.deepEqual([second.changed?.folder, second.changed?.package, second.changed?.entry], [true, true, false])
    relink(root, 'v1')
    assert.equal((await releases.prepare(ACTOR)).id, 'r1')
    assert.deepEqual(created, ['r1', 'r2'])
  })

  test('the same target is another release once files of it have changed under its workers', async () => {
    const root = write({ 'v1/app.js': '' })
    symlinkSync('v1', path.join(root, 'current'))
    const drifted = [] as string[]
    const { releases } = await registry({ folder: root, entry: path.join(root, 'current', 'app.js'), drifted })
    assert.deepEqual([(await releases.prepare(ACTOR)).id, (await releases.prepare(ACTOR)).id], ['r1', 'r1'])
    drifted.push('r1')
    assert.deepEqual([(await releases.prepare(ACTOR)).id, (await releases.prepare(ACTOR)).id], ['r2', 'r2'])
  })

  test('a path is a folder below the root, whatever it is called by, with the entry where the configured one lies', async () => {
    const root = write({ 'v1/package.json': '{}', 'v1/src/app.js': '', 'v2/package.json': '{}', 'v2/src/app.js': '',
      'v3/package.json': '{ "main": "lib/main" }', 'v3/lib/main.js': '' })
    symlinkSync('v2', path.join(root, 'newest'))
    const alias = path.join(tempFolder(), 'alias')
    symlinkSync(root, alias)
    const { releases } = await registry({ entry: path.join(root, 'v1', 'src', 'app.js'),
      cwd: path.join(root, 'v1', 'src'), root: alias })
    for (const name of [path.join(root, 'v2'), path.join(alias, 'v2'), 'v2', 'newest', './v1/../v2/']) {
      const { mode, entry, path: where, cwd } = await releases.prepare({ ...ACTOR, path: name })
      assert.deepEqual([mode, entry, where, cwd], ['path', path.join(root, 'v2', 'src', 'app.js'),
        path.join(root, 'v2'), path.join(root, 'v2', 'src')], name)
    }
    const third = await releases.prepare({ ...ACTOR, path: 'v3' })
    assert.equal(third.entry, path.join(root, 'v3', 'lib', 'main.js'))
    assert.equal(third.cwd, path.join(root, 'v1', 'src'), 'there is no such folder in it')
  })

  const outside = write({ 'app.js': '', 'secret/app.js': '' })
  const root = write({ 'v1/app.js': '',
    'evil-main/package.json': JSON.stringify({ main: `${'../'.repeat(20)}${outside}/app.js` }), 'a-file': '',
    'empty/readme': '' }, path.join(tempFolder(), 'root'))
  const twin = write({ 'app.js': '' }, `${root}-twin`)
  symlinkSync(outside, path.join(root, 'out'))
  symlinkSync('out/secret', path.join(root, 'out-by-two'))
  symlinkSync('loop', path.join(root, 'loop'))
  mkdirSync(path.join(root, 'evil-entry'))
  symlinkSync(path.join(outside, 'app.js'), path.join(root, 'evil-entry', 'app.js'))
  mkdirSync(path.join(outside, 'comes-back'))
  symlinkSync(path.join(root, 'v1', 'app.js'), path.join(outside, 'comes-back', 'app.js'))
  symlinkSync(path.join(outside, 'comes-back'), path.join(root, 'out-and-back'))
  execFileSync('mkfifo', [path.join(root, 'pipe')])
  mkdirSync(path.join(root, 'pipe-entry'))
  execFileSync('mkfifo', [path.join(root, 'pipe-entry', 'app.js')])
  execFileSync('mkfifo', [path.join(root, 'pipe-entry', 'package.json')])

  test('a path is refused that is not a folder below the root, whatever it is written like, and nothing changes', async () => {
    const { releases, created } = await registry({ entry: path.join(root, 'v1', 'app.js'), root })
    const parent = path.dirname(root)
    const [own, beside] = [root, twin].map((folder) => path.basename(folder))
    const lies = [root, '.', '', twin, parent, '../../../../etc', `${root}/v1/../../${beside}`]
    const links = ['out', 'out/secret', path.join(root, 'out-by-two'), 'out-and-back', `${root}/out/../${beside}`,
      'loop']
    const names = [path.join(parent, own.toUpperCase(), 'v1'), path.join(root, 'V1'), `${root}/v1\0/../../etc`,
      path.join(root, 'x'.repeat(5000)), path.join(root, 'x'.repeat(300)), 'file:///etc', '%2e%2e/%2e%2e/etc',
      '..\\..\\etc']
    const others = ['a-file', 'pipe', 'v9', '/nowhere/at/all', 'evil-entry', 'evil-main', '/proc/self/cwd', '/dev/fd/0']
    for (const wanted of [...lies, ...links, ...names, ...others]) {
      await assert.rejects(releases.prepare({ ...ACTOR, path: wanted }), { code: 'path-refused',
        message: /^path: expected a folder below releases\.root, received / }, wanted.slice(0, 100))
    }
    assert.deepEqual([created, releases.list().items], [[], []])
  })

  test('what is refused does not tell whether there is anything outside', async () => {
    const { releases } = await registry({ entry: path.join(root, 'v1', 'app.js'), root })
    for (const wanted of [outside, `${outside}/nothing`]) {
      await assert.rejects(releases.prepare({ ...ACTOR, path: wanted }), {
        message: /: it is not below releases\.root$/
      })
    }
  })

  test('without a root every path is refused, also that of the app', async () => {
    const { releases, folder } = await registry()
    await assert.rejects(releases.prepare({ ...ACTOR, path: folder }), { code: 'path-refused',
      message: /releases\.root is not set/ })
  })

  test('a folder without the entry is told of, as is an entry that is a pipe', async () => {
    const { releases } = await registry({ entry: path.join(root, 'v1', 'app.js'), root })
    await assert.rejects(releases.prepare({ ...ACTOR, path: 'empty' }), { code: 'entry-not-found',
      message: /expected a folder with app\.js, received "empty"/ })
    await assert.rejects(releases.prepare({ ...ACTOR, path: 'pipe-entry' }), { code: 'entry-not-found' })
  })
})

describe('a release folder', () => {
  test('holds the package folder of the entry, and nothing of it changes with the original', async () => {
    const folder = write({ 'package.json': '{ "version": "1.0.0" }', 'src/app.js': 'one',
      'node_modules/dep/index.js': 'dep one', 'node_modules/.cache/junk': '', '.git/HEAD': '', 'data/history.txt': '' })
    execFileSync('mkfifo', [path.join(folder, 'pipe')])
    utimesSync(path.join(folder, 'src', 'app.js'), 1_700_000_000, 1_700_000_000)
    const { releases } = await registry({ folder, entry: path.join(folder, 'src', 'app.js'), mode: 'folder',
      data: path.join(folder, 'data') })
    const release = await releases.prepare(ACTOR)
    assert.deepEqual([release.mode, release.source, release.cwd, path.relative(release.path, release.entry)], ['folder',
      folder, release.path, 'src/app.js'])
    assert.deepEqual(readdirSync(release.path, { recursive: true }).sort(), ['node_modules', 'node_modules/dep',
      'node_modules/dep/index.js', 'package.json', 'src', 'src/app.js'])
    assert.equal(statSync(release.entry).mtimeMs, 1_700_000_000_000)

    writeFileSync(path.join(folder, 'src', 'app.js'), 'two')
    replace(path.join(folder, 'node_modules', 'dep', 'index.js'), 'dep two')
    assert.deepEqual([readFileSync(release.entry, 'utf8'),
      readFileSync(path.join(release.path, 'node_modules/dep/index.js'), 'utf8')], ['one', 'dep one'])
    rmSync(path.join(folder, 'node_modules'), { recursive: true })
    assert.equal(readFileSync(path.join(release.path, 'node_modules/dep/index.js'), 'utf8'), 'dep one')
  })

  test('holds the package that has built the app, as a build may have its own package.json but reads what is beside it', async () => {
    const app = { '.output/server/package.json': '{}', '.output/server/index.mjs': '', '.output/public/page.js': '' }
    const folder = write({ 'package.json': '{}', ...app, '.next/standalone/package.json': '{}',
      '.next/standalone/server.js': '', '.next/static/page.js': '' })
    const nitro = await registry({ folder, entry: path.join(folder, '.output/server/index.mjs'), mode: 'folder' })
    const release = await nitro.releases.prepare(ACTOR)
    assert.deepEqual([release.source, existsSync(path.join(release.entry, '../../public/page.js'))], [folder, true])
    const next = await registry({ folder, entry: path.join(folder, '.next/standalone/server.js') })
    assert.equal((await next.releases.prepare(ACTOR)).path, folder)

    const alone = write(app)
    const built = await registry({ folder: alone, entry: path.join(alone, '.output/server/index.mjs') })
    assert.equal((await built.releases.prepare(ACTOR)).path, path.join(alone, '.output'))
    const current = path.join(write({}), 'current')
    symlinkSync(path.join(alone, '.output/server'), current)
    const linked = await registry({ folder: path.dirname(current), entry: path.join(current, 'index.mjs') })
    assert.equal((await linked.releases.prepare(ACTOR)).path, path.join(alone, '.output/server'))
  })

  // What hard links cannot do, kept here so that the README goes on saying so.
  test('shares with the original what is written into a file of node_modules in place, unless the file system clones', async () => {
    const folder = write({ 'app.js': '', 'package.json': '{}', 'node_modules/dep/index.js': 'one',
      'node_modules/dep/other.js': 'one' })
    const { releases } = await registry({ folder, mode: 'folder' })
    const release = await releases.prepare(ACTOR)
    const [ours, its] = [folder, release.path].map((top) => path.join(top, 'node_modules/dep/index.js'))
    const isShared = statSync(ours).ino === statSync(its).ino
    writeFileSync(ours, 'two')
    assert.equal(readFileSync(its, 'utf8'), isShared ? 'two' : 'one')
    assert.notEqual(statSync(path.join(folder, 'app.js')).ino, statSync(release.entry).ino)
  })

  test('is copied as a whole where the data folder is on another file system', { skip: !isElsewhere('/dev/shm') },
    async (t) => {
      const folder = write({ 'app.js': '', 'package.json': '{}', 'node_modules/dep/index.js': 'one',
        'node_modules/dep/run.sh': '' })
      chmodSync(path.join(folder, 'node_modules/dep/run.sh'), 0o755)
      const data = mkdtempSync('/dev/shm/clusterdeck-test-')
      t.after(() => rmSync(data, { recursive: true }))
      const { releases } = await registry({ folder, mode: 'folder', data })
      const { path: copy } = await releases.prepare(ACTOR)
      writeFileSync(path.join(folder, 'node_modules/dep/index.js'), 'two')
      assert.equal(readFileSync(path.join(copy, 'node_modules/dep/index.js'), 'utf8'), 'one')
      assert.equal(statSync(path.join(copy, 'node_modules/dep/run.sh')).mode & 0o777, 0o755)
    })

  test('keeps links: those within lead to the copy, those out of it to where they led', async () => {
    const shared = write({ 'lib.js': 'shared' })
    const folder = write({ 'package.json': '{}', 'app.js': '', 'lib/real.js': 'one' })
    symlinkSync('real.js', path.join(folder, 'lib', 'near.js'))
    symlinkSync(path.join(folder, 'lib'), path.join(folder, 'absolute'))
    symlinkSync(path.relative(folder, shared), path.join(folder, 'shared'))
    symlinkSync('nowhere', path.join(folder, 'dangling'))
    const alias = write({})
    symlinkSync(folder, path.join(alias, 'app'))
    symlinkSync(path.join(alias, 'app', 'lib'), path.join(folder, 'by-another-name'))
    const { releases } = await registry({ folder, mode: 'folder' })
    const { path: copy } = await releases.prepare(ACTOR)
    writeFileSync(path.join(folder, 'lib', 'real.js'), 'two')
    assert.deepEqual(
      ['lib/near.js', 'absolute/real.js', 'by-another-name/real.js', 'shared/lib.js'].map((name) =>
        readFileSync(path.join(copy, name), 'utf8')
      ),
      ['one', 'one', 'one', 'shared']
    )
    assert.equal(readlinkSync(path.join(copy, 'dangling')), 'nowhere')
    assert.equal(lstatSync(path.join(copy, 'absolute')).isSymbolicLink(), true)
  })

  test('is made once of the same files, and anew when one of them is another', async () => {
    const folder = write({ 'package.json': '{}', 'app.js': 'one', 'node_modules/dep/index.js': '' })
    const { releases } = await registry({ folder, mode: 'folder' })
    assert.equal((await releases.prepare(ACTOR)).id, 'r1')
    assert.equal((await releases.prepare(ACTOR)).id, 'r1')
    writeFileSync(path.join(folder, 'app.js'), 'two')
    const second = await releases.prepare(ACTOR)
    assert.deepEqual([second.id, readFileSync(second.entry, 'utf8')], ['r2', 'two'])

    // As tools do that keep the times.
    for (const [n, name] of ['app.js', 'node_modules/dep/index.js'].entries()) {
      for (const text of ['one', 'two']) {
        replace(path.join(folder, name), text)
        utimesSync(path.join(folder, name), 1_700_000_000, 1_700_000_000)
        const { path: copy } = await releases.prepare(ACTOR)
        assert.equal(readFileSync(path.join(copy, name), 'utf8'), text, name)
      }
      assert.equal(releases.list().items.length, 4 + 2 * n)
    }
    // The same file, written in place.
    writeFileSync(path.join(folder, 'app.js'), 'six')
    utimesSync(path.join(folder, 'app.js'), 1_700_000_000, 1_700_000_000)
    assert.equal(readFileSync((await releases.prepare(ACTOR)).entry, 'utf8'), 'six')
  })

  test('has what all releases share as links, and not what is excluded', async () => {
    const folder = realpathSync(
      write({ 'package.json': '{}', 'app.js': '', '.env': 'A=1', 'data/shop.sqlite': 'rows', 'tmp/junk': '',
        'src/tmp/kept': '', '.next/cache/junk': '', '.next/BUILD_ID': '1' })
    )
    const { releases } = await registry({ folder, mode: 'folder', shared: ['.env', 'data/shop.sqlite', 'uploads/'],
      exclude: ['tmp'] })
    const { id, path: copy } = await releases.prepare(ACTOR)
    assert.deepEqual(['.env', 'data/shop.sqlite', 'uploads'].map((name) => readlinkSync(path.join(copy, name))),
      ['.env', 'data/shop.sqlite', 'uploads'].map((name) => path.join(folder, name)))
    assert.deepEqual(readdirSync(copy, { recursive: true }).sort(), ['.env', '.next', '.next/BUILD_ID', 'app.js',
      'data', 'data/shop.sqlite', 'package.json', 'src', 'src/tmp', 'src/tmp/kept', 'uploads'])
    writeFileSync(path.join(copy, 'uploads', 'cat.png'), 'cat')
    assert.equal(readFileSync(path.join(folder, 'uploads', 'cat.png'), 'utf8'), 'cat')
    assert.equal((await releases.prepare(ACTOR)).id, id, 'what is shared makes no new release')
    await releases.prune()
  })

  test('is made of a folder that is named, where the deploy asks for it: it stays when that goes, and has what all releases share', async () => {
    const root = write({ 'app/app.js': '', 'app/data/orders.txt': 'one', 'v2/app.js': 'two', 'v3/app.js': 'three' })
    const { releases } = await registry({ folder: path.join(root, 'app'), root, shared: ['data/'], current: 'r1',
      time: Date.now })
    const first = await releases.prepare({ ...ACTOR, path: 'v2', mode: 'folder' })
    assert.deepEqual([first.mode, first.source], ['folder', realpathSync(path.join(root, 'v2'))])
    assert.equal((await releases.prepare({ ...ACTOR, path: 'v2', mode: 'folder' })).id, first.id)
    rmSync(path.join(root, 'v2'), { recursive: true })
    assert.deepEqual([readFileSync(first.entry, 'utf8'),
      readFileSync(path.join(first.path, 'data/orders.txt'), 'utf8')], ['two', 'one'])
    assert.equal((await releases.load(first.id)).id, first.id)
    // The kernel's clock of files may be some milliseconds late.
    await new Promise((resolve) => setTimeout(resolve, 20))
    write({ 'uploads/a.png': '' }, first.path)
    await assert.rejects(releases.prepare({ ...ACTOR, path: 'v3', mode: 'folder' }), { code: 'unshared-files' })
    assert.equal((await releases.prepare({ ...ACTOR, path: 'v3' })).mode, 'path')
  })

  test('is not made with something shared that is not there', async () => {
    const folder = realpathSync(write({ 'package.json': '{}', 'app.js': '' }))
    const { releases } = await registry({ folder, mode: 'folder', shared: ['.env'] })
    await assert.rejects(releases.prepare(ACTOR), { code: 'invalid-config',
      message:
        `releases.shared: expected files and folders of ${folder}, received .env, which is not there; a folder that is to be made ends with "/"` })
    assert.deepEqual(releases.list().items, [])
  })

  test('of a package is one of its whole workspace, as its packages are found from there', async () => {
    const root = realpathSync(
      write({ 'pnpm-workspace.yaml': '', 'package.json': '{}', '.git/HEAD': '',
        'node_modules/.pnpm/dep/index.js': 'dep', 'lib/package.json': '{}', 'web/package.json': '{ "name": "web" }',
        'web/app.js': '', 'web/node_modules/.keep': '' })
    )
    symlinkSync('../../node_modules/.pnpm/dep', path.join(root, 'web', 'node_modules', 'dep'))
    symlinkSync('../../lib', path.join(root, 'web', 'node_modules', 'lib'))
    const { releases } = await registry({ folder: path.join(root, 'web'), mode: 'folder' })
    const release = await releases.prepare(ACTOR)
    assert.deepEqual([path.basename(release.path), release.cwd, release.package?.name], ['web', release.path, 'web'])
    rmSync(root, { recursive: true })
    assert.equal(readFileSync(path.join(release.path, 'node_modules', 'dep', 'index.js'), 'utf8'), 'dep')
    assert.equal(realpathSync(path.join(release.path, 'node_modules', 'lib')),
      path.join(path.dirname(release.path), 'lib'))
  })

  test('is told by Node options what to load from the copy, and by a link what to load from where that leads', async () => {
    const folder = realpathSync(write({ 'package.json': '{}', 'app.js': '', '.pnp.cjs': '', 'trace.mjs': '' }))
    const current = path.join(tempFolder(), 'current')
    symlinkSync(folder, current)
    const other = realpathSync(write({ 'agent.cjs': '' }))
    const execArgv = ['--require', path.join(current, '.pnp.cjs'), `--import=${path.join(folder, 'trace.mjs')}`, '-r',
      path.join(other, 'agent.cjs'), '-r', './own.cjs', '--title', '/gone', '--no-warnings']
    for (const [mode, entry] of [['folder', path.join(folder, 'app.js')], ['auto', path.join(current, 'app.js')]] as [
      'folder' | 'auto',
      string
    ][]) {
      const { releases } = await registry({ folder, entry, mode, execArgv })
      const { id, path: own } = await releases.prepare(ACTOR)
      const { execArgv: words } = releases.find(id)!
      assert.deepEqual(words, ['--require', path.join(own, '.pnp.cjs'), `--import=${path.join(own, 'trace.mjs')}`, '-r',
        path.join(other, 'agent.cjs'), '-r', './own.cjs', '--title', '/gone', '--no-warnings'])
      assert.equal((await releases.prepare(ACTOR)).id, id, 'they make no new release')
      assert.equal(own === folder, mode === 'auto')
    }
  })

  test('cannot be made where Yarn has the packages in a folder of the user', async () => {
    const folder = write({ 'package.json': '{}', 'app.js': '',
      '.pnp.cjs': '{ "packageLocation": "../../home/ada/.yarn/berry/cache/dep.zip/" }' })
    const { releases } = await registry({ folder, mode: 'folder' })
    await assert.rejects(releases.prepare(ACTOR), { code: 'copy-failed',
      message: /global cache\. Set "enableGlobalCache: false" in \.yarnrc\.yml and run yarn install$/ })
  })

  test('keeps what the app has written into it: the next deploy is refused until somebody says what to do with that', async () => {
    const folder = realpathSync(
      write({ 'package.json': '{}', 'app.js': 'one', 'node_modules/dep/index.js': '', 'shop.sqlite': '' })
    )
    const { releases, configure } = await registry({ folder, mode: 'folder', current: 'r1', time: Date.now })
    const { path: copy } = await releases.prepare(ACTOR)
    await new Promise((resolve) => setTimeout(resolve, 20))
    writeFileSync(path.join(copy, 'shop.sqlite'), 'rows')
    write({ 'uploads/cat.png': '', 'node_modules/dep/compiled.js': '' }, copy)
    writeFileSync(path.join(folder, 'app.js'), 'two')
    await assert.rejects(releases.prepare(ACTOR), (error: DeckError) => {
      assert.deepEqual([error.code, error.details], ['unshared-files', { release: 'r1',
        files: ['shop.sqlite', 'uploads/cat.png'] }])
      assert.ok(error.message.includes(`received shop.sqlite, uploads/cat.png in the folder of r1, ${copy}`),
        error.message)
      return true
    })
    assert.deepEqual([releases.list().items.length, readFileSync(path.join(copy, 'shop.sqlite'), 'utf8')], [1, 'rows'])
    configure({ releases: { mode: 'folder', shared: [], exclude: ['shop.sqlite', 'uploads'] } })
    assert.equal((await releases.prepare(ACTOR)).id, 'r2')
  })

  test('of a folder whose entry lies outside is refused', async () => {
    const root = write({ 'v1/package.json': '{}', 'v1/app.js': '', 'v2/package.json': '{ "main": "../v1/app.js" }' })
    const { releases } = await registry({ entry: path.join(root, 'v1', 'app.js'), mode: 'folder', root })
    await assert.rejects(releases.prepare({ ...ACTOR, path: 'v2' }), { code: 'copy-failed',
      message: /v2 failed: its entry, .*v1\/app\.js, is not in it/ })
    assert.deepEqual(releases.list().items, [])
  })

  test('is there whole or not at all, and says why', async () => {
    const from = write({ 'app.js': '' })
    const place = write({ 'taken/file': '' })
    const entries = await listTree(from, { except: [] })
    await assert.rejects(copyTree(entries, { from, to: path.join(place, 'taken') }), { code: 'copy-failed',
      message: /^the copy of .* failed: ENOTEMPTY/ })
    await assert.rejects(copyTree([...entries, { ...entries[0] }], { from, to: path.join(place, 'twice') }), {
      code: 'copy-failed',
      message: /EEXIST/
    })
    assert.deepEqual(readdirSync(place), ['taken'])
  })

  test('a master begins by removing what another one has left of it, and nothing that is in use or known', async () => {
    const folder = write({ 'package.json': '{}', 'app.js': '' })
    const { releases, dataDir, inUse } = await registry({ folder, mode: 'folder' })
    const { path: known } = await releases.prepare(ACTOR)
    write({ '.new-r8/app.js': '', '.gone-r3/app.js': '', 'r7/app.js': '', 'r9/app.js': '', 'notes.txt': '' },
      dataDir.releaseFolder)
    inUse.push('r9')
    await releases.clean()
    assert.deepEqual(readdirSync(dataDir.releaseFolder).sort(), ['notes.txt', path.basename(known), 'r9'])
  })

  test('the app\'s folder as the data folder is refused: it would copy itself', async () => {
    const folder = realpathSync(write({ 'package.json': '{}', 'app.js': '' }))
    const { releases } = await registry({ folder, mode: 'folder', data: folder })
    await assert.rejects(releases.prepare(ACTOR), { code: 'copy-failed', message: /^dataDir: expected another folder/ })
  })
})

describe('what is known of a release', () => {
  test('a checkout tells its commit and branch, and whether a tracked file is changed', async () => {
    const folder = write({ 'app.js': 'one' })
    assert.equal(await readGit(folder), null)
    const repository = createRepository(folder)
    assert.equal(await readGit(folder), null, 'there is no commit yet')
    const commit = repository.commit({}, 'one')
    const about = { author: 'Ada', subject: 'one' }
    assert.deepEqual(await readGit(folder), { commit, branch: 'main', isDirty: false, ...about })
    writeFileSync(path.join(folder, 'app.js'), 'two')
    writeFileSync(path.join(folder, 'new.js'), '')
    assert.deepEqual(await readGit(folder), { commit, branch: 'main', isDirty: true, ...about })
    repository.git('checkout', '--force', '--detach')
    assert.deepEqual(await readGit(folder), { commit, branch: null, isDirty: false, ...about })
  })

  test('what is checked out is read ahead for one question, and for none that is asked once it is forgotten', async () => {
    const folder = write({ 'app.js': '' })
    const repository = createRepository(folder)
    const first = repository.commit({}, 'first')
    const file = path.join(folder, 'app.js')
    readGitAhead(file)
    assert.equal((await readGit(folder))?.commit, first)
    const forget = readGitAhead(file)
    const second = repository.commit({}, 'second')
    forget()
    assert.equal((await readGit(folder))?.commit, second)
    assert.equal(typeof readGitAhead(path.join(folder, 'none.js')), 'function')
  })

  test('two releases of a repository tell the commits that come and those that go, also once one is checked out alone', async () => {
    const folder = write({ 'app.js': '' })
    const repository = createRepository(folder)
    const { releases } = await registry({ folder })
    const first = repository.commit({}, 'first')
    await releases.prepare(ACTOR)
    for (let n = 2; n <= 24; n++) repository.commit({}, `change ${n}`)
    repository.git('tag', 'newest')
    repository.git('checkout', '-b', 'other', first)
    repository.commit({}, 'other\n\nMore of it.')
    await releases.prepare(ACTOR)
    repository.git('checkout', 'newest')
    await releases.prepare(ACTOR)
    const told = async (from: string, to: string) => {
      const { commits } = await releases.compare(from, to)
      return commits &&
        [commits.added, commits.removed].map(({ items, hasMore }) => [items.length, items[0]?.subject, hasMore])
    }
    assert.deepEqual(await told('r1', 'r3'), [[20, 'change 24', true], [0, undefined, false]])
    assert.deepEqual(await told('r3', 'r2'), [[1, 'other', false], [20, 'change 24', true]])
    assert.equal(await told('r1', 'r1'), null)
    assert.equal(await readCommits(folder, { from: '--output=/tmp/x', to: first, limit: 1 }), null)
  })

  test('nothing that a repository names is run, and no variable leads git elsewhere', async (t) => {
    const folder = write({ 'app.js': 'one' })
    const other = write({ 'b.js': '' })
    for (const each of [folder, other]) createRepository(each).commit({}, each)
    git(folder, 'config', 'core.fsmonitor', `touch ${folder}/was-run; false`)
    process.env.GIT_DIR = path.join(other, '.git')
    t.after(() => {
      delete process.env.GIT_DIR
    })
    const found = await readGit(folder)
    delete process.env.GIT_DIR
    assert.equal(found?.commit, git(folder, '-c', 'core.fsmonitor=false', 'rev-parse', 'HEAD'))
    assert.equal(existsSync(path.join(folder, 'was-run')), false)
  })

  test('no deploy waits for git, or fails by it', async () => {
    const folder = write({ 'app.js': '', '.git': '', hangs: '#!/bin/sh\nexec sleep 100\n',
      'hangs-later': '#!/bin/sh\ncase "$*" in *rev-parse*) printf "%040d\\nmain\\n" 7;; *) exec sleep 100;; esac\n',
      floods: '#!/bin/sh\nexec yes\n' })
    const programs = ['hangs', 'hangs-later', 'floods'].map((name) => path.join(folder, name))
    execFileSync('chmod', ['+x', ...programs])
    const read = (program: string) => readGit(folder, { program, patienceMs: 2000 })
    // What floods takes the CPU from the others.
    const floods = await read(programs[2])
    const [hangs, later, missing] = await Promise.all(
      [programs[0], programs[1], path.join(folder, 'missing')].map(read)
    )
    assert.deepEqual([hangs, later, floods, missing], [null, { commit: `${'0'.repeat(39)}7`, branch: 'main',
      isDirty: null, author: null, subject: null }, null, null])
  })

  test('where nothing is checked out git is not run, as most starts wait for it', async () => {
    const folder = write({ 'app.js': '', git: '#!/bin/sh\ntouch "$0.was-run"\n' })
    const program = path.join(folder, 'git')
    execFileSync('chmod', ['+x', program])
    assert.equal(await readGit(folder, { program }), null)
    assert.equal(existsSync(`${program}.was-run`), false)
  })

  test('what has changed is named against the one before: variables by name, never by value', async () => {
    const folder = write({ 'v1/app.js': '', 'v1/package.json': '\uFEFF{ "version": "1.0.0" }',
      'v1/package-lock.json': '1', 'app.env': '\uFEFFTOKEN=hunter2\nSAME=s\nGONE=g\n' })
    const { releases, configure, history, data } = await registry({ folder, entry: path.join(folder, 'v1', 'app.js'),
      envFile: path.join(folder, 'app.env'), env: { LEVEL: 'info', HOME: null } })
    const first = await releases.prepare(ACTOR)
    releases.settle({ release: 'r1', outcome: 'succeeded' })
    assert.deepEqual(first.environment?.names, ['GONE', 'HOME', 'LEVEL', 'SAME', 'TOKEN'])
    assert.deepEqual(releases.environment('r1'), { TOKEN: 'hunter2', SAME: 's', GONE: 'g', LEVEL: 'info',
      HOME: undefined })

    write({ 'app.env': 'TOKEN=hunter3\nSAME=s\n', 'v1/package.json': '{ "version": "1.1.0" }',
      'v1/package-lock.json': '2' }, folder)
    configure({ env: { LEVEL: 'info', HOME: null, NEW: 'n' }, args: ['--secret=swordfish'] })
    const second = await releases.prepare(ACTOR)
    assert.deepEqual(second.changed, { from: 'r1', environment: ['GONE', 'NEW', 'TOKEN'], arguments: true,
      package: true, commit: false, lockFile: true, node: false, mode: false, folder: false, entry: false })
    assert.deepEqual(second.args, ['--secret=swordfish'])
    assert.equal(releases.environment('r1').TOKEN, 'hunter2', 'its workers come back with what they were started with')
    assert.equal(releases.environment('r2').TOKEN, 'hunter3')

    assert.doesNotMatch(JSON.stringify(releases.list()), /hunter|swordfish/)
    history.close()
    for (const name of readdirSync(data, { recursive: true, encoding: 'utf8' }).filter((each) =>
      statSync(path.join(data, each)).isFile()
    )) {
      assert.doesNotMatch(readFileSync(path.join(data, name), 'latin1'), /hunter/, name)
    }
  })

  test('a configuration that cannot be read or makes no sense fails the deploy, and changes nothing', async () => {
    const folder = write({ 'app.js': '', 'app.env': 'A=1' })
    const { releases, configure, created } = await registry({ folder, envFile: path.join(folder, 'app.env') })
    const { DeckError } = await import('../../../server/errors.ts')
    execFileSync('mkfifo', [path.join(folder, 'pipe')])
    write({ binary: 'A=\0', large: 'A=1\n'.repeat(300_000) }, folder)
    for (const wrong of [new DeckError('invalid-config', 'workers: expected a bird'),
      new DeckError('unknown-option', 'unknown option "wrokers"'),
      ...['missing', 'pipe', 'binary', 'large', ''].map((name) => ({ env: { A: '2' },
        envFile: path.join(folder, name) })
      )])
    {
      configure(wrong)
      await assert.rejects(releases.prepare(ACTOR), { code: 'invalid-config' })
    }
    assert.deepEqual([created, releases.environment('r1')], [[], { A: '1' }])
    configure({})
    assert.equal((await releases.prepare(ACTOR)).id, 'r1')
  })
})

describe('what is kept', () => {
  test('the next master knows what there was, whatever its files are by then', async () => {
    const folder = write({ 'app.js': '', 'package.json': '{}' })
    const before = await registry({ folder, mode: 'folder', env: { A: '1' }, args: ['x'] })
    await before.releases.prepare(ACTOR)
    writeFileSync(path.join(folder, 'app.js'), 'two')
    const second = await before.releases.prepare({ ...ACTOR, note: 'n' })
    before.releases.settle({ release: 'r2', outcome: 'succeeded', rollout: 4 })
    before.releases.settle({ release: 'r1', outcome: 'failed' })
    before.history.close()

    const { releases } = await registry({ folder, mode: 'folder', env: { A: '2' }, data: before.data,
      before: JSON.parse(JSON.stringify(second)) })
    assert.deepEqual(releases.list().items.map(({ id, outcome, rollout, note }) => [id, outcome, rollout, note]), [[
      'r2',
      'succeeded',
      4,
      'n'
    ], ['r1', 'failed', null, null]])
    const { release: adopted } = await releases.begin()
    assert.deepEqual([adopted.environmentChanged, adopted.args, adopted.environment?.digest], [true, ['x'],
      second.environment?.digest])
    assert.deepEqual(releases.environment('r2'), { A: '2' })
    const old = await releases.load('r1')
    assert.deepEqual([old.environmentChanged, old.args, readFileSync(old.entry, 'utf8')], [true, ['x'], ''])
    const { id, changed } = await releases.prepare(ACTOR)
    assert.deepEqual([id, changed?.environment, changed?.arguments], ['r3', ['A'], true])
  })

  test('the same code is another release in another working folder', async () => {
    const root = write({ 'v1/app.js': '' })
    symlinkSync('v1', path.join(root, 'current'))
    const how = { folder: root, entry: path.join(root, 'current', 'app.js') }
    const before = await registry(how)
    await before.releases.prepare(ACTOR)
    before.history.close()
    const again = await registry({ ...how, data: before.data })
    assert.equal((await again.releases.prepare(ACTOR)).id, 'r1')
    again.history.close()
    const { releases } = await registry({ ...how, data: before.data, cwd: path.join(root, 'v1') })
    assert.equal((await releases.prepare(ACTOR)).id, 'r2')
  })

  test('a number that another master has given out is not given again, whatever the history knows', async () => {
    const { releases } = await registry({ lastNumber: 6 })
    assert.equal((await releases.prepare(ACTOR)).id, 'r7')
  })

  test('the release that a master begins with is told of by whoever starts it: the start may still fail', async () => {
    const { releases, created } = await registry()
    const { release, isNew } = await releases.begin()
    assert.deepEqual([release.id, isNew, created], ['r1', true, []])
    releases.tellCreated(release)
    assert.deepEqual(created, ['r1'])
  })

  test('what another master has kept until it let go of the history is known once it is taken over', async () => {
    const { releases, history } = await registry()
    history.releases.replace([{ number: 4, outcome: 'succeeded', deployedMs: 1,
      body: { id: 'r4', entry: '/srv/app.js', path: '/srv', mode: 'live' }, arguments: { args: [], execArgv: [] },
      marks: {} }])
    releases.readKept()
    assert.equal(releases.find('r4')?.entry, '/srv/app.js')
    assert.equal((await releases.prepare(ACTOR)).id, 'r5')
  })

  test('with the same variables nothing is said of them', async () => {
    const before = await registry({ env: { A: '1' } })
    const release = await before.releases.prepare(ACTOR)
    before.history.close()
    const { releases } = await registry({ folder: before.folder, env: { A: '1' }, data: before.data, before: release })
    assert.deepEqual(await releases.begin(), { release, isNew: false })
  })

  test('the one before is the last that has served, whatever came of later deploys of it, and is kept', async () => {
    const { releases, inUse } = await registry({ keep: 1 })
    for (let deploy = 0; deploy < 4; deploy++) await releases.prepare(ACTOR)
    assert.throws(() => releases.before('r4'), { code: 'not-found' })
    releases.settle({ release: 'r1', outcome: 'succeeded' })
    releases.settle({ release: 'r2', outcome: 'succeeded' })
    releases.settle({ release: 'r2', outcome: 'rolled-back' })
    releases.settle({ release: 'r3', outcome: 'failed' })
    assert.deepEqual(['r4', 'r2', 'r1'].map(releases.before), ['r2', 'r1', 'r2'])
    inUse.push('r4')
    await releases.prune()
    assert.deepEqual(releases.list().items.map(({ id }) => id), ['r4', 'r3', 'r2'])
  })

  test('a release that has served stays a success, whatever comes of a later rollout to it, and says what that was', async () => {
    const { releases, data, folder, history, end } = await withOutcomes()
    for (let deploy = 0; deploy < 3; deploy++) await releases.prepare(ACTOR)
    end('rollout.succeeded', { kind: 'deploy', from: 'r1', to: 'r2' })
    end('rollout.succeeded', { kind: 'deploy', from: 'r2', to: 'r3' })
    end('rollout.rolled-back', { kind: 'rollback', from: 'r3', to: 'r2', reason: 'aborted by ada' })
    end('rollout.failed', { kind: 'rollback', from: 'r3', to: 'r1', reason: 'worker 9 crashed' })
    history.close()
    for (const each of [releases, (await registry({ folder, data })).releases]) {
      assert.deepEqual(
        each.list().items.map((
          { id, outcome, rollout, setback }
        ) => [id, outcome, rollout, setback?.outcome, setback?.reason]),
        [['r3', 'succeeded', 2, undefined, undefined], ['r2', 'succeeded', 1, 'failed', 'aborted by ada'], ['r1',
          'failed', 4, undefined, undefined]]
      )
      assert.equal(each.before('r3'), 'r2')
    }
  })

  test('nobody rolls back by default to what was rolled back, and never to what the guard rolled back', async () => {
    const { releases, end } = await withOutcomes()
    for (let deploy = 0; deploy < 4; deploy++) await releases.prepare(ACTOR)
    const marks = () =>
      releases.list().items.map(({ setback }) => setback && [setback.outcome, setback.actor, setback.reason])
    for (const n of [1, 2, 3]) end('rollout.succeeded', { kind: 'deploy', from: `r${n - 1}`, to: `r${n}` })
    end('rollout.succeeded', { kind: 'rollback', from: 'r3', to: 'r2', actor: 'guard', note: 'it crashes' })
    assert.deepEqual([releases.before('r2'), marks()[1]], ['r1', ['rolled-back', 'guard', 'it crashes']])

    end('rollout.succeeded', { kind: 'rollback', from: 'r2', to: 'r1', actor: 'ada' })
    assert.equal(releases.before('r1'), 'r2', 'there is nothing else that a person might want')
    end('rollout.failed', { kind: 'rollback', from: 'r1', to: 'r3', actor: 'ada' })
    assert.equal(releases.before('r2'), 'r1')
    assert.equal(releases.before('r1'), 'r2', 'a failure makes nothing good that was rolled back')

    end('rollout.succeeded', { kind: 'rollback', from: 'r1', to: 'r3', actor: 'ada' })
    assert.deepEqual([releases.before('r1'), marks()[1], marks()[3]], ['r3', null, null],
      'going forward takes nothing back')
  })

  test('where the guard has rolled back all others, a rollback has to name one', async () => {
    const { releases, end } = await withOutcomes()
    for (let deploy = 0; deploy < 2; deploy++) await releases.prepare(ACTOR)
    end('rollout.succeeded', { kind: 'deploy', from: 'r1', to: 'r2' })
    end('rollout.succeeded', { kind: 'rollback', from: 'r2', to: 'r1', actor: 'guard' })
    assert.throws(() => releases.before('r1'), { code: 'not-found',
      message: /to use one that the guard rolled back, name it$/ })
  })

  test('a master that goes on with a release leaves the time of its deploy alone', async () => {
    const { releases } = await registry()
    await releases.prepare(ACTOR)
    releases.settle({ release: 'r1', outcome: 'succeeded', rollout: 7 })
    const before = releases.get('r1')
    releases.settleFirst('r1')
    assert.deepEqual(releases.get('r1'), before)
  })

  test('two releases are compared in either direction, variables by name', async () => {
    const { releases, folder, configure } = await registry({ env: { A: '1' } })
    await releases.prepare(ACTOR)
    await releases.prepare(ACTOR)
    write({ 'package.json': '{ "version": "2.0.0" }' }, folder)
    configure({ env: { A: '2', B: '1' } })
    await releases.prepare(ACTOR)
    for (const [from, to] of [['r1', 'r3'], ['r3', 'r1']]) {
      const { changed: { environment, package: isOther, commit, ...rest } } = await releases.compare(from, to)
      assert.deepEqual([rest.from, environment, isOther, commit], [from, ['A', 'B'], true, false])
    }
    await assert.rejects(releases.compare('r1', 'r9'), { code: 'not-found' })
  })

  test('the newest are kept, and those that are in use; the folders of the others go', async () => {
    const folder = write({ 'app.js': '', 'package.json': '{}' })
    const { releases, dataDir, inUse } = await registry({ folder, mode: 'folder', keep: 2 })
    inUse.push('r1')
    for (const version of ['1', '2', '3', '4', '5']) {
      writeFileSync(path.join(folder, 'app.js'), version)
      await releases.prepare(ACTOR)
    }
    await releases.prune()
    assert.deepEqual([releases.list().items.map(({ id }) => id), readdirSync(dataDir.releaseFolder).sort()], [['r5',
      'r4', 'r1'], ['r1', 'r4', 'r5']])
    assert.deepEqual(releases.get('r1').inUse, true)
    assert.throws(() => releases.get('r2'), { code: 'not-found' })
    await assert.rejects(releases.load('r2'), { code: 'not-found' })
    await releases.load('r4')
    releases.settle({ release: 'r4', outcome: 'succeeded' })
    inUse.pop()
    await releases.prune()
    assert.deepEqual(releases.list().items.map(({ id }) => id), ['r5', 'r4'])
    rmSync(releases.get('r5').path, { recursive: true })
    await assert.rejects(releases.load('r5'), { code: 'release-gone', message: /^release r5 cannot run: / })
  })

  test('lists go on with their cursor', async () => {
    const { releases } = await registry()
    for (let n = 0; n < 3; n++) await releases.prepare(ACTOR)
    const first = releases.list({ limit: 2 })
    assert.deepEqual([first.items.map(({ id }) => id),
      releases.list({ limit: 2, cursor: first.next }).items.map(({ id }) => id)], [['r3', 'r2'], ['r1']])
    assert.throws(() => releases.list({ cursor: 'r3' }), { code: 'invalid-query' })
  })

  test('a database that fails stops no deploy, and has everything once it works again', async (t) => {
    const { releases, history, errors } = await registry()
    const fails = t.mock.method(history.releases, 'replace', () => {
      throw new Error('SQLITE_FULL')
    })
    await releases.prepare(ACTOR)
    assert.equal(errors.length, 1)
    fails.mock.restore()
    releases.save()
    assert.deepEqual(history.releases.all().map(({ number }) => number), [1])
  })

  test('deploys are prepared one after the other', async () => {
    const { releases } = await registry({ folder: write({ 'app.js': '', 'package.json': '{}' }), mode: 'folder' })
    const all = await Promise.all([1, 2, 3].map(() => releases.prepare(ACTOR)))
    assert.deepEqual(all.map(({ id }) => id), ['r1', 'r1', 'r1'], 'the first one is there when the others look')
  })
})

function isElsewhere (folder: string) {
  const found = statSync(folder, { throwIfNoEntry: false })
  return found?.isDirectory() && found.dev !== statSync(tempFolder()).dev
}

function relink (root: string, target: string) {
  symlinkSync(target, path.join(root, 'next'))
  renameSync(path.join(root, 'next'), path.join(root, 'current'))
}

/** As package managers do. */
function replace (file: string, text: string) {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}
