import assert from 'node:assert/strict'
import { test } from 'node:test'
import { marksOf } from '../../../server/fleet/api-builds.ts'
import { holdRollout, steerRollout } from '../../../server/fleet/rollout.ts'
import { afterTurnsOf, aMember, aRollout, failedTurnOf, inTurnOf } from '../../support/fake-fleet.ts'
import type { FleetRollout } from '../../../server/fleet/document.ts'
import type { Member } from '../../../server/fleet/presence.ts'

const BY = { at: '2026-01-01T12:10:00.000Z', actor: 'ada' }

const running = (member: string, version: string | null, commit: string | null = null, fields: Partial<Member> = {}) =>
  aMember({ member, code: { version, commit }, ...fields })

const labels = (members: ReturnType<typeof aMember>[], rollout: FleetRollout | null = null) =>
  Object.fromEntries(Array.from(marksOf(members, rollout), ([member, { label }]) => [member, label]))

test('who has a lower version than another one of its app is behind, and apps are not compared', () => {
  assert.deepEqual(
    labels([running('a', '1.10.0'), running('b', '1.9.3'), running('c', '1.10.0-rc.1'),
      running('d', '0.1.0', null, { app: 'mail' })]),
    { b: 'Behind', c: 'Behind' }
  )
  assert.deepEqual(labels([running('a', '1.0.0'), running('b', '1.0.0')]), {})
})

test('of commits of one version those count that most have, and where as many have another, nobody knows', () => {
  assert.deepEqual(labels([running('a', '1.0.0', 'aaa'), running('b', '1.0.0', 'bbb'), running('c', '1.0.0', 'aaa')]), {
    b: 'Other code'
  })
  assert.deepEqual(labels([running('a', '1.0.0', 'aaa'), running('b', '1.0.0', 'bbb')]), {})
})

test('what the last rollout of the fleet has left is what all should have, also after a way back', () => {
  const members = [running('a', '1.5.0'), running('b', '1.4.0'), running('c', '1.4.0')]
  const rollout = aRollout(['a', 'b', 'c'])
  assert.deepEqual(labels(members, { ...afterTurnsOf(rollout, 'a'), state: 'held' }), { b: 'Behind', c: 'Behind' })
  const back: FleetRollout = { ...afterTurnsOf(rollout, 'a'), state: 'rolled-back',
    turns: { a: { ...rollout.turns.a, state: 'succeeded' }, b: { ...rollout.turns.b, state: 'reverted' },
      c: { ...rollout.turns.c, state: 'skipped' } } }
  assert.deepEqual(labels(members, back), { a: 'Ahead' })
})

test('whoever a rollout is about to reach waits and is not behind, forward and back; one that is held reaches nobody', () => {
  const members = [running('a', '1.5.0'), running('b', '1.4.0'), running('c', '1.4.0'), running('d', '1.4.0')]
  const deploying = inTurnOf(afterTurnsOf(aRollout(['a', 'b', 'c'], { absent: ['d'] }), 'a'), 'b')
  assert.deepEqual(labels(members, deploying), { b: 'In its turn', c: 'Waiting', d: 'Behind' })
  const paused = steerRollout(deploying, 'pause', BY)
  assert.deepEqual(labels(members, paused), { b: 'In its turn', c: 'Waiting', d: 'Behind' })
  assert.deepEqual(labels(members, holdRollout(deploying, { ...BY, reason: 'late' })), { b: 'Behind', c: 'Behind',
    d: 'Behind' })
  assert.deepEqual(labels(members, steerRollout(paused, 'abort', BY)), { a: 'Waiting', b: 'In its turn' })
})

test('where the version says nothing, whoever the rollout has not reached is behind until it deploys by itself', () => {
  const members = [running('a', '1.0.0'), running('b', '1.0.0'), running('c', '1.0.0'),
    running('d', '1.0.0', null, { isSilent: true })]
  const rollout = failedTurnOf(afterTurnsOf(aRollout(['a', 'b', 'c'], { absent: ['d'] }), 'a'), 'b', 'no')
  assert.deepEqual(labels(members, rollout), { b: 'Behind', c: 'Behind', d: 'Behind' })
  assert.deepEqual(
    labels(members.map((member) => ({ ...member, release: member.member === 'b' ? 'r9' : member.release })), rollout),
    { c: 'Behind', d: 'Behind' }
  )
  assert.deepEqual(labels(members, { ...rollout, kind: 'restart' }), {})
})

test('members that say nothing of their code are marked by nothing', () => {
  assert.deepEqual(labels([aMember({ member: 'a', code: null }), running('b', null), running('c', '1.0.0')]), {})
  assert.deepEqual(labels([running('a', 'one'), running('b', 'two'), running('c', 'two')]), { a: 'Other code' })
})
