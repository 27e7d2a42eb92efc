import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../support/fast-check.ts'
import { createMember, reduceMember } from '../../../server/fleet/member.ts'
import { STATES } from '../../../server/fleet/document.ts'
import { startRollout, takeTurn } from '../../../server/fleet/rollout.ts'
import { createFleet, type Fleet } from '../../support/fleet-simulation.ts'
import { rareTest } from '../../support/rare.ts'
import { playScenes } from '../../support/scenes.ts'

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
  arbitrary: fc.tuple(fc.constant('undo'), member) }, { weight: 1,
  arbitrary: fc.tuple(fc.constant('fault'), member, fc.constantFrom('lamp', 'cart')) }, { weight: 3,
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
  return `${document?.state}: ${
    Object.values(document?.turns ?? {}).map(({ state, isLate }) => isLate ? `${state} late` : state).join(', ')
  }`
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

/** begun: whose own rollouts have begun; why: the reason; else what the document says */
playScenes(`
one after the other, with the pause between them
  go on; a is done; 500 ms; hear      → running: succeeded, pending, pending, pending
  go on; b is done; 500 ms; hear      → running: succeeded, succeeded, pending, pending
  go on; c is done; 500 ms; hear      → running: succeeded, succeeded, succeeded, pending
  go on; d is done                    → succeeded: succeeded, succeeded, succeeded, succeeded
                                      → begun a b c d
whoever knows more than NATS that is back holds the rollout, says what it is at, and nobody begins before a person says so
  go on; a is done; go on; go on      → running: succeeded, running, pending, pending
  3 writes are lost; go on      → held: succeeded late, running, pending, pending
                                      → why NATS has lost data: it has rollout 1 at revision 1, but a has seen rollout 1 at revision 4
  b is done; go on                    → begun a b
  resume; go on; go on                → begun a b c
whoever is still in a turn that NATS has forgotten takes no other
  go on; a is cut off; 100 writes are lost; begin; a is back; go on; go on  → begun a
  a is done; go on                    → begun a a
whoever is back waits before it begins: others may know more
  0 writes are lost; hear             → begun
  go on                               → begun a
whoever has taken its turn and not begun it before an abort begins nothing
  3000 ms; b looks; a takes its turn; abort; go on  → rolled-back: reverted, skipped, skipped, skipped
                                      → begun
whose master has ended in a turn that NATS has forgotten takes the next one
  go on; a stops; 100 writes are lost; begin; a crashes; calm  → succeeded: succeeded, succeeded, succeeded, succeeded
what becomes of a turn that was given up is told when its host is back, and goes back with the others
  go on; a is cut off; 600000 ms; go on  → held: running, pending, pending, pending
  resume; a is done; go on; go on     → running: failed, running, pending, pending
  a is back; go on                    → running: succeeded late, running, pending, pending
  abort; calm                         → rolled-back: reverted, reverted, skipped, skipped
an abort of what was held goes on without a host that is silent in its turn
  go on; a is done; go on; go on; b is cut off; 600000 ms; go on  → held: succeeded, running, pending, pending
  abort; go on; a is done             → rolled-back: reverted, failed, skipped, skipped
where those that are done go back, the last one goes first
  go on; a is done; go on; go on; b is done; go on; abort; calm  → rolled-back: reverted, reverted, skipped, skipped
                                      → begun a b b a
what somebody has deployed on a host since its turn may go back without its turn having failed
  go on; a is done; a has another release; a goes back; go on; go on  → running: succeeded, running, pending, pending
a host whose new release did not last has failed after all, and the rest do not begin
  go on; a is done; a goes back; go on  → held: failed, pending, pending, pending
                                      → why a: crashes again and again
                                      → begun a
a new release with a fault that no earlier one had holds the rollout, and a person who goes on is not asked twice about one fault
  go on; a is done; go on; go on      → running: succeeded, running, pending, pending
  a has the fault lamp; go on         → held: succeeded, running, pending, pending
                                      → why a: new crash in new: Error: lamp
  b is done; resume; go on; go on     → running: succeeded, succeeded, running, pending
  b has the fault lamp; go on         → running: succeeded, succeeded, running, pending
  c has the fault lamp; c is done; go on; go on  → running: succeeded, succeeded, succeeded, running
                                      → begun a b c d
a fault of a release that was there before, or of a host that has not had its turn, holds nothing
  go on; a has the fault lamp; b has the fault lamp; go on  → running: running, pending, pending, pending
  a is done; go on; go on             → running: succeeded, running, pending, pending
  a has the fault cart; go on         → held: succeeded, running, pending, pending
what a host cannot tell of its fault, it tells once it is back
  go on; a is done; go on; a is cut off; a has the fault lamp; go on  → running: succeeded, running, pending, pending
  a is back; go on                    → held: succeeded, running, pending, pending
a host whose new release crashed and then did not last has those go back that are done, with rollback
  go on; a is done; go on; go on; b is done; b has the fault lamp; go on  → held: succeeded, succeeded, pending, pending
  b goes back; calm                   → rolled-back: reverted, failed, skipped, skipped
a host whose new release did not last has those go back that are done, with rollback
  go on; a is done; a goes back; go on  → rolled-back: failed, skipped, skipped, skipped
                                      → begun a`, {
  open: (_, title) => open(title.endsWith('with rollback') ? { onFailure: 'rollback' } : {}),
  acts: { 'go on': goOn, calm, begin: (fleet) => fleet.operate('begin'), resume: (fleet) => fleet.operate('resume'),
    abort: (fleet) => fleet.operate('abort'), 'NAME is done': (fleet, name) => fleet.endOwn(name, true),
    'NAME is cut off': (fleet, name) => fleet.cut(name, true), 'NAME is back': (fleet, name) => fleet.cut(name, false),
    'NAME looks': (fleet, name) => fleet.look(name), 'NAME takes its turn': (fleet, name) => fleet.take(name),
    'NAME stops': (fleet, name) => fleet.stop(name), 'NAME crashes': (fleet, name) => fleet.crash(name),
    'NAME goes back': (fleet, name) => fleet.undo(name), 'NAME has the fault FAULT': (fleet, name, fault) =>
      fleet.fault(name, fault), 'NAME has another release': (fleet, name) =>
      Object.assign(fleet.hosts.get(name) ?? {}, { release: 'newer' }), 'MS ms': (fleet, ms) =>
      fleet.pass(Number(ms)), hear: (fleet) => fleet.deliverToAll(), 'COUNT writes are lost': (fleet, count) =>
      fleet.restore(Number(count)) },
  see (fleet, expected) {
    assert.deepEqual(fleet.broken, [])
    if (expected.startsWith('begun')) return ['begun', ...fleet.begun.map(({ member: each }) => each)].join(' ')
    return expected.startsWith('why') ? `why ${fleet.document?.reason}` : told(fleet)
  }
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
