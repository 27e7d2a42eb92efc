import assert from 'node:assert/strict'
import { test } from 'node:test'
import { summaryOf } from '../../../server/fleet/api.ts'
import { toFleetRollout } from '../../../server/fleet/page-rollout-parts.ts'
import { progressOf, progressText } from '../../../server/fleet/progress.ts'
import { finishTurn, steerRollout, takeTurn } from '../../../server/fleet/rollout.ts'
import { fleetStory } from '../../../server/mcp/texts.ts'
import { afterTurnsOf, aRollout, failedTurnOf } from '../../support/fake-fleet.ts'
import { fake } from '../../support/fake.ts'

test('page, API and agents count the hosts of a rollout alike; on the way back those that have to go back', () => {
  const at = '2026-01-01T12:10:00.000Z'
  const forward = afterTurnsOf(aRollout(['a', 'b', 'c', 'd']), 'a', 'b')
  const back = takeTurn(steerRollout(forward, 'abort', { at, actor: 'ada' }), 'b', { at, boot: 'boot' })
  for (const [rollout, text] of [[forward, '2 of 4 done'], [failedTurnOf(forward, 'c', 'no'), '2 of 4 done'], [back,
    '0 of 2 rolled back'], [finishTurn(back, 'b', { at, state: 'reverted' }), '1 of 2 rolled back']] as const)
  {
    const { word, ...onPage } = toFleetRollout(rollout).progress
    assert.deepEqual([onPage, summaryOf(rollout).progress], [progressOf(rollout), progressOf(rollout)])
    assert.equal(progressText(rollout.state, onPage), text)
    assert.ok(text.endsWith(word))
    assert.ok(fleetStory(fake({ members: [], rollout })).text.includes(`${rollout.state}, ${text}`))
  }
})
