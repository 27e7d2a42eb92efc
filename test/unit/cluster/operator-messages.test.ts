import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOperatorMessages } from '../../../server/cluster/operator-messages.ts'
import { clusterOf } from '../../support/cluster.ts'
import { keptEvents } from '../../support/event-log.ts'
import { rows } from '../../support/rows.ts'
import type { PoolState, Worker } from '../../../server/lifecycle/state.ts'

/** `workers`: what is special about each, by id */
function setUp (workers: Record<string, Partial<Worker> & { isFull?: boolean }>,
  phase: PoolState['phase'] = 'running')
{
  const passed: [number, unknown][] = []
  const { events, publish } = keptEvents()
  const rows = Object.entries(workers).map(([id, worker]) => ({ id: Number(id), slot: 1, pid: 100, release: 'r1',
    orphan: null, state: 'ready' as const, ...worker })
  )
  const handles = Object.fromEntries(
    rows.map(({ id, orphan, isFull }) => [id, orphan ? {} : { pass: (message: unknown) =>
      !isFull && passed.push([id, message]) > 0 }]
    )
  )
  const send = createOperatorMessages(
    clusterOf({
      state: { phase, workers: Object.fromEntries(rows.map((row) => [row.id, row])),
        releases: { r2: { runtime: 'other' } } },
      handles,
      events: { publish }
    })
  )
  return { send, passed, events }
}

const WORKERS: Parameters<typeof setUp>[0] = { 1: {}, 2: { state: 'draining' }, 3: { state: 'starting' },
  4: { state: 'unresponsive' }, 5: { state: 'stopping' }, 6: { orphan: 'master-lost' }, 7: { isFull: true }, 8: {},
  10: { release: 'r2', isFull: true } }

test('all that are ready and can hear it get a message, and the answer names them', () => {
  const { send, passed, events } = setUp(WORKERS)
  assert.deepEqual(send({ type: 'reload', data: [1], actor: 'cli' }), { workers: [1, 8] })
  const message = { type: 'reload', from: 'admin', data: [1] }
  assert.deepEqual(passed, [[1, message], [8, message]])
  assert.deepEqual(events, [{ type: 'message.sent', actor: 'cli', message: 'message "reload" sent to 2 workers',
    detail: { type: 'reload', workers: [1, 8] } }])
})

test('one that drains can still get one; the history does not tell its data', () => {
  const { send, passed, events } = setUp(WORKERS)
  assert.deepEqual(send({ type: 'reload', data: 'a secret', worker: 2, actor: 'api' }), { workers: [2] })
  assert.deepEqual(passed.map(([id]) => id), [2])
  assert.deepEqual(events, [{ type: 'message.sent', worker: 2, slot: 1, pid: 100, release: 'r1', actor: 'api',
    message: 'message "reload" sent to worker 2 (slot 1)', detail: { type: 'reload', workers: [2] } }])
})

for (const [worker, code, message] of rows(`
9  | not-found    | No worker 9 is alive
3  | not-possible | worker 3 is still starting
4  | not-possible | worker 4 is unresponsive
5  | not-possible | worker 5 is stopping
6  | not-possible | worker 6 belongs to another master
7  | not-possible | worker 7 does not read its messages
10 | not-possible | worker 10 is no Node.js process, so it receives no messages`))
  test(`one that cannot get it is refused, and nothing is told: ${message}`, () => {
    const { send, passed, events } = setUp(WORKERS)
    assert.throws(() => send({ type: 'reload', worker: Number(worker), actor: 'api' }), { code, message })
    assert.deepEqual([passed, events], [[], []])
  })

test('a master that is stopping sends nothing', () => {
  for (const phase of ['stopping', 'stopped'] as const) {
    const { send, passed, events } = setUp(WORKERS, phase)
    for (const order of [{}, { worker: 1 }])
      assert.throws(() => send({ type: 'reload', ...order, actor: 'api' }), { code: 'stopping' })
    assert.deepEqual([passed, events], [[], []])
  }
})

test('an app that is no Node program receives none', () => {
  const { send, events } = setUp({ 1: { release: 'r2' }, 2: { release: 'r2', state: 'starting' } })
  assert.throws(() => send({ type: 'reload', actor: 'cli' }), { code: 'not-possible',
    message: 'the app is no Node.js program, so it receives no messages' })
  assert.deepEqual(events, [])
})
