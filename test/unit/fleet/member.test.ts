import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { createMember, reduceMember } from '../../../server/fleet/member.ts'
import { STATES } from '../../../server/fleet/document.ts'
import { startRollout, takeTurn } from '../../../server/fleet/rollout.ts'
import { createFleet, type Fleet } from '../../support/fleet-simulation.ts'
import { rareTest } from '../../support/rare.ts'

const MEMBERS = ['a', 'b', 'c', 'd']
const RUNS = Number(process.env.FLEET_RUNS ?? 2000)

const options = fc.record({ batch: fc.integer({ min: 1, max: 3 }),
  onFailure: fc.constantFrom('hold' as const, 'rollback' as const) })
const member = fc.constantFrom(...MEMBERS)
const step = fc.oneof({ weight: 10, arbitrary: fc.constant(['deliverToAll']) }, { weight: 6,
  arbitrary: fc.tuple(fc.constant('deliver'), member) }, { weight: 3,
  arbitrary: fc.tuple(fc.constant('deliverLate'), member, fc.integer({ min: 1, max: 4 })) }, { weight: 4,
  arbitrary: fc.tuple(fc.constant('look'), member) }, { weight: 6,
  arbitrary: fc.tuple(fc.constant('endOwn'), member, fc.boolean()) }, { weight: 4,
  arbitrary: fc.tuple(fc.constant('endOwn'), member, fc.constant(true)) }, { weight: 2,
  arbitrary: fc.tuple(fc.constant('crash'), member) }, { weight: 1,
  arbitrary: fc.tuple(fc.constantFrom('stop', 'goOn'), member) }, { weight: 1,
  arbitrary: fc.tuple(fc.constant('cut'), member, fc.boolean()) }, { weight: 1,
  arbitrary: fc.tuple(fc.constant('nats'), fc.boolean()) }, { weight: 1,
  arbitrary: fc.tuple(fc.constant('restore'), fc.integer({ min: 1, max: 12 })) }, { weight: 1,
  arbitrary: fc.tuple(fc.constant('undo'), member) }, { weight: 3,
  arbitrary: fc.tuple(fc.constant('pass'), fc.constantFrom(10, 3000, 60_000, 600_000)) }, { weight: 3,
  arbitrary: fc.tuple(fc.constant('operate'), fc.constantFrom('begin', 'begin', 'begin', 'pause', 'resume', 'abort'),
    options) })

rareTest(
  'whatever happens in whatever order: nobody deploys twice, and nobody is in a turn beside another one that the batch forbids',
  () => {
    const met: Set<string> = new Set()
    fc.assert(
      fc.property(fc.array(step, { minLength: 20, maxLength: 200 }), options,
        fc.infiniteStream(fc.integer({ min: 0, max: 9 })), (steps, first, chance) => {
        const fleet = createFleet({ members: MEMBERS, loses: () => chance.next().value === 0 })
        fleet.deliverToAll()
        fleet.pass(60_000)
        fleet.operate('begin', first)
        const acts = fleet as unknown as Record<string, (...args: unknown[]) => void>
        for (const [name, ...args] of steps) {
          acts[name](...args)
          if (fleet.document) met.add(fleet.document.state)
          for (const { state } of Object.values(fleet.document?.turns ?? {})) met.add(state)
        }
        calm(fleet)
        assert.deepEqual(fleet.broken, [])
        assert.ok(!fleet.document || STATES[fleet.document.state].done || fleet.document.state === 'paused',
          `${told(fleet)}: nobody goes on, and nobody is asked to`)
      }),
      { numRuns: RUNS }
    )
    assert.deepEqual(
      [...Object.keys(STATES), 'pending', 'reverting', 'reverted', 'skipped'].filter((state) => !met.has(state)),
      [],
      'all of it happens in these runs'
    )
  }
)

function open (options?: Parameters<Fleet['operate']>[1]) {
  const fleet = createFleet({ members: MEMBERS })
  fleet.deliverToAll()
  fleet.pass(60_000)
  fleet.operate('begin', options)
  return fleet
}

function told ({ document }: Fleet): string {
  return `${document?.state}: ${Object.values(document?.turns ?? {}).map(({ state }) => state).join(', ')}`
}

function goOn (fleet: Fleet) {
  fleet.pass(3000)
  for (const each of MEMBERS) fleet.look(each)
  fleet.deliverToAll()
}

/** All is healed, and everybody has all the time there is. */
function calm (fleet: Fleet) {
  fleet.nats(false)
  for (const each of MEMBERS) {
    fleet.goOn(each)
    fleet.cut(each, false)
  }
  for (let round = 0; round < 4 * MEMBERS.length; round++) {
    goOn(fleet)
    for (const each of MEMBERS) fleet.endOwn(each, true)
  }
}

test('one after the other, with the pause between them', () => {
  const fleet = open()
  for (const each of MEMBERS) {
    goOn(fleet)
    fleet.endOwn(each, true)
    fleet.pass(500)
    fleet.deliverToAll()
    assert.ok(each === 'd' || fleet.document?.turns[String.fromCharCode(each.charCodeAt(0) + 1)].state === 'pending',
      'in the pause nobody begins')
  }
  assert.equal(told(fleet), 'succeeded: succeeded, succeeded, succeeded, succeeded')
  assert.deepEqual(fleet.begun.map(({ member: each }) => each), MEMBERS)
})

test('whoever knows more than NATS that is back holds the rollout, says what it is at, and nobody begins before a person says so', () => {
  const fleet = open()
  goOn(fleet)
  fleet.endOwn('a', true)
  goOn(fleet)
  goOn(fleet)
  assert.equal(told(fleet), 'running: succeeded, running, pending, pending')
  fleet.restore(3)
  goOn(fleet)
  assert.equal(told(fleet), 'held: succeeded, running, pending, pending')
  assert.match(String(fleet.document?.reason), /NATS has lost data/)
  fleet.endOwn('b', true)
  goOn(fleet)
  assert.equal(fleet.begun.length, 2)
  fleet.operate('resume')
  goOn(fleet)
  goOn(fleet)
  assert.deepEqual(fleet.begun.map(({ member: each }) => each), ['a', 'b', 'c'])
  assert.deepEqual(fleet.broken, [])
})

test('whoever is still in a turn that NATS has forgotten takes no other', () => {
  const fleet = open()
  goOn(fleet)
  fleet.cut('a', true)
  fleet.restore(100)
  fleet.operate('begin')
  fleet.cut('a', false)
  goOn(fleet)
  goOn(fleet)
  assert.deepEqual(fleet.begun.map(({ member: each }) => each), ['a'])
  fleet.endOwn('a', true)
  goOn(fleet)
  assert.deepEqual(fleet.begun.map(({ member: each }) => each), ['a', 'a'], 'then that of the new one comes')
})

test('whoever is back waits before it begins: others may know more', () => {
  const fleet = open()
  fleet.restore(0)
  fleet.deliverToAll()
  assert.deepEqual(fleet.begun, [])
  goOn(fleet)
  assert.deepEqual(fleet.begun.map(({ member: each }) => each), ['a'])
})

test('whoever has taken its turn and not begun it before an abort begins nothing', () => {
  const fleet = open()
  fleet.pass(3000)
  fleet.look('b')
  fleet.take('a')
  fleet.operate('abort')
  goOn(fleet)
  assert.equal(told(fleet), 'rolled-back: reverted, skipped, skipped, skipped')
  assert.deepEqual(fleet.begun, [])
})

test('whose master has ended in a turn that NATS has forgotten takes the next one', () => {
  const fleet = open()
  goOn(fleet)
  fleet.stop('a')
  fleet.restore(100)
  fleet.operate('begin')
  fleet.crash('a')
  calm(fleet)
  assert.equal(told(fleet), 'succeeded: succeeded, succeeded, succeeded, succeeded')
  assert.deepEqual(fleet.broken, [])
})

test('what becomes of a turn that was given up is told when its host is back, and goes back with the others', () => {
  const fleet = open()
  goOn(fleet)
  fleet.cut('a', true)
  fleet.pass(600_000)
  goOn(fleet)
  assert.equal(told(fleet), 'held: running, pending, pending, pending')
  fleet.operate('resume')
  fleet.endOwn('a', true)
  goOn(fleet)
  goOn(fleet)
  assert.equal(told(fleet), 'running: failed, running, pending, pending')
  fleet.cut('a', false)
  goOn(fleet)
  assert.equal(told(fleet), 'running: succeeded, running, pending, pending')
  assert.equal(fleet.document?.turns.a.isLate, true)
  fleet.operate('abort')
  calm(fleet)
  assert.equal(told(fleet), 'rolled-back: reverted, reverted, skipped, skipped')
  assert.deepEqual(fleet.broken, [])
})

test('an abort of what was held goes on without a host that is silent in its turn', () => {
  const fleet = open()
  goOn(fleet)
  fleet.endOwn('a', true)
  goOn(fleet)
  goOn(fleet)
  fleet.cut('b', true)
  fleet.pass(600_000)
  goOn(fleet)
  assert.equal(told(fleet), 'held: succeeded, running, pending, pending')
  fleet.operate('abort')
  goOn(fleet)
  fleet.endOwn('a', true)
  assert.equal(told(fleet), 'rolled-back: reverted, failed, skipped, skipped')
})

test('who is in no turn gives up a host that is late all the same, so that a person can go on', () => {
  const alone = startRollout(null, { id: 1, uid: 'one', app: 'shop', kind: 'deploy', source: {}, batches: [['a']],
    pauseMs: 0, deadlineMs: 60_000, onFailure: 'hold', absent: [], actor: 'ada', note: null,
    at: '2026-01-01T00:00:00.000Z' })
  const document = takeTurn(alone, 'a', { at: alone.startedAt, boot: 'boot' })
  const now = (at: number) => ({ at, iso: alone.startedAt, release: 'old' })
  const seen = reduceMember(createMember({ member: 'b', boot: 'boot' }), { type: 'seen', document, revision: 5 },
    now(0))
  const [wake] = seen.commands.filter(({ type }) => type !== 'remember')
  assert.deepEqual(wake, { type: 'wake', ms: 60_000 })
  const [write] = reduceMember(seen.state, { type: 'look' }, now(60_000)).commands
  assert.equal(write.type === 'write' && write.document.state, 'held')
})

test('what somebody has deployed on a host since its turn may go back without its turn having failed', () => {
  const fleet = open()
  goOn(fleet)
  fleet.endOwn('a', true)
  const host = fleet.hosts.get('a')
  if (host) host.release = 'newer'
  fleet.undo('a')
  goOn(fleet)
  goOn(fleet)
  assert.equal(told(fleet), 'running: succeeded, running, pending, pending')
})

test('a host whose new release did not last has failed after all, and the rest do not begin', () => {
  for (const [onFailure, end] of [['hold', 'held: failed, pending, pending, pending'], ['rollback',
    'rolled-back: failed, skipped, skipped, skipped']] as const)
  {
    const fleet = open({ onFailure })
    goOn(fleet)
    fleet.endOwn('a', true)
    fleet.undo('a')
    goOn(fleet)
    assert.equal(told(fleet), end)
    assert.equal(fleet.document?.reason, 'a: crashes again and again')
    assert.deepEqual(fleet.begun.map(({ member: each }) => each), ['a'])
  }
})

test('whoever has the name of another deck takes no turn that is meant for that one, until the name is its own', () => {
  const { document, revision } = open()
  const now = (at: number) => ({ at, iso: '2026-01-01T12:10:00.000Z', release: 'r1' })
  const seen =
    reduceMember(createMember({ member: 'a', boot: 'b' }), { type: 'seen', document, revision }, now(0)).state
  const other = reduceMember(seen, { type: 'named', isOwn: false }, now(1)).state
  assert.deepEqual(reduceMember(other, { type: 'look' }, now(60_000)).commands, [])
  const own = reduceMember(other, { type: 'named', isOwn: true }, now(60_001))
  assert.ok(own.commands.some(({ type }) => type === 'write'), 'it takes its turn')
})
