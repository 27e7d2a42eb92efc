import assert from 'node:assert/strict'
import { test } from 'node:test'
import { strategyOf, strategyText } from '../../server/lifecycle/rollout/strategy.ts'
import { previewFacts } from '../../server/rollouts/preview-facts.ts'
import { fake, type Parts } from '../support/fake.ts'
import { testStates } from '../support/golden.ts'
import type { Preview } from '../../server/api/shapes.ts'

const NO_CHANGE = { from: 'r6', environment: [], arguments: false, package: false, commit: false, lockFile: false,
  mode: false, folder: false, entry: false }
const RELEASE = { id: 'r7', isNew: true, mode: 'live' as const, entry: '/srv/app/app.js', path: '/srv/app',
  cwd: '/srv/app', source: null, package: null, git: null, arguments: 0, nodeOptions: 0, hooks: [] }
const PLAN = { workers: 1, text: '1 worker; if one fails, it rolls back', extraWorkers: 0, extraBytes: null,
  strategy: strategyOf('deploy', 1) }
const BUILD = { text: 'npm ci, then npm run build', isGuess: true, packages: 'kept' } as const
const memory = (extraWorkers: number, extraBytes: number | null) => ({ plan: { ...PLAN, extraWorkers, extraBytes } })

const STATES: Record<string, Parts<Preview>> = { 'nothing changes': {},
  'much changes, and what may be secret is hidden': {
    release: { ...RELEASE, mode: 'folder', source: '/srv/app', path: '/data/r7', arguments: 1, nodeOptions: 2,
      hooks: ['beforeDeploy'], package: { name: 'shop', version: '1.2.0' },
      git: { commit: 'a'.repeat(40), branch: 'main', isDirty: true, author: 'Ada', subject: 'Faster' } },
    changed: { ...NO_CHANGE, commit: true, lockFile: true, environment: ['A', 'B'] },
    commits: { added: { items: [{}, {}], hasMore: true }, removed: { items: [{}], hasMore: false } },
    files: { added: 1, changed: 30, removed: 0,
      items: Array.from({ length: 20 }, (_, at) => ({ name: `f${at}`, change: 'changed' as const })) },
    options: [{ name: 'env', from: null, to: null, takesEffect: 'deploy' }, { name: 'rollout.surge', from: 1, to: '25%',
      takesEffect: 'now' }, { name: 'ready.path', from: null, to: '/health', takesEffect: 'start' }, {
      name: 'admin.allowedHosts',
      from: [],
      to: ['x'.repeat(100)],
      takesEffect: 'start'
    }],
    last: [{ rollout: 5, state: 'succeeded', release: 'r6', startedAt: '', tookMs: 4200 }, { rollout: 4,
      state: 'rolled-back', release: 'r5', startedAt: '', tookMs: 900 }]
  }, 'a commit whose packages are kept': { build: BUILD },
  'a commit whose packages are installed': { build: { ...BUILD, packages: 'installed' } },
  'a commit with a build of its own': { build: { text: 'make release', isGuess: false, packages: null } },
  'which files differ is not known': { files: null }, 'one new worker beside the old ones': memory(1, 64 * 2 ** 20),
  'several new workers beside the old ones': memory(3, 300 * 2 ** 20),
  'new workers of which nobody knows the memory': memory(3, null), 'each old worker stops first': memory(0, 0) }

/** What a preview says, without what it says where nothing changes. */
testStates(import.meta, 'preview-facts', STATES, (fields) => {
  const lines = factsOf(fields)
  const usual = fields === STATES['nothing changes'] ? [] : factsOf({})
  return lines.filter((line) => !usual.includes(line)).join('\n')
})

function factsOf (fields: Parts<Preview>) {
  const preview = fake<Preview>({ kind: 'deploy', from: 'r6', release: RELEASE, build: null, changed: NO_CHANGE,
    commits: null, files: { added: 0, changed: 0, removed: 0, items: [] }, options: [], plan: PLAN, last: [],
    warnings: [], refusals: [], ...fields })
  return previewFacts(preview, (ms) => `${ms} ms`).map(({ name, value }) => `${name}: ${value}`)
}

test('a strategy is told in one sentence', () => {
  const told = (workers: number, configured: Parameters<typeof strategyOf>[2]) =>
    strategyText(strategyOf('deploy', workers, configured), workers)
  assert.deepEqual([told(4, {}), told(4, { surge: '50%' }), told(4, { surge: 9, minReadyMs: 5000 }),
    told(4, { canary: { workers: 1, durationMs: 30_000 }, onFailure: 'hold' }), told(1, { order: 'stop-first' })], [
    '4 workers, one at a time; if one fails, it rolls back',
    '4 workers, 2 at a time; if one fails, it rolls back',
    '4 workers, all at once, each watched for 5 s; if one fails, it rolls back',
    '4 workers, one at a time, after a canary of 1 for 30 s; if one fails, it waits for you',
    '1 worker, each old one stopped first; if one fails, it rolls back'
  ])
})

test('a preview that is refused tells what it can, and a rollback nothing of files that are not known', () => {
  assert.deepEqual(factsOf({ release: null, changed: null, files: null }), [
    'Plan: 1 worker; if one fails, it rolls back',
    'Last three: no earlier one of this size'
  ])
  assert.deepEqual(factsOf({ kind: 'rollback', files: null }).filter((line) => line.startsWith('Files')), [])
})
