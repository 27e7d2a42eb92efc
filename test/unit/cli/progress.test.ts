import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createProgress } from '../../../server/cli/progress.ts'
import { fake, type Parts } from '../../support/fake.ts'
import type { Rollout } from '../../../server/rollouts/api.ts'
import type { RolloutStep } from '../../../server/api/shapes.ts'

const START = '2026-01-01T00:00:00.000Z'
const END = '2026-01-01T00:00:03.200Z'

function step (changes: Partial<RolloutStep>): RolloutStep {
  return { slot: 1, state: 'pending', oldWorker: null, newWorker: null, from: 'r1', isCanary: false, startedAt: null,
    finishedAt: null, ...changes }
}

function rollout (steps: RolloutStep[], changes?: Parts<Rollout>) {
  return fake<Rollout>({ id: 7, kind: 'deploy', state: 'rolling', reason: null, done: false, startedAt: START,
    finishedAt: null, progress: { total: 2, replaced: 0 }, steps, ...changes })
}

function told (looks: Rollout[]): string[] {
  const lines = [] as string[]
  const tellProgress = createProgress(looks[0], (line) => {
    lines.push(line)
  })
  looks.forEach(tellProgress)
  return lines
}

test('what runs before anything is replaced is told once', () => {
  const hook = { name: 'beforeDeploy', state: 'running' } as const
  assert.deepEqual(
    told([rollout([], { state: 'preparing', hook: null }), rollout([], { state: 'preparing', hook }),
      rollout([], { state: 'preparing', hook }), rollout([step({})], { hook: { ...hook, state: 'passed' } })]),
    ['rollout 7 (deploy) running beforeDeploy', 'rollout 7 (deploy) rolling: 0 of 2 workers replaced']
  )
})

test('a rollout whose turn has not come says for whom it waits, once, however they change', () => {
  const waiting = (...waitingFor: string[]) => rollout([], { state: 'preparing', waitingFor })
  assert.deepEqual(
    told([waiting('shop', 'mail'), waiting('mail'), rollout([], { state: 'preparing', waitingFor: null }),
      rollout([step({})])]),
    ['rollout 7 (deploy) waits for its turn: shop and mail are being rolled out',
      'rollout 7 (deploy) rolling: 0 of 2 workers replaced']
  )
})

test('each step is told as it changes, once, also where looks have missed something in between', () => {
  const second = { slot: 2, oldWorker: 5, newWorker: 9, startedAt: START }
  assert.deepEqual(
    told([rollout([step({}), step({ slot: 2 })], { state: 'preparing' }),
      rollout([step({}), step({ ...second, state: 'starting' })]),
      rollout([step({}), step({ ...second, state: 'starting' })]),
      rollout([step({}), step({ ...second, state: 'soaking' })]),
      rollout([step({}), step({ ...second, state: 'draining' })]),
      rollout([step({ state: 'done', newWorker: 10, startedAt: START, finishedAt: END }),
        step({ ...second, state: 'done', finishedAt: END })], { state: 'succeeded', done: true })]),
    ['rollout 7 (deploy) rolling: 0 of 2 workers replaced', 'slot 2: worker 9 is starting',
      'slot 2: worker 9 is ready and is watched for a while', 'slot 2: worker 9 has taken over, worker 5 is draining',
      'slot 1: worker 10 runs (3.2 s)', 'slot 2: worker 5 replaced by worker 9 (3.2 s)']
  )
})

test('a rollout that is taken back says why, without anything that moves a cursor', () => {
  const first = { oldWorker: 1, newWorker: 3, startedAt: START }
  assert.deepEqual(
    told([
      rollout([step({ ...first, state: 'done', finishedAt: END }),
        step({ slot: 2, oldWorker: 2, newWorker: 4, state: 'starting', startedAt: START })]),
      rollout([step({ ...first, newWorker: 5, state: 'reverting' }),
        step({ slot: 2, oldWorker: 2, newWorker: 4, state: 'failed', startedAt: START, finishedAt: END })], {
        state: 'rolling-back',
        reason: 'worker 4 crashed:\u001b[2J\nboom'
      }),
      rollout([step({ ...first, newWorker: 5, state: 'reverted', finishedAt: END }),
        step({ slot: 2, state: 'of-the-future\u0007' as 'done' })], { state: 'rolled-back', done: true })
    ]),
    ['slot 2: worker 4 is starting', 'rollout 7 (deploy) rolling-back: 0 of 2 workers replaced; worker 4 crashed: boom',
      'slot 1: worker 5 is starting on r1 again', 'slot 2: worker 4 failed (3.2 s)', 'slot 1: back on r1 (3.2 s)',
      'slot 2: of-the-future ']
  )
})

test('one that was tried in vain, not by its own fault, is told of again', () => {
  const looks = (['starting', 'pending', 'starting'] as const).map((state, index) =>
    rollout([step({ state, newWorker: index < 2 ? 3 : 4, startedAt: START })])
  )
  assert.deepEqual(told(looks), ['slot 1: worker 3 is starting', 'slot 1: waits for its retry',
    'slot 1: worker 4 is starting'])
})
