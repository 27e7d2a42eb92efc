import { countOf, createAnswers } from './answers.ts'
import { Blend } from './blend.ts'
import { COLUMNS, indexOf, toObject, type ColumnName, type MeasuredName, type Row } from './columns.ts'
import { createGrowingMemory, type Growing } from './growing-memory.ts'
import { readReport, type Report } from './report.ts'
import { createRing } from './ring.ts'
import { createRoutes } from './routes.ts'
import { createRollup, type StoredStep } from './rollup.ts'
import { createSeries, perSecond } from './series.ts'
import { createSlowSpells, type Spell, type SpellEnd } from './slow-spells.ts'
import { createTotals } from './totals.ts'
import { createWriter } from './writer.ts'
import type { VitalsStore } from '../../db/vitals.ts'

export type Vitals = ReturnType<typeof createVitals>
type Sample = { at: string, rssBytes: number, cpuPercent: number } & Record<
  Exclude<ColumnName, 'rssBytes' | 'cpuPercent'>,
  number | null
>
type Latest = Sample & { requestsPerSecond: number | null }
/** `cpuMs`: since the process began */
type Usage = { rssBytes: number, cpuMs: number }
type SlotMemory = { ring: ReturnType<typeof createRing>, second: Blend }
type Store = Pick<VitalsStore, 'write' | 'read'>

const NO_STORE: Store = Object.freeze({ write () {}, read: () => [] })

const SECOND_MS = 1000
/** A timer may fire a moment early, and must not add up the same second twice. */
const LEEWAY_MS = 250
/** The seconds of the cluster and of each slot are kept in memory for this time. */
const MEMORY_S = 15 * 60
/** The seconds of each worker are kept for its crash record. */
const WORKER_MEMORY_S = 60
const MAX_DEAD_WORKERS = 512
/** A worker that does not report still holds these. */
const HELD_NAMES: readonly MeasuredName[] = ['rssBytes', 'heapUsedBytes', 'heapTotalBytes', 'externalBytes', 'inFlight',
  'openConnections', 'processes', 'threads', 'descriptors']
const HELD = HELD_NAMES.map(indexOf)
const NOTHING: Row = new Float64Array(COLUMNS.length).fill(NaN)
const RSS_BYTES = indexOf('rssBytes')
const CPU_PERCENT = indexOf('cpuPercent')

/**
 * Keeps the vitals of the workers: each second for a quarter of an hour in memory, and longer steps in the database.
 * Workers report at the beginning of each second, and half a second later the reports are added up.
 */
export function createVitals (
  { store = NO_STORE, usageOf = () => null, onFailure = () => {}, onSlow = () => {}, onSlowEnd = () => {},
    onGrowing = () => {}, now = Date.now, setTimer = (work, ms) => setTimeout(work, ms).unref(),
    clearTimer = clearTimeout }: {
      /** of the longer steps */
      store?: Store,
      /** what the process of a worker takes that does not report; null: the system does not tell */
      usageOf?: (worker: number) => Usage | null,
      /** the store fails */
      onFailure?: (error: unknown) => void,
      /** requests are slower than usual */
      onSlow?: (spell: Spell) => void,
      onSlowEnd?: (end: SpellEnd) => void,
      /** the memory of the workers of a release grows steadily */
      onGrowing?: (growing: Growing) => void,
      /** wall clock, ms since the epoch */
      now?: () => number,
      setTimer?: (work: () => void, ms: number) => NodeJS.Timeout | number,
      clearTimer?: (timer: NodeJS.Timeout | number | undefined) => void
    } = {}
) {
  /** the living ones and, for a while, dead ones, oldest first */
  const workers: Map<number, Member> = new Map()
  const slots: Map<number, SlotMemory> = new Map()
  const cluster = { ring: createRing(MEMORY_S), second: new Blend('across') }
  const rollups = [createRollup(10), createRollup(60)]
  const totals = createTotals()
  const routes = createRoutes({ now })
  const answers = createAnswers()
  const slowSpells = createSlowSpells({ onBegin: onSlow, onEnd: onSlowEnd })
  const growingMemory = createGrowingMemory({ onGrowing })
  const writer = createWriter({ store: store.write, onFailure })
  let timer: NodeJS.Timeout | number | undefined

  const series = createSeries({ now, memoryS: MEMORY_S, cluster: cluster.ring, slots, read: store.read })

  return {
    start: scheduleTurn,

    /** Writes the unfinished steps. */
    stop () {
      clearTimer(timer)
      timer = undefined
      for (const rollup of rollups) keepStep(rollup.finish())
    },

    /**
     * `body`: untrusted; `release`: that it runs.
     * @throws {TypeError} for the first report of a worker that cannot be read; further ones are left out
     */
    accept (worker: number, slot: number, body: unknown, release?: string) {
      let member = workers.get(worker)
      if (!member) workers.set(worker, member = new Member(slot))
      if (!member.isAlive) return
      try {
        const report = readReport(body)
        member.take(report, now())
        totals.add(slot, report)
        const second = Math.floor(now() / SECOND_MS)
        slowSpells.add(second, report)
        if (release === undefined) return
        routes.add(release, worker, report.routes)
        answers.add(second, release, countOf(report.statuses))
        growingMemory.add(second, worker, release, report.row)
      } catch (error) {
        if (member.hasSentNonsense) return
        member.hasSentNonsense = true
        throw error
      }
    },

    /** It serves, and is looked at from outside should it never report. */
    began (worker: number, slot: number) {
      if (!workers.has(worker)) workers.set(worker, new Member(slot))
    },

    /** The worker has ended. Its last minute stays for a while. */
    left (worker: number) {
      const member = workers.get(worker)
      if (!member) return
      member.isAlive = false
      growingMemory.left(worker)
      // It moves to the end, since `forgetOldest` removes those that died first.
      workers.delete(worker)
      workers.set(worker, member)
      forgetOldest()
    },

    /** Adds up the reports that have come, as those of this second. `second`: since the epoch. */
    turn: turnSecond,

    /** @returns its newest second, which `series` has too: a page never tells of two samples */
    latest: (worker: number): Latest | null => workers.get(worker)?.latest() ?? null,

    /** `worker`: which may have died. Returns its reports of its last minute, oldest first. */
    lastMinute: (worker: number): Sample[] => workers.get(worker)?.lastMinute() ?? [],

    series,

    /** What was answered, by route. */
    routes: routes.read,

    /** The same by the minute, of the last hour: all requests, the figures of a route, the slowest. */
    requestsByMinute: routes.requestsByMinute,
    minutesOfRoute: routes.minutesOf,
    slowestRequests: routes.slowest,

    /** How many requests each release has answered, and how many by 5xx. */
    answers,

    /** Counts events for /metrics. */
    count: totals.count,

    /** The figures of /metrics: totals since this master began, and the newest values of each slot. */
    metrics: () => ({ ...totals.read(), slots: newestBySlot() })
  }

  function scheduleTurn () {
    const ms = SECOND_MS - (now() + SECOND_MS / 2) % SECOND_MS
    timer = setTimer(() => {
      scheduleTurn()
      // Reports that have come by now were sent at the beginning of this second, about the one before.
      turnSecond(Math.floor((now() - LEEWAY_MS) / SECOND_MS) - 1)
    }, ms > LEEWAY_MS ? ms : ms + SECOND_MS)
  }

  function turnSecond (second: number) {
    for (const rollup of rollups) keepStep(rollup.turnTo(second))
    slowSpells.turn(second)
    for (const [worker, member] of workers) {
      const row = member.turn(second, { at: now(), usage: () => usageOf(worker) })
      if (!row) continue
      slotOf(member.slot).second.add(row, member.report)
      cluster.second.add(row, member.report)
      member.report.reset()
    }
    for (const [number, slot] of slots) {
      if (!slot.second.isEmpty) turnSlot(number, slot, second)
      else if (slot.ring.newest < second - MEMORY_S) slots.delete(number)
    }
    if (cluster.second.isEmpty) return
    const row = cluster.second.row()
    cluster.ring.write(second, row)
    for (const rollup of rollups) rollup.addCluster(row, cluster.second)
    cluster.second.reset()
  }

  function turnSlot (number: number, slot: SlotMemory, second: number) {
    const row = slot.second.row()
    slot.ring.write(second, row)
    for (const rollup of rollups) rollup.addSlot(number, row, slot.second)
    slot.second.reset()
  }

  function slotOf (number: number): SlotMemory {
    let slot = slots.get(number)
    if (!slot) slots.set(number, slot = { ring: createRing(MEMORY_S), second: new Blend('across') })
    return slot
  }

  function keepStep (step: StoredStep | null) {
    if (step) writer.add(step)
  }

  function forgetOldest () {
    const dead = [...workers].filter(([, { isAlive }]) => !isAlive)
    for (const [worker] of dead.slice(0, -MAX_DEAD_WORKERS)) workers.delete(worker)
  }

  /** @returns of its workers that live, without latencies */
  function newestBySlot (): { slot: number, values: Record<string, number | null> }[] {
    const blends: Map<number, Blend> = new Map()
    for (const { isAlive, slot, newest } of workers.values()) {
      if (!isAlive || !newest) continue
      const blend = blends.get(slot) ?? new Blend('across')
      blend.add(newest)
      blends.set(slot, blend)
    }
    return [...blends].sort(([a], [b]) => a - b).map(([slot, blend]) => ({ slot, values: toObject(blend.row()) }))
  }
}

/** The reports of one worker. */
class Member {
  slot: number
  /** The reports since the last turn. */
  report = new Blend('over')
  isAlive = true
  hasSentNonsense = false
  newest: Row | null = null
  #newestAt = 0
  /** The newest second in the ring. */
  #turned: { at: number, row: Row } | null = null
  /** What its process had taken when it was looked at, while it was silent. */
  #seen: { at: number, cpuMs: number } | null = null
  #ring = createRing(WORKER_MEMORY_S)

  constructor (slot: number) {
    this.slot = slot
  }

  /** `at`: wall ms */
  take ({ row, latency }: Report, at: number) {
    this.#seen = null
    this.report.add(row)
    this.report.addLatency(latency)
    this.newest = this.report.row()
    this.#newestAt = at
  }

  /** Null: nothing is known of this second */
  turn (second: number, { at, usage }: { at: number, usage: () => Usage | null }): Row | null {
    if (!this.report.isEmpty) {
      const row = this.report.row()
      this.#keep(second, row)
      return row
    }
    if (!this.isAlive) return null
    const row = heldOnly(this.newest ?? NOTHING)
    if (this.#look(row, { at, usage: usage() })) {
      this.newest = row
      this.#newestAt = at
      this.#keep(second, row)
    }
    return this.newest && row
  }

  #keep (second: number, row: Row) {
    this.#ring.write(second, row)
    this.#turned = { at: this.#newestAt, row }
  }

  latest (): Latest | null {
    return this.#turned &&
      { ...toSample(this.#turned.at, this.#turned.row), requestsPerSecond: perSecond(this.#turned.row, 0, 1) }
  }

  /** A worker that hangs says nothing, but its process is seen from outside. Returns whether its CPU is known. */
  #look (row: Row, { at, usage }: { at: number, usage: Usage | null }): boolean {
    const before = this.#seen
    this.#seen = usage && { at, cpuMs: usage.cpuMs }
    if (!usage || !before || at <= before.at) return false
    row[RSS_BYTES] = usage.rssBytes
    row[CPU_PERCENT] = Math.max(0, usage.cpuMs - before.cpuMs) / (at - before.at) * 100
    return true
  }

  lastMinute (): Sample[] {
    const rows = []
    for (let second = this.#ring.newest - WORKER_MEMORY_S + 1; second <= this.#ring.newest; second++) {
      const offset = this.#ring.find(second)
      if (offset >= 0) rows.push(toSample(second * SECOND_MS, this.#ring.values, offset))
    }
    // It died before its last report was added up with those of the others.
    if (!this.report.isEmpty) rows.push(toSample(this.#newestAt, this.report.row()))
    return rows
  }
}

function toSample (atMs: number, row: ArrayLike<number>, offset: number = 0): Sample {
  return { at: new Date(atMs).toISOString(), ...toObject(row, offset) } as Sample
}

function heldOnly (row: Row) {
  const rest = new Float64Array(row.length).fill(NaN)
  for (const index of HELD) rest[index] = row[index]
  return rest
}
