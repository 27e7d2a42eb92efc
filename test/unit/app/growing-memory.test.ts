import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tellGrowingMemory } from '../../../server/app/growing-memory.ts'
import { keptEvents } from '../../support/event-log.ts'
import { fake } from '../../support/fake.ts'
import type { Growing } from '../../../server/vitals/growing-memory.ts'
import type { Config } from '../../../server/config/config.ts'

const MIB = 1024 ** 2
const GROWTH = { worker: 3, hours: 4, fromBytes: 112 * MIB, toBytes: 318 * MIB, grownBytes: 206 * MIB,
  bytesPerHour: 50 * MIB, heapBytes: 180 * MIB, bytesPer1000Requests: 1.404 * MIB, isClear: true }
const GROWING = { release: 'r9', growth: GROWTH, workers: [3, 4], ofWorkers: 2, highestBytes: 320 * MIB,
  fastestBytesPerHour: 60 * MIB, allBytesPerHour: 110 * MIB, steady: null }

test('memory that grows is told in a sentence: of how many workers, how fast, since which release, what it reaches when, and what to do', () => {
  const { events, publish } = keptEvents()
  const tell = (growing: Partial<Growing>,
    { maxRssBytes = 0, memoryBytes = 0, leaks = 'on' as 'on' | 'off', freeBytes = 3300 * MIB } = {}) =>
  {
    const options = fake<Config>({ recycle: { maxRssBytes }, limits: { memoryBytes }, diagnostics: { leaks },
      runtime: 'node' })
    tellGrowingMemory({ events: { publish }, options: () => options, freeBytes: () => freeBytes }).onGrowing({
      ...GROWING,
      ...growing
    })
  }
  tell({})
  tell({ workers: [3], steady: { release: 'r8', hours: 16 } }, { maxRssBytes: 512 * MIB })
  tell({ ofWorkers: 4, growth: { ...GROWTH, bytesPer1000Requests: null } }, { memoryBytes: 330 * MIB, leaks: 'off' })
  tell({ allBytesPerHour: 0.1 * MIB })
  assert.deepEqual(events.map(({ type, message }) => `${type}: ${message}`), [
    'memory.growing: the memory of the 2 workers of r9 grows steadily: from 112 MB to 318 MB each within 4 hours, 1.4 MB for each 1,000 requests; at this pace no memory is free in 30 hours; set recycle.maxRssBytes, so that a worker is replaced before that, and the history says what held its memory',
    'memory.growing: the memory of worker 3 of r9 grows steadily: from 112 MB to 318 MB within 4 hours, 1.4 MB for each 1,000 requests; that of r8 did not within 16 hours; at this pace recycle.maxRssBytes (512 MB) is reached in 3 hours; a worker that reaches recycle.maxRssBytes is replaced, and the history says what held its memory',
    'memory.growing: the memory of 2 of the 4 workers of r9 grows steadily: from 112 MB to 318 MB each within 4 hours; at this pace limits.memoryBytes (330 MB) is reached in less than an hour; set recycle.maxRssBytes, so that a worker is replaced before that; with diagnostics.leaks=on the history says what held its memory',
    'memory.growing: the memory of the 2 workers of r9 grows steadily: from 112 MB to 318 MB each within 4 hours, 1.4 MB for each 1,000 requests; at this pace no limit is reached within a year; set recycle.maxRssBytes, so that a worker is replaced before that, and the history says what held its memory'
  ])
  assert.deepEqual([events[0].worker, events[1].worker, events[1].release, events[1].detail.limit,
    events[1].detail.limitInHours], [null, 3, 'r9', 'recycle.maxRssBytes', 3.2])
})
