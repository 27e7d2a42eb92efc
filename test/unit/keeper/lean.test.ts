import assert from 'node:assert/strict'
import test from 'node:test'
import { leanEnvironment, leaveLean } from '../../../server/keeper/lean.ts'

test('a master starts with a sparing malloc, and its workers get what the user has set', () => {
  const user = { PATH: '/bin', MALLOC_TRIM_THRESHOLD_: '1' }
  const env: Record<string, string> = { ...user, ...leanEnvironment(user) }
  assert.deepEqual([env.MALLOC_ARENA_MAX, env.MALLOC_TRIM_THRESHOLD_], ['1', '1'])
  leaveLean(env)
  assert.deepEqual(env, user)
  leaveLean(env)
  assert.deepEqual(env, user, 'a master without a keeper has nothing to leave')
})
