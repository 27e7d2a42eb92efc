import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blockedReason } from '../../../server/dashboard/overview.ts'
import { fake } from '../../support/fake.ts'

for (const [state, word] of [['preparing', 'running'], ['canary', 'running'], ['rolling', 'running'], ['paused',
  'paused'], ['held', 'held'], ['rolling-back', 'rolling back']] as const)
{
  test(`a rollout that is ${state} is called ${word} where another one cannot start`, () => {
    assert.equal(blockedReason(fake({ state: 'running', rollout: { id: 3, state }, upgrade: null })),
      `Rollout 3 is ${word}. Only one can run at a time.`)
  })
}
