import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { canMove, makeMove, phaseOf, shownStage, STAGES, type Stage } from '../../../server/lifecycle/rollout/stages.ts'

const names = Object.keys(STAGES) as Stage[]
const verbs = ['pause', 'resume', 'retry', 'promote', 'abort'] as const

describe('the stages of a rollout', () => {
  test('are all reached from its begin, and each leads to an end', () => {
    const reached = new Set(['preparing'])
    for (const name of reached) for (const next of Object.values(STAGES[name as Stage].moves)) reached.add(next)
    assert.deepEqual([...reached].sort(), [...names].sort())
    for (const stage of names)
      assert.equal(Object.keys(STAGES[stage].moves).length === 0, shownStage({ stage }).done, stage)
  })

  test('let an operator do what fits them, and nothing else', () => {
    const possible = Object.fromEntries(
      names.map((stage) => [stage, verbs.filter((verb) => canMove({ stage }, verb)).join(' ')])
    )
    assert.deepEqual(possible, { preparing: 'pause abort', 'preparing-paused': 'resume abort',
      canary: 'pause promote abort', 'canary-paused': 'resume promote abort',
      'canary-held': 'resume retry promote abort', rolling: 'pause abort', 'rolling-paused': 'resume abort',
      'rolling-held': 'resume retry abort', 'rolling-back': '', withdrawing: '', succeeded: '', 'rolled-back': '',
      failed: '' })
  })

  test('come back from a pause to where they were', () => {
    for (const stage of names.filter((name) => canMove({ stage: name }, 'pause'))) {
      const rollout = { stage }
      makeMove(rollout, 'pause')
      assert.deepEqual([shownStage(rollout).state, shownStage(rollout).pausedIn, phaseOf(rollout)], ['paused', stage,
        stage])
      makeMove(rollout, 'resume')
      assert.equal(rollout.stage, stage)
    }
  })

  test('that wait for an operator are held to others', () => {
    const waiting = names.filter((stage) => shownStage({ stage }).state === 'held')
    assert.deepEqual(waiting.map((stage) => [stage, shownStage({ stage }).pausedIn]), [['canary-held', 'canary'], [
      'rolling-held',
      'rolling'
    ]])
  })

  test('know no other moves', () => {
    assert.throws(() => makeMove({ stage: 'succeeded' }, 'pause'), /a rollout that is succeeded cannot pause/)
  })
})
