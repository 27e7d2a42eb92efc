import { freeMemory } from '../../workers/free-memory.ts'
import { megabytesText } from '../lifecycle/duration.ts'
import type { Growing } from '../vitals/growing-memory.ts'
import type { EventStream } from '../events/stream.ts'
import type { Config } from '../config/config.ts'

const MIB = 1024 ** 2
const DAY_HOURS = 24
/** Growth at this pace is not worth a forecast. */
const LONGEST_HOURS = 365 * DAY_HOURS

/** The event of a release whose workers take more and more memory. */
export function tellGrowingMemory ({ events, options, freeBytes = freeMemory }: {
  events: Pick<EventStream, 'publish'>,
  options: () => Pick<Config, 'recycle' | 'limits' | 'diagnostics' | 'runtime'>,
  /** of memory */
  freeBytes?: () => number
}) {
  return { onGrowing (growing: Growing) {
    const { release, growth, workers, ofWorkers, steady } = growing
    const limit = firstLimit(growing, options(), freeBytes())
    const { hours, fromBytes, toBytes, bytesPerHour, heapBytes, bytesPer1000Requests } = growth
    events.publish({ type: 'memory.growing', release, worker: workers.length === 1 ? workers[0] : null, actor: 'system',
      message: [growthText(growing), limitText(limit), nextStep(options())].join('; '),
      detail: { hours, fromBytes, toBytes, perHourBytes: Math.round(bytesPerHour),
        per1000RequestsBytes: bytesPer1000Requests === null ? null : Math.round(bytesPer1000Requests),
        heapGrewBytes: heapBytes, workers: workers.join(', '), ofWorkers, steadyRelease: steady?.release ?? null,
        limit: limit.name, limitInHours: limit.hours === null ? null : Math.round(limit.hours * 10) / 10 } })
  } }
}

function growthText ({ release, growth, workers, ofWorkers, steady }: Growing) {
  const { hours, fromBytes, toBytes, bytesPer1000Requests: bytes } = growth
  const one = workers.length === 1
  const who = one
    ? `worker ${workers[0]}`
    : `${workers.length === ofWorkers ? 'the' : `${workers.length} of the`} ${ofWorkers} workers`
  const pace = bytes === null
    ? ''
    : `, ${bytes < 10 * MIB ? Math.round(bytes / MIB * 100) / 100 : Math.round(bytes / MIB)} MB for each 1,000 requests`
  const before = steady ? `; that of ${steady.release} did not within ${steady.hours} hours` : ''
  return `the memory of ${who} of ${release} grows steadily: from ${megabytesText(fromBytes)} to ${
    megabytesText(toBytes)
  }${one ? '' : ' each'} within ${hours} hours${pace}${before}`
}

/** What the workers reach first. Returns `hours` null: not within a year. */
function firstLimit ({ highestBytes, fastestBytesPerHour, allBytesPerHour }: Growing,
  { recycle, limits }: Pick<Config, 'recycle' | 'limits'>,
  freeBytes: number): { name: string, bytes: number | null, hours: number | null }
{
  const ofWorker = (name: string, bytes: number) =>
    bytes > 0 ? [{ name, bytes, hours: Math.max(0, bytes - highestBytes) / fastestBytesPerHour }] : []
  const [first] = [...ofWorker('recycle.maxRssBytes', recycle.maxRssBytes),
    ...ofWorker('limits.memoryBytes', limits.memoryBytes), { name: 'machine', bytes: null,
    hours: freeBytes / allBytesPerHour }].sort((one, other) => one.hours - other.hours)
  return first.hours <= LONGEST_HOURS ? first : { ...first, hours: null }
}

function limitText ({ name, bytes, hours }: ReturnType<typeof firstLimit>) {
  if (hours === null) return 'at this pace no limit is reached within a year'
  const time = hours < 1
    ? 'less than an hour'
    : hours < 2 * DAY_HOURS
    ? `${Math.round(hours)} ${hours < 1.5 ? 'hour' : 'hours'}`
    : `${Math.round(hours / DAY_HOURS)} days`
  return bytes === null
    ? `at this pace no memory is free in ${time}`
    : `at this pace ${name} (${megabytesText(bytes)}) is reached in ${time}`
}

function nextStep ({ recycle, diagnostics, runtime }: Pick<Config, 'recycle' | 'diagnostics' | 'runtime'>) {
  const examined = runtime === 'other'
    ? ''
    : diagnostics.leaks === 'on'
    ? ', and the history says what held its memory'
    : '; with diagnostics.leaks=on the history says what held its memory'
  return recycle.maxRssBytes > 0
    ? `a worker that reaches recycle.maxRssBytes is replaced${examined}`
    : `set recycle.maxRssBytes, so that a worker is replaced before that${examined}`
}
