import assert from 'node:assert/strict'
import { test } from 'node:test'
import { COLUMNS, FIRST_STATUS, indexOf } from '../../../server/vitals/columns.ts'
import { createGrowingMemory, type Growing } from '../../../server/vitals/growing-memory.ts'
import { STATUS_CLASSES } from '../../../workers/protocol.ts'
import { createRandom } from '../../support/random.ts'
import { rareTest } from '../../support/rare.ts'

const START_S = 1_800_000_000
const HOUR_S = 3600
/** Workers report in steps of this. */
const STEP_S = 60
const MIB = 1024 ** 2

/** What an app does to the memory of each of its workers, in MiB and hours. */
type App = {
  base?: number,
  /** per hour */
  leak?: number,
  /** hour from which on it leaks */
  leakFrom?: number,
  /** only so many of the workers leak */
  leaking?: number,
  noise?: number,
  /** of the garbage collector */
  teeth?: { size: number, hours: number },
  /** fills */
  cache?: { size: number, hours: number, isLinear?: boolean },
  /** is held for the requests at the time, at the peak of the day */
  byLoad?: { size: number, lag?: number },
  /** requests, of which a share stays with the process */
  big?: { size: number, every: number, kept: number },
  /** a wandering about the base */
  drift?: { size: number, hours: number },
  /** requests, at the peak of the day */
  perSecond?: number,
  /** the share of it at night */
  night?: number,
  /** hours */
  phase?: number,
  /** hours */
  deployEvery?: number,
  /** of each worker by itself */
  recycleEvery?: number
}

/** Days of an app, as fast as the computer can. */
function live (
  { seed, hours, workers = 4, app }: { seed: number, hours: number, workers?: number, app: App }
): { atHour: number, growing: Growing }[] {
  const { base = 110, leak = 0, leakFrom = 0, leaking = workers, noise = 2, teeth = { size: 15, hours: 0.02 }, cache,
    byLoad, big, drift, perSecond = 50, night = 1, phase = 0, deployEvery = Infinity, recycleEvery = Infinity } = app
  const random = createRandom(seed)
  const told: { atHour: number, growing: Growing }[] = []
  let atHour = 0
  const judge = createGrowingMemory({ onGrowing: (growing) => told.push({ atHour, growing }) })
  const loadAt = (hour: number) => night + (1 - night) * (0.5 - 0.5 * Math.cos((hour + phase) / 12 * Math.PI))
  let nextId = 1
  let release = 1
  let nextDeploy = deployEvery
  const create = (slot: number) => ({ id: nextId++, slot, release: `r${release}`, born: atHour + slot / 200,
    tooth: random(), held: 0, drift: 0, leaked: 0, served: 0 })
  let living = Array.from({ length: workers }, (_, slot) => create(slot))
  const row = new Float64Array(COLUMNS.length)
  for (let second = 0; second < hours * HOUR_S; second += STEP_S) {
    atHour = second / HOUR_S
    if (atHour >= nextDeploy) {
      nextDeploy += deployEvery
      release++
      for (const { id } of living) judge.left(id)
      living = living.map(({ slot }) => create(slot))
    }
    for (const worker of living) {
      if (worker.born > atHour) continue
      const age = atHour - worker.born
      if (age > recycleEvery * (0.8 + worker.slot / 10)) {
        judge.left(worker.id)
        living = living.map((each) => each === worker ? create(worker.slot) : each)
        continue
      }
      const load = loadAt(atHour)
      const requests = Math.round(perSecond / workers * load * STEP_S * (0.8 + 0.4 * random()))
      const share = perSecond > 0 ? requests / (perSecond / workers * STEP_S) : 1
      worker.served += share * STEP_S / HOUR_S
      if (atHour >= leakFrom && worker.slot < leaking)
        worker.leaked += leak * STEP_S / HOUR_S * (share / ((1 + night) / 2))
      let isBig = false
      if (big && random() < STEP_S / HOUR_S / big.every) {
        isBig = true
        worker.held = Math.max(worker.held, big.size * big.kept * random())
      }
      if (drift)
        worker.drift += -worker.drift * STEP_S / HOUR_S / drift.hours +
          drift.size * Math.sqrt(2 * STEP_S / HOUR_S / drift.hours) * normal(random)
      worker.tooth = (worker.tooth + STEP_S / HOUR_S / teeth.hours * (0.5 + share / 2)) % 1
      const filled = cache
        ? cache.size *
          (cache.isLinear ? Math.min(1, worker.served / cache.hours) : 1 - Math.exp(-worker.served / cache.hours))
        : 0
      const heap = 40 + worker.leaked + filled + teeth.size * worker.tooth +
        (byLoad ? byLoad.size * loadAt(atHour - (byLoad.lag ?? 0)) : 0)
      const rss = base + heap - 40 + 25 * (1 - Math.exp(-age / 0.1)) + worker.held + (isBig && big ? big.size : 0) +
        worker.drift + noise * normal(random)
      row.fill(NaN)
      row[indexOf('rssBytes')] = Math.max(30, rss) * MIB
      row[indexOf('heapUsedBytes')] = heap * MIB
      row[indexOf('openConnections')] = Math.round(requests / 10)
      for (let n = 0; n < STATUS_CLASSES.length; n++) row[FIRST_STATUS + n] = 0
      row[indexOf('requests2xx')] = requests
      judge.add(START_S + second, worker.id, worker.release, row)
    }
  }
  return told
}

function normal (random: () => number) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

/** A good app of some kind, by seed: none of them leaks, and all of them do what makes memory rise for a while. */
function goodApp (seed: number): App {
  const random = createRandom(seed * 7919)
  const upTo = (from: number, to: number) => from * (to / from) ** random()
  const maybe = <T>(what: T) => random() < 0.4 ? what : undefined
  return { base: upTo(60, 400), noise: upTo(0.5, 8), teeth: { size: upTo(5, 120), hours: upTo(0.005, 6) },
    cache: maybe(
      random() < 0.5
        ? { size: upTo(10, 300), hours: upTo(0.1, 4) }
        : { size: upTo(10, 300), hours: upTo(0.1, 1.5), isLinear: true }
    ), byLoad: maybe({ size: upTo(5, 200), lag: upTo(0.1, 2) }),
    big: maybe({ size: upTo(50, 800), every: upTo(0.3, 20), kept: random() }),
    drift: maybe({ size: upTo(2, 15), hours: upTo(0.5, 6) }), perSecond: random() < 0.1 ? 0 : upTo(0.5, 500),
    night: random() < 0.3 ? 1 : random() * 0.6, phase: random() * 24,
    deployEvery: random() < 0.5 ? upTo(3, 40) : Infinity, recycleEvery: random() < 0.3 ? upTo(2, 24) : Infinity }
}

test('a leak is told once, with its pace, in hours if it is fast and in a day and a half if it is slow', () => {
  const found = [100, 30, 2].map((leak) => {
    const told = live({ seed: leak, hours: 40, workers: 2, app: { leak } })
    assert.equal(told.length, 1, `${leak} MB an hour`)
    const { release, growth, workers, ofWorkers, allBytesPerHour, steady } = told[0].growing
    assert.deepEqual([release, workers, ofWorkers, steady], ['r1', [1, 2], 2, null])
    for (const bytesPerHour of [growth.bytesPerHour, allBytesPerHour / 2])
      assert.ok(Math.abs(bytesPerHour / MIB / leak - 1) < 0.15, `${bytesPerHour / MIB} of ${leak}`)
    assert.ok(Math.abs(Number(growth.bytesPer1000Requests) / MIB / (leak / (25 * 3.6)) - 1) < 0.15)
    assert.ok(growth.toBytes > growth.fromBytes && Number(growth.heapBytes) > 0.8 * (growth.toBytes - growth.fromBytes))
    return told[0].atHour
  })
  assert.deepEqual(found.map(Math.floor), [2, 4, 32])
})

test('of some workers that leak it says which, and of the next release whether the one before grew', () => {
  const one = live({ seed: 2, hours: 12, app: { leak: 40, leaking: 1 } })
  assert.deepEqual(one.map(({ growing: { workers, ofWorkers } }) => [workers, ofWorkers]), [[[1], 4]])
  const next = live({ seed: 3, hours: 36, workers: 2, app: { leak: 60, leakFrom: 12, deployEvery: 12 } })
  assert.deepEqual(next.map(({ growing: { release, steady } }) => [release, steady]), [['r2', { release: 'r1',
    hours: 8 }], ['r3', null]])
})

test('an app that warms up, fills a cache, holds more by day, answers a big request, is deployed and rests at night does not grow', () => {
  const apps = [{ cache: { size: 250, hours: 0.7 }, teeth: { size: 80, hours: 0.6 } }, { byLoad: { size: 200, lag: 1 },
    night: 0.2, deployEvery: 9 }, { big: { size: 500, every: 3, kept: 0.8 }, drift: { size: 10, hours: 2 },
    night: 0.5 }, { teeth: { size: 90, hours: 5 }, noise: 6, perSecond: 1, recycleEvery: 10 }]
  assert.deepEqual(apps.map((app, n) => live({ seed: n, hours: 48, workers: 2, app })), [[], [], [], []])
})

rareTest('there are no false alarms over weeks of good load of many kinds', () => {
  for (let seed = 1; seed <= 30; seed++)
    assert.deepEqual(live({ seed, hours: 72, app: goodApp(seed) }), [], `seed ${seed}`)
})
