import { Blend } from './blend.js'
import { indexOf, requestsOf, toObject } from './columns.js'
import { readReport } from './report.js'
import { createRing } from './ring.js'
import { createRollup } from './rollup.js'
import { createSeries } from './series.js'
import { createTotals } from './totals.js'
import { createWriter } from './writer.js'

/** @typedef {ReturnType<typeof createVitals>} Vitals */
/** @typedef {import('./columns.js').Row} Row */
/** @typedef {{ at: string, rssBytes: number, cpuPercent: number } & Record<string, any>} Sample  numbers or null by the names of COLUMNS */
/** @typedef {{ ring: ReturnType<typeof createRing>, second: Blend }} SlotMemory */
/** @typedef {Pick<import('../../db/vitals.js').VitalsStore, 'write' | 'read'>} Store */

/** @type {Store} */
const NO_STORE = Object.freeze({ write () {}, read: () => [] })

const SECOND_MS = 1000
/** A timer may fire a moment early by this clock; that is no reason to put the same second together twice. */
const LEEWAY_MS = 250
/** What is kept of each second, of the cluster and of each slot. */
const MEMORY_S = 15 * 60
/** What is kept of each worker, for when it is asked why it died. */
const WORKER_MEMORY_S = 60
const MAX_DEAD_WORKERS = 512
/** What a worker that does not report still holds for certain. */
const HELD = ['rssBytes', 'heapUsedBytes', 'heapTotalBytes', 'externalBytes', 'inFlight', 'openConnections'].map(indexOf)

/**
 * How the workers feel: by second for a quarter of an hour in memory, and in longer steps in the database.
 * Workers report at the turn of each second; half a second later what has come is put together.
 * @param {object} [parts]
 * @param {Store} [parts.store]  where the longer steps are kept
 * @param {(error: unknown) => void} [parts.onFailure]  the store took nothing
 * @param {() => number} [parts.now] wall clock, ms since the epoch
 * @param {(work: () => void, ms: number) => any} [parts.setTimer]
 * @param {(timer: any) => void} [parts.clearTimer]
 */
export function createVitals ({ store = NO_STORE, onFailure = () => {}, now = Date.now, setTimer = unrefTimer, clearTimer = clearTimeout } = {}) {
  /** @type {Map<number, Member>} those that live, and for a while those that do not, oldest first */
  const workers = new Map()
  /** @type {Map<number, SlotMemory>} */
  const slots = new Map()
  const cluster = { ring: createRing(MEMORY_S), second: new Blend('across') }
  const rollups = [createRollup(10), createRollup(60)]
  const totals = createTotals()
  const writer = createWriter({ store: store.write, onFailure })
  /** @type {any} */
  let timer = null

  const series = createSeries({ now, memoryS: MEMORY_S, cluster: cluster.ring, slots, read: store.read })

  return {
    /** Begins to put together what comes. */
    start: scheduleTurn,

    /** Writes what there is of the steps under way. */
    stop () {
      clearTimer(timer)
      timer = null
      for (const rollup of rollups) keepStep(rollup.finish())
    },

    /**
     * @param {number} worker @param {number} slot @param {unknown} body  untrusted
     * @throws {TypeError} for the first report of a worker that cannot be read; further ones are left out
     */
    accept (worker, slot, body) {
      let member = workers.get(worker)
      if (!member) workers.set(worker, member = new Member(slot))
      if (!member.isAlive) return
      try {
        const report = readReport(body)
        member.take(report, now())
        totals.add(slot, report)
      } catch (error) {
        if (member.hasSentNonsense) return
        member.hasSentNonsense = true
        throw error
      }
    },

    /** The worker is gone; its last minute stays known for a while. @param {number} worker */
    left (worker) {
      const member = workers.get(worker)
      if (!member) return
      member.isAlive = false
      // The newest of the dead goes behind those that died before it.
      workers.delete(worker)
      workers.set(worker, member)
      forgetOldest()
    },

    /** Puts together the reports that have come, as those of this second. @param {number} second since the epoch */
    turn: turnSecond,

    /** @param {number} worker @returns {(Sample & { requestsPerSecond: number }) | null} its newest report */
    latest: (worker) => workers.get(worker)?.latest() ?? null,

    /**
     * @param {number} worker also one that has just died
     * @returns {Sample[]} of each second of its last minute in which it reported, oldest first
     */
    lastMinute: (worker) => workers.get(worker)?.lastMinute() ?? [],

    series,

    /** @param {import('../events/stream.js').DeckEvent} event  counts for /metrics what has happened */
    count: totals.count,

    /** What /metrics tells: totals since this master began, and the newest values of each slot. */
    metrics: () => ({ ...totals.read(), slots: newestBySlot() })
  }

  function scheduleTurn () {
    const ms = SECOND_MS - (now() + SECOND_MS / 2) % SECOND_MS
    timer = setTimer(() => {
      scheduleTurn()
      // What has come by now was sent at the turn before it, about the second before that.
      turnSecond(Math.floor((now() - LEEWAY_MS) / SECOND_MS) - 1)
    }, ms > LEEWAY_MS ? ms : ms + SECOND_MS)
  }

  /** @param {number} second */
  function turnSecond (second) {
    for (const rollup of rollups) keepStep(rollup.turnTo(second))
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

/** One worker, as it has reported. */
class Member {
  /** What has come since the last turn. */
  report = new Blend('over')
  isAlive = true
  hasSentNonsense = false
  /** @type {Row | null} */
  newest = null
  #newestAt = 0
  #requestsPerSecond = 0
  #ring = createRing(WORKER_MEMORY_S)

  /** @param {number} slot */
  constructor (slot) { this.slot = slot }

  /** @param {import('./report.js').Report} report @param {number} at wall ms */
  take ({ row, latency, intervalMs }, at) {
    this.report.add(row)
    this.report.addLatency(latency)
    this.newest = this.report.row()
    this.#newestAt = at
    this.#requestsPerSecond = intervalMs > 0 ? Math.round(requestsOf(row) / intervalMs * 10_000) / 10 : 0
  }

  /** @param {number} second @returns {Row | null} what is known of it for this second */
  turn (second) {
    if (!this.report.isEmpty) {
      const row = this.report.row()
      this.#ring.write(second, row)
      return row
    }
    return this.isAlive && this.newest ? heldOnly(this.newest) : null
  }

  /** @returns {(Sample & { requestsPerSecond: number }) | null} */
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
    // It died before its last report was put together with those of the others.
    if (!this.report.isEmpty) rows.push(toSample(this.#newestAt, this.report.row()))
    return rows
  }
}

/** @param {number} atMs @param {ArrayLike<number>} row @param {number} [offset] @returns {Sample} */
function toSample (atMs, row, offset = 0) {
  return /** @type {any} */ ({ at: new Date(atMs).toISOString(), ...toObject(row, offset) })
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
