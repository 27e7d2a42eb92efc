import assert from 'node:assert/strict'
import { test } from 'node:test'
import { frameModel } from '../../../server/dashboard/frame.ts'
import { describeHealth } from '../../../server/health.ts'
import { fake, type Parts } from '../../support/fake.ts'
import type { Status, WorkerRow } from '../../../server/deck.ts'

const worker = (fields: Partial<WorkerRow>) => ({ id: 1, slot: 1, pid: 1, state: 'ready', restarts: 0,
  crashLooping: false, retryAt: null, drifted: false, ...fields })

/** `openCrashes`: of the release that runs; two more are of others */
function frame (
  { notices = [], failing = [], workers = [worker({}), worker({ id: 2, slot: 2 })], ...fields }: Omit<Parts<Status>,
    'workers'> & { workers?: ReturnType<typeof worker>[], notices?: { kind: string }[],
    failing?: { job: string, reason: string }[] },
  openCrashes: number | null = 0
) {
  const readyWorkers = workers.filter(({ state }) => state === 'ready').length
  const snapshot = { state: 'running' as const, app: { name: 'shop', entry: '/srv/shop/app.js', cwd: '/srv/shop' },
    release: { id: 'r1' }, rollout: null, upgrade: null, desiredWorkers: 2, readyWorkers, history: { problem: null },
    ...fields, workers }
  const crashes = openCrashes === null
    ? null
    : { open: openCrashes + 2, inRelease: openCrashes, isMore: false, newInRelease: 0, reasons: [] }
  const health = (of: Status) => describeHealth(of, { crashes, notices, failingJobs: failing })
  return frameModel({ deck: fake({ snapshot: () => snapshot, health }), host: 'web-1' })
}

test('trouble counts each slot once, open crashes, a rollout that waits and a history that fails', () => {
  const isLooping = worker({ id: null, state: 'backoff', crashLooping: true })
  assert.deepEqual(frame({}).trouble, { tone: 'ok', count: 0 })
  assert.deepEqual(frame({}, null).trouble, { tone: 'ok', count: 0 })
  assert.deepEqual(frame({}, 3).trouble, { tone: 'warn', count: 3 })
  assert.equal(
    frame({
      workers: [isLooping, { ...isLooping, id: 3, state: 'starting' },
        worker({ id: 2, slot: 2, state: 'unresponsive' })],
      history: { problem: 'disk full' }
    }, 1).trouble.count,
    4
  )
  assert.equal(
    frame({ rollout: { id: 1, kind: 'deploy', state: 'held', steps: [], progress: { total: 2, replaced: 0 } } }).trouble
      .count,
    1
  )
})

test('trouble counts what nobody has acknowledged, and a history that fails once', () => {
  const lost = { kind: 'master-lost' }
  assert.deepEqual(frame({ notices: [lost, { kind: 'rolled-back' }] }).trouble, { tone: 'warn', count: 2 })
  assert.equal(
    frame({ notices: [lost, { kind: 'history-degraded' }], history: { problem: 'disk full' } }).trouble.count,
    2
  )
  assert.equal(frame({ notices: [lost], history: { problem: 'disk full' } }).trouble.count, 2)
  assert.deepEqual(frame({ failing: [{ job: 'nightly', reason: 'nightly exited with code 3' }] }).trouble, {
    tone: 'warn',
    count: 1
  })
})

test('a tab is red as soon as the headline of the overview is', () => {
  const { tone, count } = frame({ workers: [worker({ state: 'unresponsive' }), worker({ id: 2, slot: 2 })] }).trouble
  assert.deepEqual([tone, count], ['bad', 1])
})
