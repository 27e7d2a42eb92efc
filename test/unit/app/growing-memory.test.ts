import { tellGrowingMemory } from '../../../server/app/growing-memory.ts'
import { keptEvents } from '../../support/event-log.ts'
import { fake } from '../../support/fake.ts'
import { testStates } from '../../support/golden.ts'
import type { Growing } from '../../../server/vitals/growing-memory.ts'
import type { Config } from '../../../server/config/config.ts'

const MIB = 1024 ** 2
const GROWTH = { worker: 3, hours: 4, fromBytes: 112 * MIB, toBytes: 318 * MIB, grownBytes: 206 * MIB,
  bytesPerHour: 50 * MIB, heapBytes: 180 * MIB, bytesPer1000Requests: 1.404 * MIB, isClear: true }
const GROWING = { release: 'r9', growth: GROWTH, workers: [3, 4], ofWorkers: 2, highestBytes: 320 * MIB,
  fastestBytesPerHour: 60 * MIB, allBytesPerHour: 110 * MIB, steady: null }

type State = { growing?: Partial<Growing>, maxRssBytes?: number, memoryBytes?: number, leaks?: 'on' | 'off' }

const STATES: Record<string, State> = { 'all workers, without a limit': {},
  'one worker, which the release before did not have, with a limit': {
    growing: { workers: [3], steady: { release: 'r8', hours: 16 } },
    maxRssBytes: 512 * MIB
  },
  'some workers without requests, with a limit of the group': { memoryBytes: 330 * MIB, leaks: 'off',
    growing: { ofWorkers: 4, growth: { ...GROWTH, bytesPer1000Requests: null } } },
  'so slowly that no limit is near': { growing: { allBytesPerHour: 0.1 * MIB } } }

testStates(import.meta, 'growing-memory', STATES, ({ growing, maxRssBytes = 0, memoryBytes = 0, leaks = 'on' }) => {
  const { events, publish } = keptEvents()
  const options = fake<Config>({ recycle: { maxRssBytes }, limits: { memoryBytes }, diagnostics: { leaks },
    runtime: 'node' })
  tellGrowingMemory({ events: { publish }, options: () => options, freeBytes: () => 3300 * MIB }).onGrowing({
    ...GROWING,
    ...growing
  })
  const [{ type, worker, release, message, detail: { limit, limitInHours } }] = events
  return `${type} of ${release}, worker ${worker}, ${limit} in ${limitInHours} h\n${message.replaceAll('; ', ';\n  ')}`
})
