import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blockedReason } from '../../../server/dashboard/overview.js'

for (const [state, word] of [['preparing', 'running'], ['canary', 'running'], ['rolling', 'running'], ['paused', 'paused'], ['held', 'held'], ['rolling-back', 'rolling back']]) {
  test(`a rollout that is ${state} is called ${word} where another one cannot start`, () => {
    assert.equal(blockedReason(/** @type {any} */ ({ state: 'running', rollout: { id: 3, state }, upgrade: null })), `Rollout 3 is ${word}. Only one can run at a time.`)
  })
}
