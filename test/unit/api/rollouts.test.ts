import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ROLLOUT } from '../../../server/rollouts/api.ts'
import { DEFAULT_STRATEGY } from '../../../server/lifecycle/rollout/strategy.ts'
import { createJudge } from '../../../server/releases/judge.ts'

test('the document describes a verdict as the judge makes it', () => {
  const verdict = createJudge().judge({ canary: [9], baseline: [1, 2], isFinal: true, limits: DEFAULT_STRATEGY.limits })
  assert.deepEqual(ROLLOUT.shape.verdicts.parse([verdict]), [verdict])
})
