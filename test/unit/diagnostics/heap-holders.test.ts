import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { before, test } from 'node:test'
import { readHeap } from '../../../server/diagnostics/heap-file.ts'
import { findHolders } from '../../../server/diagnostics/heap-holders.ts'
import { nameOf } from '../../../server/diagnostics/held-memory.ts'
import { FIXTURES } from '../../support/deck.ts'
import { tempFolder } from '../../support/folder.ts'

const MB = 1024 ** 2
const LIMITS = { maxBytes: 1024 * MB }
const APP = path.join(FIXTURES, 'writes-its-heap.cjs')
const file = path.join(tempFolder(), 'one.heapsnapshot')

// In a process of its own: the heap of this one has all that other tests have left.
before(() => {
  execFileSync(process.execPath, [APP, file])
})

test('what holds most of a heap is named by the variable, its file, the objects and their memory', () => {
  const { bytes, holders } = findHolders(readHeap(file, LIMITS))
  const found = (name: RegExp) =>
    holders.slice(0, 4).find((holder) => name.test(nameOf(holder))) ??
      assert.fail(`expected ${name} in ${holders.map(nameOf).join('; ')}`)
  const [visitors, orders, trail, polls] = [/^writes-its-heap\.cjs: .*seenVisitors/, /priceFeed.*price/, /auditTrail/,
    /_onTimeout/].map(found)
  assert.ok(bytes > 40 * MB)
  assert.ok(visitors.count >= 2000 && visitors.bytes > 20 * MB && visitors.bytes < 30 * MB, JSON.stringify(visitors))
  assert.equal(visitors.file, APP)
  assert.ok(orders.bytes > 12 * MB && orders.bytes < 20 * MB, JSON.stringify(orders))
  // What only timers keep is of the code that they call.
  assert.equal(polls.file, APP)
  assert.ok(trail.bytes >= 400 * 30_000, JSON.stringify(trail))
})

test('a file that is no snapshot, is not whole, tells of nodes that are not there or is too large, is refused', () => {
  assert.throws(() => readHeap(file, { maxBytes: 1000 }),
    /^Error: expected a heap that can be read with 1000 bytes, this one takes \d+$/)
  const broken = path.join(tempFolder(), 'broken.heapsnapshot')
  const header = (more: object) =>
    JSON.stringify({
      meta: { node_fields: ['type', 'name', 'self_size', 'edge_count'], node_types: [['object']],
        edge_fields: ['type', 'name_or_index', 'to_node'], edge_types: [['property']] },
      ...more
    })
  for (const [content, problem] of [['', /not whole/], ['{"a":1}', /not whole/], [
    `{"snapshot":${header({ node_count: 1, edge_count: 1 })},"nodes":[0,0,8,1],"edges":[0,0,400],"strings":["a"]}`,
    /expected one of 1 nodes, found number 100/
  ], [`{"snapshot":${header({ node_count: 1, edge_count: 5 })},"nodes":[0,0,8,1],"edges":[0,0,0],"strings":["a"]}`,
    /expected 5 edges, found 1/], [
    `{"snapshot":${header({ node_count: 2, edge_count: 1 })},"nodes":[0,0,8,1],"edges":[0,0,0],"strings":["a"]}`,
    /expected more numbers/
  ], [`{"snapshot":${header({ node_count: -1, edge_count: 1 })},"nodes":[],"edges":[],"strings":[]}`, /expected/], [
    '{"snapshot":{"meta":{}},"nodes":[],"edges":[],"strings":[]}',
    /expected/
  ]] as const) {
    writeFileSync(broken, content)
    assert.throws(() => readHeap(broken, LIMITS), problem, content)
  }
  truncateSync(file, 1000)
  assert.throws(() => readHeap(file, LIMITS), /not whole/)
})
