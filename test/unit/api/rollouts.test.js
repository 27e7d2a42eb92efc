import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ROLLOUT } from '../../../server/api/rollouts.js'
import { DEFAULT_STRATEGY } from '../../../server/lifecycle/rollout/strategy.js'
import { createJudge } from '../../../server/releases/judge.js'

test('the document describes a verdict as the judge makes it', () => {
  const verdict = createJudge().judge({ canary: [9], baseline: [1, 2], isFinal: true, limits: DEFAULT_STRATEGY.limits })
  assert.deepEqual(ROLLOUT.shape.verdicts.parse([verdict]), [verdict])
})
