import { Blend } from './blend.js'
import { indexOf, requestsOf, toObject } from './columns.js'
import { createGrowingMemory } from './growing-memory.js'
import { readReport } from './report.js'
import { createRing } from './ring.js'
import { createRoutes } from './routes.js'
import { createRollup } from './rollup.js'
import { createSeries } from './series.js'
import { createSlowSpells } from './slow-spells.js'
import { createTotals } from './totals.js'
import { createWriter } from './writer.js'

/** @typedef {ReturnType<typeof createVitals>} Vitals */
/** @typedef {import('./columns.js').Row} Row */
/** @typedef {import('./columns.js').ColumnName} ColumnName */
/** @typedef {{ at: string, rssBytes: number, cpuPercent: number } & Record<Exclude<ColumnName, 'rssBytes' | 'cpuPercent'>, number | null>} Sample */
/** @typedef {{ ring: ReturnType<typeof createRing>, second: Blend }} SlotMemory */
/** @typedef {Pick<import('../../db/vitals.js').VitalsStore, 'write' | 'read'>} Store */

/** @type {Store} */
const NO_STORE = Object.freeze({ write () {}, read: () => [] })

const SECOND_MS = 1000
/** A timer may fire a moment early, and must not add up the same second twice. */
const LEEWAY_MS = 250
/** The seconds of the cluster and of each slot are kept in memory for this time. */
const MEMORY_S = 15 * 60
/** The seconds of each worker are kept for its crash record. */
const WORKER_MEMORY_S = 60
const MAX_DEAD_WORKERS = 512
/** A worker that does not report still holds these. @type {readonly import('./columns.js').MeasuredName[]} */
const HELD_NAMES = ['rssBytes', 'heapUsedBytes', 'heapTotalBytes', 'externalBytes', 'inFlight', 'openConnections', 'processes', 'threads', 'descriptors']
const HELD = HELD_NAMES.map(indexOf)

/**
 * Keeps the vitals of the workers: each second for a quarter of an hour in memory, and longer steps in the database. Workers
 * report at the beginning of each second, and half a second later the reports are added up.
 * @param {object} [parts]
 * @param {Store} [parts.store]  of the longer steps
 * @param {(error: unknown) => void} [parts.onFailure]  the store fails
 * @param {(spell: import('./slow-spells.js').Spell) => void} [parts.onSlow]  requests are slower than usual
 * @param {(end: import('./slow-spells.js').SpellEnd) => void} [parts.onSlowEnd]
 * @param {(growing: import('./growing-memory.js').Growing) => void} [parts.onGrowing]  the memory of the workers of a release grows steadily
 * @param {() => number} [parts.now] wall clock, ms since the epoch
 * @param {(work: () => void, ms: number) => NodeJS.Timeout | number} [parts.setTimer]
 * @param {(timer: NodeJS.Timeout | number | undefined) => void} [parts.clearTimer]
 */
export function createVitals ({ store = NO_STORE, onFailure = () => {}, onSlow = () => {}, onSlowEnd = () => {}, onGrowing = () => {}, now = Date.now, setTimer = unrefTimer, clearTimer = clearTimeout } = {}) {
  /** @type {Map<number, Member>} the living ones and, for a while, dead ones, oldest first */
  const workers = new Map()
  /** @type {Map<number, SlotMemory>} */
  const slots = new Map()
  const cluster = { ring: createRing(MEMORY_S), second: new Blend('across') }
  const rollups = [createRollup(10), createRollup(60)]
  const totals = createTotals()
  const routes = createRoutes({ now })
  const slowSpells = createSlowSpells({ onBegin: onSlow, onEnd: onSlowEnd })
  const growingMemory = createGrowingMemory({ onGrowing })
  const writer = createWriter({ store: store.write, onFailure })
  /** @type {NodeJS.Timeout | number | undefined} */
  let timer

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
     * @param {number} worker @param {number} slot @param {unknown} body  untrusted @param {string} [release]  that it runs
     * @throws {TypeError} for the first report of a worker that cannot be read; further ones are left out
     */
    accept (worker, slot, body, release) {
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
        routes.add(release, report.routes)
        growingMemory.add(second, worker, release, report.row)
      } catch (error) {
        if (member.hasSentNonsense) return
        member.hasSentNonsense = true
        throw error
      }
    },

    /** The worker has ended. Its last minute stays for a while. @param {number} worker */
    left (worker) {
      const member = workers.get(worker)
      if (!member) return
      member.isAlive = false
      growingMemory.left(worker)
      // It moves to the end, since `forgetOldest` removes those that died first.
      workers.delete(worker)
      workers.set(worker, member)
      forgetOldest()
    },

    /** Adds up the reports that have come, as those of this second. @param {number} second since the epoch */
    turn: turnSecond,

    /** @param {number} worker @returns {(Sample & { requestsPerSecond: number | null }) | null} its newest report */
    latest: (worker) => workers.get(worker)?.latest() ?? null,

    /**
     * @param {number} worker  which may have died
     * @returns {Sample[]} its reports of its last minute, oldest first
     */
    lastMinute: (worker) => workers.get(worker)?.lastMinute() ?? [],

    series,

    /** What was answered, by route. */
    routes: routes.read,

    /** Counts events for /metrics. @param {import('../events/stream.js').DeckEvent} event */
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

  /** @param {number} second */
  function turnSecond (second) {
    for (const rollup of rollups) keepStep(rollup.turnTo(second))
    slowSpells.turn(second)
    for (const member of workers.values()) {
      const row = member.turn(second)
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

  /** @param {number} number @param {SlotMemory} slot @param {number} second */
  function turnSlot (number, slot, second) {
    const row = slot.second.row()
    slot.ring.write(second, row)
    for (const rollup of rollups) rollup.addSlot(number, row, slot.second)
    slot.second.reset()
  }

  /** @param {number} number @returns {SlotMemory} */
  function slotOf (number) {
    let slot = slots.get(number)
    if (!slot) slots.set(number, slot = { ring: createRing(MEMORY_S), second: new Blend('across') })
    return slot
  }

  /** @param {import('./rollup.js').StoredStep | null} step */
  function keepStep (step) {
    if (step) writer.add(step)
  }

  function forgetOldest () {
    const dead = [...workers].filter(([, { isAlive }]) => !isAlive)
    for (const [worker] of dead.slice(0, -MAX_DEAD_WORKERS)) workers.delete(worker)
  }

  /** @returns {{ slot: number, values: Record<string, number | null> }[]} of its workers that live, without latencies */
  function newestBySlot () {
    /** @type {Map<number, Blend>} */
    const blends = new Map()
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
  /** The reports since the last turn. */
  report = new Blend('over')
  isAlive = true
  hasSentNonsense = false
  /** @type {Row | null} */
  newest = null
  #newestAt = 0
  /** @type {number | null} */
  #requestsPerSecond = 0
  #ring = createRing(WORKER_MEMORY_S)

  /** @param {number} slot */
  constructor (slot) { this.slot = slot }

  /** @param {import('./report.js').Report} report @param {number} at wall ms */
  take ({ row, latency, statuses, intervalMs }, at) {
    this.report.add(row)
    this.report.addLatency(latency)
    this.newest = this.report.row()
    this.#newestAt = at
    this.#requestsPerSecond = statuses === null ? null : intervalMs > 0 ? Math.round(requestsOf(row) / intervalMs * 10_000) / 10 : 0
  }

  /** @param {number} second @returns {Row | null} null: nothing is known of this second */
  turn (second) {
    if (!this.report.isEmpty) {
      const row = this.report.row()
      this.#ring.write(second, row)
      return row
    }
    return this.isAlive && this.newest ? heldOnly(this.newest) : null
  }

  /** @returns {(Sample & { requestsPerSecond: number | null }) | null} */
  latest () {
    return this.newest && { ...toSample(this.#newestAt, this.newest), requestsPerSecond: this.#requestsPerSecond }
  }

  /** @returns {Sample[]} */
  lastMinute () {
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

/** @param {number} atMs @param {ArrayLike<number>} row @param {number} [offset] @returns {Sample} */
function toSample (atMs, row, offset = 0) {
  return /** @type {Sample} */ ({ at: new Date(atMs).toISOString(), ...toObject(row, offset) })
}

/** @param {Row} row */
function heldOnly (row) {
  const rest = new Float64Array(row.length).fill(NaN)
  for (const index of HELD) rest[index] = row[index]
  return rest
}

/** A timer that does not keep the process alive. */
function unrefTimer (/** @type {() => void} */ work, /** @type {number} */ ms) {
  return setTimeout(work, ms).unref()
}
