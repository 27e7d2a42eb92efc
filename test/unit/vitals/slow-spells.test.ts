import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSlowSpells, type Spell, type SpellEnd } from '../../../server/vitals/slow-spells.ts'
import { BUCKETS, bucketOf, toSparse } from '../../../workers/histogram.ts'
import { createRandom } from '../../support/random.ts'
import { rareTest } from '../../support/rare.ts'

const START_S = 1_800_000_000
const MINUTE_S = 60
const HOUR_S = 60 * MINUTE_S
/** The load comes in steps of this. */
const STEP_S = 5

/** `ms`: the median */
type Load = { route: string, perSecond: number, ms: number, spread?: number }
type Moment = { second: number, load: Load }

/** A day of requests, as fast as the computer can. */
function live (
  { seed, seconds, loads, perSecond = ({ load }) => load.perSecond, ms = ({ load }) => load.ms, hasRoutes = true }: {
    seed: number,
    seconds: number,
    loads: Load[],
    perSecond?: (moment: Moment) => number,
    ms?: (moment: Moment, random: () => number) => number,
    hasRoutes?: boolean
  }
) {
  const random = createRandom(seed)
  const told: [string, number, Spell & SpellEnd][] = []
  let second = 0
  const spells = createSlowSpells({ onBegin: (spell) => told.push(['begin', second, spell as Spell & SpellEnd]),
    onEnd: (end) => told.push(['end', second, end as Spell & SpellEnd]) })
  for (; second < seconds; second += STEP_S) {
    const routes = loads.flatMap((load) => {
      const latency = new Float64Array(BUCKETS)
      const many = perSecond({ second, load }) * STEP_S
      const count = Math.floor(many) + (random() < many % 1 ? 1 : 0)
      for (let n = 0; n < count; n++)
        latency[bucketOf(ms({ second, load }, random) * Math.exp((load.spread ?? 0.5) * normal(random)))]++
      return count === 0 ? [] : [{ route: load.route, errors: 0, latency: toSparse(latency) }]
    })
    const all = new Float64Array(BUCKETS)
    for (const { latency } of routes) for (let n = 0; n < latency.length; n += 2) all[latency[n]] += latency[n + 1]
    spells.add(START_S + second, { routes: hasRoutes ? routes : [], latency: toSparse(all) })
    spells.turn(START_S + second + STEP_S)
  }
  return told
}

function normal (random: () => number) {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

const SHOP = [{ route: 'GET /', perSecond: 20, ms: 8 }, { route: 'GET /items/:id', perSecond: 8, ms: 25 }, {
  route: 'POST /orders',
  perSecond: 1,
  ms: 120,
  spread: 0.8
}, { route: 'GET /export', perSecond: 0.2, ms: 2000, spread: 1 }]

test('a route that becomes slow is told within a minute, by its name, and again once it is as fast as usual', () => {
  const isSlow = (second: number) => second >= HOUR_S && second < HOUR_S + 5 * MINUTE_S
  const told = live({ seed: 1, seconds: 2 * HOUR_S, loads: SHOP,
    ms: ({ second, load }) => load.route === 'GET /items/:id' && isSlow(second) ? 400 : load.ms })
  assert.deepEqual(told.map(([what, , { spell, route }]) => [what, (spell ?? { route }).route]), [['begin',
    'GET /items/:id'], ['end', 'GET /items/:id']])
  const [[, begun, spell], [, ended, end]] = told
  assert.ok(begun - HOUR_S <= MINUTE_S && ended - HOUR_S - 5 * MINUTE_S <= MINUTE_S,
    `${begun - HOUR_S} s, ${ended - HOUR_S} s`)
  assert.ok(
    Math.abs(spell.sinceMs / 1000 - START_S - HOUR_S) <= 20 && spell.usualP99Ms < 150 && spell.p99Ms > 800 &&
      spell.others.length === 0
  )
  assert.ok(Math.abs(end.untilMs / 1000 - START_S - HOUR_S - 5 * MINUTE_S) <= 20 && !end.isUsualNow)
})

test('a route of which hardly a request is answered any more is told within a minute too', () => {
  const isStuck = ({ second, load }: Moment) => second >= HOUR_S && load.route === 'GET /items/:id'
  const told = live({ seed: 9, seconds: HOUR_S + 2 * MINUTE_S, loads: SHOP,
    perSecond: (moment) => isStuck(moment) ? 0.8 : moment.load.perSecond,
    ms: (moment) => isStuck(moment) ? 6000 : moment.load.ms })
  assert.deepEqual(told.map(([what, , { route }]) => [what, route]), [['begin', 'GET /items/:id']])
  assert.ok(told[0][1] - HOUR_S <= MINUTE_S, `${told[0][1] - HOUR_S} s`)
})

test('where all are slow it is one event, which names the route that is slowest against what is usual for it', () => {
  const told = live({ seed: 2, seconds: HOUR_S + 10 * MINUTE_S, loads: SHOP,
    ms: ({ second, load }) =>
      second < HOUR_S || second > HOUR_S + 200 ? load.ms : load.ms + (load.route === 'GET /' ? 300 : 500) })
  assert.equal(told.length, 2)
  assert.notEqual(told[0][2].route, 'GET /')
  assert.ok(told[0][2].others.includes('GET /'))
})

test('what is slow for an hour is usual then, and an app without routes is judged by all its requests', () => {
  const told = live({ seed: 3, seconds: 4 * HOUR_S, loads: SHOP.slice(0, 2), hasRoutes: false,
    ms: ({ second, load }) => second < HOUR_S ? load.ms : load.ms * 20 })
  assert.deepEqual(told.map(([what, , { route, isUsualNow }]) => [what, route, isUsualNow]), [['begin', null,
    undefined], ['end', undefined, true]])
})

test('one spell after the other is told, also soon after the start, with short stalls between', () => {
  const isSlow = (second: number) => second >= 400 && second % 200 < 70
  const isStalled = (second: number) => second >= 400 && second % 200 >= 120 && second % 200 < 130
  const told = live({ seed: 8, seconds: 2000, loads: SHOP,
    ms: ({ second, load }) =>
      load.route === 'GET /items/:id' && isSlow(second) ? 400 : isStalled(second) ? 3000 : load.ms })
  assert.deepEqual(told.map(([what]) => what), Array.from({ length: 8 }, () => ['begin', 'end']).flat())
})

test('a stall of some seconds, few requests, a change of which routes are asked for and the first minutes after a quiet night are no slow spell', () => {
  const stalled = live({ seed: 4, seconds: 3 * HOUR_S, loads: SHOP,
    ms: ({ second, load }) => load.ms + (second % 600 < 10 && second > HOUR_S ? 2000 : 0) })
  const few = live({ seed: 5, seconds: 3 * HOUR_S, loads: [{ route: 'GET /rare', perSecond: 0.1, ms: 10 }],
    ms: ({ second, load }) => second < HOUR_S ? load.ms : 5000 })
  const mixed = live({ seed: 6, seconds: 3 * HOUR_S, loads: SHOP,
    perSecond: ({ second, load }) => load.perSecond * (second > 2 * HOUR_S && load.route === 'GET /export' ? 20 : 1) })
  const quiet = live({ seed: 7, seconds: 4 * HOUR_S, loads: SHOP,
    perSecond: ({ second, load }) => second < HOUR_S || second > 3 * HOUR_S ? load.perSecond : 0,
    ms: ({ second, load }) => load.ms * (second > 3 * HOUR_S ? 10 : 1) })
  assert.deepEqual([stalled, few, mixed, quiet], [[], [], [], []])
})

/** Days of good load: by seed, other rates, spreads, bursts, pauses of the collector, deploys and slow clients. */
function goodDay (seed: number, hours: number) {
  const random = createRandom(seed * 7919)
  const loads = Array.from({ length: 3 + Math.floor(random() * 10) },
    (_, index) => ({ route: `GET /r${index}`, perSecond: 10 ** (random() * 2.3 - 1.3), ms: 10 ** (random() * 3),
      spread: 0.2 + random() }))
  const [phase, burst, pauses, tail] = [random() * 2 * Math.PI, 1 + random() * 4, random() * 0.004, random() * 0.02]
  return live({ seed, seconds: hours * HOUR_S, loads,
    perSecond: ({ second, load }) =>
      load.perSecond * (1 + 0.7 * Math.sin(phase + second / HOUR_S * Math.PI / 6)) * (second % 1800 < 90 ? burst : 1),
    ms ({ second, load }, chance) {
      const busy = 1 + 0.3 * Math.sin(phase + second / HOUR_S * Math.PI / 6)
      const deploy = second % (2 * HOUR_S) < 20 ? 1.8 : 1
      const pause = chance() < pauses ? 80 : 0
      return load.ms * busy * deploy * (chance() < tail ? 6 : 1) + pause
    } })
}

test('there are no false alarms over hours of good load', () => {
  assert.deepEqual(goodDay(1, 6).map(([what, second, { route }]) => `${what} ${second} ${route}`), [])
})

rareTest('there are no false alarms over days of good load of many kinds', () => {
  for (let seed = 2; seed <= 8; seed++)
    assert.deepEqual(goodDay(seed, 24).map(([what, second, { route }]) => `${seed} ${what} ${second} ${route}`), [])
})
