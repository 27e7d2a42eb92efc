import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blockedReason } from '../../../server/dashboard/overview.ts'

for (const [state, word] of [['preparing', 'running'], ['canary', 'running'], ['rolling', 'running'], ['paused',
  'paused'], ['held', 'held'], ['rolling-back', 'rolling back']])
{
  test(`a rollout that is ${state} is called ${word} where another one cannot start`, () => {
    assert.equal(blockedReason({ state: 'running', rollout: { id: 3, state }, upgrade: null } as any),
      `Rollout 3 is ${word}. Only one can run at a time.`)
  })
}
