import assert from 'node:assert/strict'
import { test } from 'node:test'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { simulate } from '../../support/simulation.ts'

const UPGRADE = Object.freeze({ type: 'upgrade', execPath: null, note: 'why', actor: 'ada' } as const)

test('is announced before it is begun, and nothing else begins while it runs', () => {
  const deck = startUpgrade()
  assert.equal(deck.nextMaster, 'starting')
  assert.deepEqual(deck.last('master.upgrading'), { type: 'master.upgrading', actor: 'ada',
    message: 'the next master starts: why', detail: { execPath: null } })
  assert.equal(snapshotOf(deck.state).upgrade?.actor, 'ada')
  for (const input of [UPGRADE, { type: 'scale', workers: 3 }, { type: 'rollout', kind: 'restart' }, {
    type: 'restart-worker',
    worker: 1
  }] as const) {
    assert.equal(deck.feed({ ...input, actor: 'ada' })?.code, 'upgrade-running')
  }
})

test('is refused while a rollout runs, while the first workers start and when everything ends', () => {
  const starting = simulate()
  assert.equal(starting.feed(UPGRADE)?.code, 'starting')
  starting.settle()
  starting.feed({ type: 'rollout', kind: 'restart', actor: 'ada' })
  assert.equal(starting.feed(UPGRADE)?.code, 'rollout-running')
  starting.feed({ type: 'stop', actor: 'ada' })
  assert.equal(starting.feed(UPGRADE)?.code, 'stopping')
})

test('a worker that dies meanwhile is replaced under an id that the next master cannot have given', () => {
  const deck = startUpgrade()
  deck.exit(1, { signal: 'SIGKILL' })
  deck.settle()
  assert.ok(deck.serving()[0] > 1000)
  deck.feed({ type: 'next-gone', reason: 'exit code 1', lastWorker: 4, orphans: [] })
  deck.exit(2, { signal: 'SIGKILL' })
  assert.ok(Number(deck.last('worker.restarted') && deck.serving()[1]) > 1000, 'no id is given twice')
})

test('the next master comes to nothing: all is as before, and ids go on without a gap', () => {
  const deck = startUpgrade()
  deck.feed({ type: 'next-gone', reason: 'exit code 1', lastWorker: 4, orphans: [] })
  assert.equal(deck.last('master.upgrade-failed').message, 'the next master ended before it was ready (exit code 1)')
  assert.equal(snapshotOf(deck.state).upgrade, null)
  assert.deepEqual(deck.serving(), [1, 2])
  deck.exit(1, { signal: 'SIGKILL' })
  assert.equal(deck.serving()[0], 5)
})

test('what it said before it ended is the reason', () => {
  const deck = startUpgrade()
  deck.feed({ type: 'next-failing', reason: 'worker 3 was not ready' })
  deck.feed({ type: 'next-failing', reason: 'and then this' })
  deck.feed({ type: 'next-gone', reason: 'exit code 1', lastWorker: 0, orphans: [] })
  assert.equal(deck.last('master.upgrade-failed').message, 'worker 3 was not ready')
})

test('one that does not get ready in time is ended', () => {
  const deck = startUpgrade()
  const deadline = deck.deadlines.get('upgrade:0')
  assert.equal(Number(deadline?.dueAt) - deck.at, 60_000)
  while (deck.nextMaster === 'starting') deck.passNextDeadline()
  assert.equal(deck.nextMaster, 'cancelled')
  deck.feed({ type: 'next-gone', reason: 'SIGKILL', lastWorker: 0, orphans: [] })
  assert.equal(deck.last('master.upgrade-failed').message, 'the next master was not ready within a minute')
  assert.equal(deck.deadlines.has('upgrade:0'), false)
})

test('one that has begun to start its workers has the time that those may take where they wait for a CPU', () => {
  const deck = startUpgrade()
  deck.feed({ type: 'next-forks' })
  assert.equal(Number(deck.deadlines.get('upgrade:0')?.dueAt) - deck.at, 330_000)
  while (deck.nextMaster === 'starting') deck.passNextDeadline()
  deck.feed({ type: 'next-gone', reason: 'SIGKILL', lastWorker: 0, orphans: [] })
  assert.equal(deck.last('master.upgrade-failed').message, 'the next master was not ready within 330 s')
})

test('told to stop, this master ends only when the next one has gone', () => {
  const deck = startUpgrade()
  deck.feed({ type: 'stop', actor: 'ada' })
  deck.settle()
  assert.deepEqual([deck.nextMaster, deck.processes.size, deck.isFinished], ['cancelled', 0, false])
  deck.feed({ type: 'next-gone', reason: 'SIGKILL', lastWorker: 0, orphans: [] })
  assert.equal(deck.last('master.upgrade-failed').message, 'the master was told to stop')
  assert.equal(deck.isFinished, true)
})

test('handed over, nothing is started here any more, and the next master goes on with its own ids', () => {
  const deck = startUpgrade()
  deck.feed({ type: 'hand-over' })
  assert.equal(deck.state.nextWorker, 3)
  deck.exit(1, { code: 0 })
  assert.deepEqual([...deck.processes.keys()], [2])
})

test('a next master that came to nothing without an upgrade is none of ours', () => {
  const deck = simulate()
  deck.settle()
  const count = deck.events.length
  deck.feed({ type: 'next-gone', reason: 'the keeper is gone', lastWorker: 0, orphans: [] })
  deck.feed({ type: 'next-failing', reason: 'x' })
  assert.equal(deck.events.length, count)
})

function startUpgrade () {
  const deck = simulate()
  deck.settle()
  assert.equal(deck.feed(UPGRADE), null)
  return deck
}
