import { indexOf, requestsOf, type Row } from './columns.ts'

/** `rssBytes`: the lowest, `heapUsedBytes`: at that time; NaN: not known of programs in other languages */
type Window = { rssBytes: number, heapUsedBytes: number, requests: number, connections: number }
/** of one worker; `heapBytes`: by which its heap has grown; `isClear`: it counts where no other worker grows */
type Growth = { worker: number, hours: number, fromBytes: number, toBytes: number, grownBytes: number,
  bytesPerHour: number, heapBytes: number | null, bytesPer1000Requests: number | null, isClear: boolean }
/** `growth`: of the worker in the middle; `steady`: the release before, if its workers did not grow */
export type Growing = { release: string, growth: Growth, workers: number[], ofWorkers: number, highestBytes: number,
  fastestBytesPerHour: number, allBytesPerHour: number, steady: { release: string, hours: number } | null }

const WINDOW_S = 10 * 60
/** What an app loads and compiles with its first requests is no growth. */
const WARM_UP_S = 10 * 60
/**
 * Each span is judged by the lowest memory of so many parts of it: what the garbage collector has not freed yet is
 * above that.
 */
const PARTS = 12
const MIB = 1024 ** 2
/** The shorter the time, the more it has to be: most of what grows for some hours is a cache that fills. */
const SPANS = Object.freeze([{ windows: 12, leastBytes: 100 * MIB, leastShare: 1 }, { windows: 24, leastBytes: 64 * MIB,
  leastShare: 0.6 }, { windows: 48, leastBytes: 32 * MIB, leastShare: 0.4 }, { windows: 96, leastBytes: 24 * MIB,
  leastShare: 0.25 }, { windows: 192, leastBytes: 16 * MIB, leastShare: 0.15 }])
const LONGEST = SPANS[SPANS.length - 1].windows
/** Of all pairs of parts so many have to have more memory in the later one. */
const LEAST_RISING = 0.9
/**
 * A step is no trend, and what fills slows down: from quarter to quarter it grows by this share of the average, and
 * more to the last one.
 */
const LEAST_STEADY = 0.5
const LAST_COUNTS = 0.625
/** One worker among others that do not grow has to grow without any doubt. */
const CLEARLY_STEADY = 0.6
/**
 * With so much more load in the last quarter than in the first it may be the load, unless the memory has grown by so
 * much more than that.
 */
const MORE_LOAD = 1.25
/**
 * Workers of the release have given back so much before, as the garbage collector does after hours where there is
 * little to do: it has to grow by more.
 */
const MORE_THAN_FELL = 1.25
const MAX_RELEASES = 10

/** Tells when the memory of workers grows steadily: once for each release, until another one has replaced it. */
export function createGrowingMemory ({ onGrowing }: { onGrowing: (growing: Growing) => void }) {
  const members: Map<number, Member> = new Map()
  /** The newest releases, oldest first. */
  const releases: Map<string, { isTold: boolean, steadyHours: number, fellBytes: number }> = new Map()

  return {
    /** `second`: since the epoch */
    add (second: number, worker: number, release: string, row: Row) {
      let member = members.get(worker)
      if (!member) members.set(worker, member = new Member(worker, release, second))
      if (member.add(second, row)) judge(release)
    },

    left (worker: number) {
      const member = members.get(worker)
      members.delete(worker)
      // Another release has replaced it, and it may be deployed again.
      if (member && members.size > 0 && ![...members.values()].some(({ release }) => release === member.release))
        noteOf(member.release).isTold = false
    }
  }

  /** `release`: of which a worker has been judged */
  function judge (release: string) {
    const all = [...members.values()].filter((member) => member.release === release)
    const note = noteOf(release)
    note.fellBytes = Math.max(note.fellBytes, ...all.map(({ fellBytes }) => fellBytes))
    const growing = all.filter(({ growth }) => growth && growth.grownBytes > note.fellBytes * MORE_THAN_FELL)
    // By the second time all have been judged.
    const settled = growing.filter(({ times }) => times > 1)
    const told =
      (growing.length * 2 > all.length && settled.length > 0
        ? growing
        : settled.filter(({ growth }) => growth?.isClear)).flatMap(({ growth }) => growth ?? [])
    note.steadyHours = growing.length > 0
      ? 0
      : Math.max(note.steadyHours, middleOf(all.map(({ hours }) => hours).sort((a, b) => a - b)))
    if (note.isTold || told.length === 0) return
    note.isTold = true
    const byPace = told.toSorted((one, other) => one.bytesPerHour - other.bytesPerHour)
    onGrowing({ release, growth: middleOf(byPace), workers: told.map(({ worker }) => worker).sort((a, b) => a - b),
      ofWorkers: all.length, highestBytes: Math.max(...told.map(({ toBytes }) => toBytes)),
      fastestBytesPerHour: byPace[byPace.length - 1].bytesPerHour,
      allBytesPerHour: told.reduce((sum, { bytesPerHour }) => sum + bytesPerHour, 0),
      steady: steadyBefore(release, middleOf(byPace).hours) })
  }

  /** `hours`: in which the growth was found */
  function steadyBefore (release: string, hours: number) {
    const names = [...releases.keys()]
    const before = names[names.indexOf(release) - 1]
    const { steadyHours = 0 } = releases.get(before) ?? {}
    return steadyHours >= hours ? { release: before, hours: steadyHours } : null
  }

  function noteOf (release: string) {
    let note = releases.get(release)
    if (!note) releases.set(release, note = { isTold: false, steadyHours: 0, fellBytes: 0 })
    const [oldest] = releases.keys()
    if (releases.size > MAX_RELEASES) releases.delete(oldest)
    return note
  }
}

const RSS = indexOf('rssBytes')
const HEAP = indexOf('heapUsedBytes')
const CONNECTIONS = indexOf('openConnections')

/** The memory of one worker. */
class Member {
  worker: number
  release: string
  growth: Growth | null = null
  /** How often in a row it was found to grow. */
  times = 0
  /** Of the longest span in which it was judged. */
  hours = 0
  /** The most that it has given back after some time. */
  fellBytes = 0
  /** oldest first */
  #windows: Window[] = []
  #window = blankWindow()
  #highest = 0
  #since
  #newest

  /** `second`: of its first report */
  constructor (worker: number, release: string, second: number) {
    this.worker = worker
    this.release = release
    this.#since = second + WARM_UP_S
    this.#newest = second
  }

  /** Tells whether it has been judged */
  add (second: number, row: Row): boolean {
    // The machine slept, or its clock was set.
    if (Math.abs(second - this.#newest) > WINDOW_S) this.#beginAnew(second)
    this.#newest = second
    if (second < this.#since) return false
    const isOver = second - this.#since >= WINDOW_S
    if (isOver) this.#endWindow()
    const window = this.#window
    if (row[RSS] < window.rssBytes) Object.assign(window, { rssBytes: row[RSS], heapUsedBytes: row[HEAP] })
    window.requests += requestsOf(row)
    window.connections += row[CONNECTIONS]
    return isOver
  }

  #endWindow () {
    const { rssBytes } = this.#window
    this.#highest = Math.max(this.#highest, rssBytes)
    this.fellBytes = Math.max(this.fellBytes, this.#highest - rssBytes)
    this.#windows.push(this.#window)
    if (this.#windows.length > LONGEST) this.#windows.shift()
    this.#window = blankWindow()
    this.#since += WINDOW_S
    const spans = SPANS.filter(({ windows }) => windows <= this.#windows.length)
    this.hours = Math.max(0, ...spans.map(hoursOf))
    this.growth = null
    for (const span of spans) this.growth ??= growthOf(this.#windows, span, this.worker)
    this.times = this.growth ? this.times + 1 : 0
  }

  #beginAnew (second: number) {
    this.#windows = []
    this.#window = blankWindow()
    this.#since = second
    this.growth = null
    this.times = 0
  }
}

function growthOf (all: Window[], span: typeof SPANS[number], worker: number): Growth | null {
  const parts = partsOf(all.slice(-span.windows))
  const memory = parts.map(({ rssBytes }) => rssBytes)
  const [fromBytes, toBytes] = [memory[0], memory[PARTS - 1]]
  const grown = slopeOf(memory) * (PARTS - 1)
  const share = Math.min(grown / span.leastBytes, grown / (fromBytes * span.leastShare))
  const [rising, steadiness] = [risingOf(memory), steadinessOf(memory)]
  if (share < 1 || rising < LEAST_RISING || steadiness < LEAST_STEADY || isByLoad(parts, span)) return null
  const heapBytes = parts[PARTS - 1].heapUsedBytes - parts[0].heapUsedBytes
  const requests = parts.reduce((sum, part) => sum + part.requests, 0)
  return { worker, hours: hoursOf(span), fromBytes, toBytes, grownBytes: grown,
    bytesPerHour: slopeOf(memory) * PARTS / hoursOf(span), heapBytes: Number.isNaN(heapBytes) ? null : heapBytes,
    bytesPer1000Requests: requests > 0 ? grown * PARTS / (PARTS - 1) / requests * 1000 : null,
    isClear: share >= 2 && rising === 1 && steadiness >= CLEARLY_STEADY }
}

function partsOf (windows: Window[]): Window[] {
  const size = windows.length / PARTS
  return Array.from({ length: PARTS },
    (_, n) =>
      windows.slice(n * size, (n + 1) * size).reduce(
        (part, window) => ({ ...(window.rssBytes < part.rssBytes ? window : part),
          requests: part.requests + window.requests, connections: part.connections + window.connections }),
        blankWindow()
      ))
}

function blankWindow (): Window {
  return { rssBytes: Infinity, heapUsedBytes: NaN, requests: 0, connections: 0 }
}

/**
 * The median of the slopes between all pairs (Theil and Sen): some odd values do not count.
 * @returns from one to the next
 */
function slopeOf (values: number[]): number {
  return middleOf(pairsOf(values).map(([early, late, apart]) => (late - early) / apart).sort((a, b) => a - b))
}

/** @returns the share of all pairs that rise, as Mann and Kendall count them */
function risingOf (values: number[]): number {
  const pairs = pairsOf(values)
  return pairs.filter(([early, late]) => late > early).length / pairs.length
}

function pairsOf (values: number[]): [early: number, late: number, apart: number][] {
  return values.flatMap((early, n) =>
    values.slice(n + 1).map((late, apart) => [early, late, apart + 1] as [number, number, number])
  )
}

/**
 * @returns the least that it grows from quarter to quarter, as a share of what it does on average; the last counts more
 */
function steadinessOf (values: number[]): number {
  const quarters = quartersOf(values).map((quarter) => middleOf(quarter.sort((a, b) => a - b)))
  const steps = quarters.slice(1).map((value, n) => value - quarters[n])
  const mean = (quarters[3] - quarters[0]) / 3
  return Math.min(steps[0], steps[1], steps[2] * LAST_COUNTS) / mean
}

/** Of a worker without requests it is not known what it does: a day and a night tell. */
function isByLoad (parts: Window[], span: typeof SPANS[number]) {
  if (span.windows === LONGEST) return false
  return (['requests', 'connections'] as const).some((name) => {
    const [first, , , last] = quartersOf(parts.map((part) => part[name])).map((quarter) =>
      quarter.reduce((sum, value) => sum + value, 0)
    )
    return last > first * MORE_LOAD && parts[PARTS - 1].rssBytes < parts[0].rssBytes * last / first * MORE_LOAD
  }) || !(parts.reduce((sum, { requests }) => sum + requests, 0) > 0)
}

function quartersOf (values: number[]) {
  const size = PARTS / 4
  return [0, 1, 2, 3].map((n) => values.slice(n * size, (n + 1) * size))
}

function hoursOf ({ windows }: { windows: number }) {
  return windows * WINDOW_S / 3600
}

function middleOf<T> (sorted: T[]): T {
  return sorted[Math.floor(sorted.length / 2)]
}
