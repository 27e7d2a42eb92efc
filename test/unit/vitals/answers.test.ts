import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countOf, createAnswers } from '../../../server/vitals/answers.ts'

test('answers are counted by release: of the new one once each, of the one before those of its last five minutes', () => {
  const answers = createAnswers()
  for (let second = 0; second < 400; second++)
    answers.add(second, 'r1', countOf([9, 0, 0, second < 398 ? 0 : 2, 0, 50]))
  answers.add(900, 'r2', countOf([0, 0, 0, 7, 0, 0]))
  const before = { requests: 2704, failed: 4 }
  const last = { requests: 11, failed: 2 }
  assert.deepEqual(answers.count('r2', 'r1'), { after: { requests: 7, failed: 7 }, before, last })
  answers.add(901, 'r2', countOf(null))
  assert.deepEqual(answers.count('r2', 'r1').after, { requests: 0, failed: 0 })
  assert.deepEqual(answers.recent(), [{ release: 'r1', ...before }, { release: 'r2', requests: 7, failed: 7 }])
  assert.deepEqual(answers.count('r9', 'r8').before, { requests: 0, failed: 0 })
})
