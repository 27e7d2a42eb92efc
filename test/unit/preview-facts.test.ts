import assert from 'node:assert/strict'
import { test } from 'node:test'
import { strategyOf, strategyText, type StrategyWish } from '../../server/lifecycle/rollout/strategy.ts'
import { previewFacts } from '../../server/preview-facts.ts'
import { fake, type Parts } from '../support/fake.ts'
import type { Preview } from '../../server/api/shapes.ts'

const NO_CHANGE = { from: 'r6', environment: [], arguments: false, package: false, commit: false, lockFile: false,
  mode: false, folder: false, entry: false }

const preview = (fields?: Parts<Preview>) =>
  fake<Preview>({ kind: 'deploy', from: 'r6',
    release: { id: 'r7', isNew: true, mode: 'live', entry: '/srv/app/app.js', path: '/srv/app', cwd: '/srv/app',
      source: null, package: null, git: null, arguments: 0, nodeOptions: 0, hooks: [] }, build: null,
    changed: NO_CHANGE, commits: null, files: { added: 0, changed: 0, removed: 0, items: [] }, options: [],
    plan: { workers: 1, text: '1 worker; if one fails, it rolls back', extraWorkers: 0, extraBytes: null,
      strategy: strategyOf('deploy', 1) }, last: [], warnings: [], refusals: [], ...fields })

const lines = (told: Preview) => previewFacts(told, (ms) => `${ms} ms`).map(({ name, value }) => `${name}: ${value}`)

test('a preview says what is known in a line each, and nothing of what there is not', () => {
  assert.deepEqual(lines(preview()), ['Release: r7, new, after r6', 'Files: none differ', 'Changed: no known change',
    'Plan: 1 worker; if one fails, it rolls back', 'Last three: no earlier one of this size', 'Entry: /srv/app/app.js',
    'Folder: /srv/app (live)'])
})

test('a preview counts commits and files, names the first of them, and hides what may be secret', () => {
  const { release } = preview()
  const told = preview({
    release: { ...release!, mode: 'folder', source: '/srv/app', path: '/data/r7', arguments: 1, nodeOptions: 2,
      hooks: ['beforeDeploy'], package: { name: 'shop', version: '1.2.0' },
      git: { commit: 'a'.repeat(40), branch: 'main', isDirty: true, author: 'Ada', subject: 'Faster' } },
    changed: { ...NO_CHANGE, commit: true, lockFile: true, environment: ['A', 'B'] },
    commits: { added: { items: [{}, {}], hasMore: true }, removed: { items: [{}], hasMore: false } },
    files: { added: 1, changed: 30, removed: 0,
      items: Array.from({ length: 20 }, (_, at) => ({ name: `f${at}`, change: 'changed' })) },
    options: [{ name: 'env', from: null, to: null, takesEffect: 'deploy' }, { name: 'rollout.surge', from: 1, to: '25%',
      takesEffect: 'now' }, { name: 'ready.path', from: null, to: '/health', takesEffect: 'start' }, {
      name: 'admin.allowedHosts',
      from: [],
      to: ['x'.repeat(100)],
      takesEffect: 'start'
    }],
    last: [{ rollout: 5, state: 'succeeded', release: 'r6', startedAt: '', tookMs: 4200 }, { rollout: 4,
      state: 'rolled-back', release: 'r5', startedAt: '', tookMs: 900 }]
  })
  assert.deepEqual(lines(told).slice(1), ['Commit: aaaaaaaaaa on main with changed files “Faster” by Ada',
    'Package: shop 1.2.0', 'Commits: 2 or more added, 1 removed',
    'Files: 30 changed, 1 added: f0, f1, f2, f3, f4 and 26 more', 'Changed: commit, lock file, variables A, B',
    'Option: env: with this deploy',
    'Option: rollout.surge from 1 to 25%: at the next start, or at once with "clusterdeck config set"',
    'Option: ready.path from nothing to /health: at the next start',
    `Option: admin.allowedHosts from [] to ["${'x'.repeat(57)}…: at the next start`,
    'Plan: 1 worker; if one fails, it rolls back',
    'Last three: rollout 5 succeeded in 4200 ms, rollout 4 rolled-back in 900 ms', 'Entry: /srv/app/app.js',
    'Folder: /srv/app (folder)', 'Node options: 2, not shown', 'Arguments: 1, not shown', 'Hooks: beforeDeploy'])
})

test('a preview of a commit says how it would be built, and from where its packages are', () => {
  const build = { text: 'npm ci, then npm run build', isGuess: true, packages: 'kept' } as const
  const told = (fields: Partial<Preview['build']>) =>
    lines(preview({ build: { ...build, ...fields } })).filter((line) => line.startsWith('Build'))
  assert.deepEqual(told({}), [
    'Build: npm ci, then npm run build (guessed); the packages of the same lock file are linked'
  ])
  assert.deepEqual(told({ packages: 'installed' }), [
    'Build: npm ci, then npm run build (guessed); packages are installed'
  ])
  assert.deepEqual(told({ text: 'make release', isGuess: false, packages: null }), ['Build: make release'])
})

test('a preview that is refused tells what it can', () => {
  assert.deepEqual(lines(preview({ release: null, changed: null, files: null })), [
    'Plan: 1 worker; if one fails, it rolls back',
    'Last three: no earlier one of this size'
  ])
  assert.deepEqual(lines(preview({ files: null })).filter((line) => line.startsWith('Files')), [
    'Files: which differ is not known'
  ])
  assert.deepEqual(lines(preview({ kind: 'rollback', files: null })).filter((line) => line.startsWith('Files')), [])
})

for (const [size, configured, text] of [[4, {}, '4 workers, one at a time; if one fails, it rolls back'], [4, {
  surge: '50%'
}, '4 workers, 2 at a time; if one fails, it rolls back'], [4, { surge: 9, minReadyMs: 5000 },
  '4 workers, all at once, each watched for 5 s; if one fails, it rolls back'], [4, {
  canary: { workers: 1, durationMs: 30_000 },
  onFailure: 'hold'
}, '4 workers, one at a time, after a canary of 1 for 30 s; if one fails, it waits for you'], [1, {
  order: 'stop-first'
}, '1 worker, each old one stopped first; if one fails, it rolls back']] as [number, StrategyWish, string][]) {
  test(`a strategy is told as: ${text}`, () =>
    assert.equal(strategyText(strategyOf('deploy', size, configured), size), text))
}

test('a preview tells what memory new workers take beside the old ones, where that is known', () => {
  const memory = (extra: Partial<Preview['plan']>) =>
    lines(preview({ plan: { ...preview({}).plan, ...extra } })).find((line) => line.startsWith('Memory'))
  assert.equal(memory({ extraWorkers: 1, extraBytes: 64 * 2 ** 20 }),
    'Memory: about 64.0 MB more meanwhile, for one worker beside the old ones')
  assert.equal(memory({ extraWorkers: 3, extraBytes: 300 * 2 ** 20 }),
    'Memory: about 300 MB more meanwhile, for up to 3 workers beside the old ones')
  assert.equal(memory({ extraWorkers: 3, extraBytes: null }), undefined)
  assert.equal(memory({ extraWorkers: 0, extraBytes: 0 }), undefined, 'each old one stops first')
})
