import assert from 'node:assert/strict'
import { test } from 'node:test'
import { workersTable, type Kept } from '../../../server/dashboard/workers-table.ts'
import { fake, type Parts } from '../../support/fake.ts'
import { anEvent, aStatus, aWorker, NOW } from '../../support/snapshots.ts'
import type { DeckEvent } from '../../../server/events/stream.ts'
import type { History } from '../../../db/history.ts'
import type { WorkerRow } from '../../../server/deck.ts'

/** Each takes a byte of memory for the number of its slot. */
const workerOf = (fields: Parts<WorkerRow>) => aWorker({ vitals: { rssBytes: fields.slot }, ...fields })

function tableOf (workers: Parts<WorkerRow>[],
  { query = '', exits = [], now = NOW, kept }: { query?: string, exits?: DeckEvent[], now?: number, kept?: Kept } = {})
{
  const history = fake<History>({ page: () => ({ items: exits, next: null }) })
  return workersTable(aStatus({ workers: workers.map(workerOf) }), { params: new URLSearchParams(query), history, now,
    kept })
}

const slotsOf = ({ rows }: ReturnType<typeof tableOf>) => rows.map(({ slot }) => slot)

const MANY = Array.from({ length: 64 }, (_, index) => ({ slot: index + 1 }))

test('who is sick comes first, while a rollout leaves the slots in their order', () => {
  const workers = [{ slot: 1 }, { slot: 2, state: 'draining' }, { slot: 2, id: 9, state: 'starting' }, { slot: 3,
    id: null, state: 'backoff' }, { slot: 4 }, { slot: 4, id: 8, state: 'unresponsive' }]
  const table = tableOf(workers)
  assert.deepEqual(table.rows.map(({ slot, kind }) => `${slot} ${kind}`), ['4 ready', '4 unresponsive', '3 backoff',
    '1 ready', '2 draining', '2 starting'])
  assert.deepEqual(table.rows.map(({ isSecondOfSlot }) => isSecondOfSlot), [false, true, false, false, false, true])
  assert.deepEqual(table.kinds.map(({ label, count }) => `${count} ${label}`), ['6 All', '1 Unresponsive',
    '1 Restarting', '1 Starting', '1 Draining', '2 Ready'])
})

test('of many the first are shown, and all of them, those of a state or those that are searched once somebody asks', () => {
  const table = tableOf(MANY)
  assert.deepEqual(slotsOf(table), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])
  assert.equal(tableOf(MANY, { query: new URL(table.links.all, 'http://x').search }).rows.length, 64)
  assert.equal(tableOf(MANY, { query: 'show=ready' }).rows.length, 64)
  for (const q of ['41', '#41', '4041'])
    assert.deepEqual(slotsOf(tableOf(MANY, { query: `q=${encodeURIComponent(q)}` })), [41], q)
  assert.deepEqual(slotsOf(tableOf(MANY, { query: 'q=4' })), [4], 'no number that begins with it')
  assert.equal(tableOf(MANY, { query: 'q=r1' }).rows.length, 64)
  const none = tableOf(MANY, { query: 'show=backoff' })
  assert.deepEqual([none.rows.length, none.kinds.find(({ isCurrent }) => isCurrent)?.count], [0, 0],
    'the state stays to be seen, once nobody is in it')
})

test('each column sorts both ways, with what is not known last, and links keep the rest of the address', () => {
  const workers = [{ slot: 1, vitals: null }, { slot: 2 }, { slot: 3, startedAt: null, pid: null }]
  assert.deepEqual(slotsOf(tableOf(workers, { query: 'sort=memory' })), [3, 2, 1])
  assert.deepEqual(slotsOf(tableOf(workers, { query: 'sort=memory&order=asc' })), [2, 3, 1])
  assert.deepEqual(slotsOf(tableOf(workers, { query: 'sort=slot&order=desc' })), [3, 2, 1])
  assert.deepEqual(
    slotsOf(
      tableOf([{ slot: 1 }, { slot: 2, startedAt: '2025-01-01T00:00:00.000Z' }, { slot: 3, startedAt: null }], {
        query: 'sort=uptime'
      })
    ),
    [2, 1, 3]
  )
  const { columns } = tableOf(workers, { query: 'range=3h&sort=memory&show=ready' })
  assert.deepEqual(columns.memory, { label: 'Memory', ariaSort: 'descending',
    url: '/?range=3h&sort=memory&show=ready&order=asc' })
  assert.equal(columns.cpu.url, '/?range=3h&sort=cpu&show=ready')
  assert.equal(columns.state.url, '/?range=3h&show=ready')
})

test('rows do not move with each figure, but after a while, and once there is another worker', () => {
  const [before, after] = [[3, 2, 1], [1, 2, 3]].map((bytes) =>
    bytes.map((rssBytes, index) => ({ slot: index + 1, vitals: { rssBytes } }))
  )
  const query = 'sort=memory'
  const { kept } = tableOf(before, { query })
  assert.deepEqual(slotsOf(tableOf(after, { query, kept, now: NOW + 4999 })), [1, 2, 3])
  assert.deepEqual(slotsOf(tableOf(after, { query, kept, now: NOW + 5000 })), [3, 2, 1])
  assert.deepEqual(slotsOf(tableOf([...after, { slot: 4 }], { query, kept, now: NOW + 1 })), [4, 3, 2, 1])
  assert.deepEqual(slotsOf(tableOf(after, { query: 'sort=memory&order=asc', kept, now: NOW + 1 })), [1, 2, 3],
    'another order counts at once')
  assert.deepEqual(slotsOf(tableOf([{ slot: 1 }, { slot: 2, state: 'held' }], { kept: tableOf(before).kept })), [2, 1],
    'nor is a fault held back')
})

test('a slot without a worker leads to the one that has ended last, with why', () => {
  const exits = [8, 7, 6].map((worker) =>
    anEvent({ worker, slot: worker === 6 ? 1 : 2, message: `worker ${worker} <b>` })
  )
  const [two, three] = tableOf([2, 3].map((slot) => ({ slot, id: null, state: 'backoff' })), { exits }).all
  assert.deepEqual([two.url, two.title, three.url], ['/workers/8?at=2026-01-02T03%3A04%3A00.000Z',
    'Slot 2: restarting. Worker 8 <b>', '/history?type=worker.exited&slot=3'])
})

test('an address that says nothing sensible gets the usual table, and is told what was expected', () => {
  const { problem, rows } = tableOf([{ slot: 1 }], { query: 'sort=colour' })
  assert.equal(rows.length, 1)
  assert.deepEqual([problem?.status, problem?.message], [400,
    'sort: expected one of state, slot, uptime, restarts, requests, p99, connections, memory, cpu, received "colour"'])
})
