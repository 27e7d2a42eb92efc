import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createJudge } from '../../../server/releases/judge.ts'
import { DEFAULT_STRATEGY } from '../../../server/lifecycle/rollout/strategy.ts'
import { bucketOf } from '../../../workers/histogram.ts'
import { testStates } from '../../support/golden.ts'
import { countFound, listRolledBack } from '../../support/judged-deploys.ts'
import { rareTest } from '../../support/rare.ts'
import type { Limits } from '../../../server/api/shapes.ts'

const LIMITS = DEFAULT_STRATEGY.limits
const OLD = 1
const NEW = 9
const MIB = 1024 ** 2

type Answers = { good?: number, failed?: number, aborted?: number, ms?: number, busy?: number }

/** A worker's report of one second: so many good and failed answers, each after so many ms. */
function report ({ good = 0, failed = 0, aborted = 0, ms = 5, busy = 0 }: Answers) {
  const numbers = Object.fromEntries(
    ['rssBytes', 'heapUsedBytes', 'heapTotalBytes', 'externalBytes', 'cpuPercent', 'loopDelayP50Ms', 'loopDelayP99Ms',
      'loopDelayMaxMs', 'inFlight', 'openConnections'].map((name) => [name, 0])
  )
  const answered = good + failed
  return { ...numbers, eventLoopUtilization: busy, intervalMs: 1000, statuses: [good, 0, 0, failed, 0, aborted],
    latency: answered ? [bucketOf(ms), answered] : [], latencySumMs: answered * ms }
}

/** Answers on two routes, of which the second takes so long and fails so often. */
function routed ({ ms, errors = 0 }: { ms: number, errors?: number }) {
  const latency = ms === 20 ? [bucketOf(20), 40] : [bucketOf(20), 28, bucketOf(ms), 12]
  return { ...report({ good: 40 - errors, failed: errors }), latency,
    routes: [{ route: 'GET /users/:id', errors: 0, latency: [bucketOf(20), 28] }, { route: 'GET /orders/:id', errors,
      latency: [bucketOf(ms), 12] }] }
}

/** Of a program whose requests nobody counts. */
const usage = (cpuPercent: number, mib: number) => ({ intervalMs: 1000, cpuPercent, rssBytes: mib * MIB })

type Reports = (second: number) => object | object[]
type Case = { old?: Reports, new?: Reports, others?: Reports[], seconds?: number, limits?: Partial<Limits> }

/** What is found of workers that report so in each second; every five seconds somebody looks. */
function watch ({ old = SOME, new: fresh = SOME, others = [], seconds = 30, limits }: Case) {
  let now = 0
  const judge = createJudge({ now: () => now })
  const workers = [[OLD, old], ...[fresh, ...others].map((each, index) => [NEW + index, each])] as [number, Reports][]
  let verdict = null
  for (let second = 0; second < seconds && verdict?.passed !== false; second++) {
    now = second * 1000
    for (const [id, reports] of workers) for (const each of [reports(second)].flat()) judge.accept(id, each)
    if ((second + 1) % 5 === 0 || second === seconds - 1)
      verdict = judge.judge({ canary: workers.slice(1).map(([id]) => id), baseline: [OLD], isFinal: true,
        limits: { ...LIMITS, ...limits } })
  }
  assert.ok(verdict)
  return { ...verdict, seconds: now / 1000 + 1 }
}

const always = (answers: Answers) => () => report(answers)
const SOME = always({ good: 40, ms: 20 })
const SLOW = always({ good: 40, ms: 900 })
const NONE = always({})
const before = (end: number, then: Answers = {}): Reports => (second) =>
  report(second < end ? { good: 40, ms: 20 } : then)
const OUTAGE = before(3, { failed: 40 })
const CALM = () => usage(10, 40)
const slowFor = (coldS: number): Reports => (second) => report({ good: 40, ms: second < coldS ? 900 : 20 })
const mixed = (slow: number): Reports => () => [report({ good: 80 - slow, ms: 20 }), report({ good: slow, ms: 200 })]

const CASES: Record<string, Case> = { 'as good as the old ones': {},
  'too few requests': { new: (second) => report({ good: second < 49 ? 1 : 0 }) },
  'too few after warm-up': { new: always({ good: 4, ms: 900 }) },
  'errors within the limit': { new: always({ good: 38, failed: 2 }) },
  'errors beyond it, but too few answers to be sure': {
    new: (second) => report(second < 2 ? { good: 25, failed: 5 } : {})
  }, 'errors beyond it': { new: always({ good: 36, failed: 4 }) },
  'errors alone, from the first answer on': { new: always({ failed: 40 }) },
  'errors that the old ones have as well': { new: always({ good: 28, failed: 12 }),
    old: always({ good: 29, failed: 11 }) }, 'fewer errors than before': { old: always({ good: 20, failed: 20 }) },
  'errors beside old workers that had no traffic': { new: always({ good: 32, failed: 8 }), old: NONE },
  'errors once no old worker answers any more, which may be what all of them need': { old: before(10),
    new: before(11, { failed: 40 }), seconds: 20 },
  'errors at first that have ended': { seconds: 10,
    new: (second) => report(second < 3 ? { failed: 40 } : { good: 60 }) },
  'errors of all of them for a while, just as the new ones came': { old: OUTAGE,
    new: (second) => second > 1 ? OUTAGE(second) : report({}) },
  'slower within the ratio': { new: always({ good: 40, ms: 160 }), old: always({ good: 40, ms: 60 }) },
  'slower beyond it': { new: always({ good: 40, ms: 200 }), old: always({ good: 40, ms: 60 }) },
  'slower by a ratio, but by too little to matter': { new: always({ good: 40, ms: 45 }),
    old: always({ good: 40, ms: 1 }) }, 'slow beside old workers that had no traffic': { new: SLOW, old: NONE },
  'slow, with more to do than they can': { new: always({ good: 60, ms: 900, busy: 0.95 }),
    old: always({ good: 40, busy: 0.6 }) }, 'slow in three stretches after warm-up': { new: SLOW },
  'slow in three stretches after a short warm-up': { new: SLOW, limits: { warmupMs: 1000 }, seconds: 10 },
  'slow for too short a time to be sure': { new: SLOW, seconds: 15 },
  'slow for its first 5 seconds': { new: slowFor(5), seconds: 60 },
  'slow for its first 14 seconds': { new: slowFor(14), seconds: 60 },
  'slow in a few of its answers': { new: mixed(1), old: always({ good: 80, ms: 20 }) },
  'slow in a tenth of its answers': { new: mixed(9), old: always({ good: 80, ms: 20 }) },
  'slow in one of three workers': { new: SLOW, others: [SOME, SOME] },
  'slow in two of three workers': { new: SLOW, others: [SLOW, SOME] },
  'slow on one route': { new: () => routed({ ms: 900 }), old: () => routed({ ms: 20 }) },
  'errors on one route': { new: () => routed({ ms: 20, errors: 8 }), old: () => routed({ ms: 20 }) },
  'uncounted requests: as good as the old ones': { new: () => usage(12, 45), old: CALM, seconds: 40 },
  'uncounted requests: much more CPU': { new: () => usage(80, 40), old: CALM, seconds: 40 },
  'uncounted requests: much more memory': { new: () => usage(10, 400), old: CALM, seconds: 40 },
  'uncounted requests: more at first': { new: (second) => usage(100 * 0.9 ** second, 40), old: CALM, seconds: 40 },
  'uncounted requests: three times as much of little': { new: () => usage(29, 99), old: CALM, seconds: 40 },
  'uncounted requests: too short a time': { new: () => usage(90, 1), old: CALM, seconds: 5 } }

testStates(import.meta, 'verdicts', CASES, (each) => {
  const { passed, seconds, message, warning, decided } = watch(each)
  const outcome = { true: 'passed', false: 'failed', null: 'not sure' }[String(passed)]
  return [`${outcome} after ${seconds} s: ${message}`, ...decided ? [JSON.stringify(decided)] : [],
    ...warning ? [`warning: ${warning}`] : []].join('\n')
})

test('a judge adds up what each side has reported since the comparison began; who aborted is not counted', () => {
  const judge = createJudge({ now: () => 0 })
  judge.accept(9, report({ failed: 1000 }))
  judge.begin()
  judge.accept(1, report({ good: 90, failed: 10, ms: 10 }))
  judge.accept(1, report({ good: 100, aborted: 50, ms: 10 }))
  judge.accept(2, report({ good: 50, ms: 1000 }))
  judge.accept(9, report({ good: 60, failed: 40, ms: 5 }))
  const limits = { ...LIMITS, warmupMs: 0, minRequests: 20 }
  const verdict = judge.judge({ canary: [9], baseline: [1, 2, 3], isFinal: true, limits })
  assert.deepEqual([verdict.canary, verdict.baseline.requests, verdict.baseline.workers, verdict.baseline.errorRate], [{
    workers: 1,
    requests: 100,
    errorRate: 0.4,
    p50Ms: null,
    p99Ms: null
  }, 250, 3, 0.04])
  assert.deepEqual([verdict.passed, verdict.isFinal, verdict.at], [false, true, '1970-01-01T00:00:00.000Z'])
  // The first answers of each do not count for latency, the second report of worker 1 does.
  assert.ok(Math.abs(Number(verdict.baseline.p99Ms) - 10) < 0.5)
  // An old worker that is gone by now was one all the same.
  assert.deepEqual(judge.judge({ canary: [9], baseline: [2], isFinal: true, limits }).baseline, verdict.baseline)
  judge.begin()
  assert.equal(judge.judge({ canary: [9], baseline: [], isFinal: true, limits }).baseline.workers, 0)
  assert.throws(() => judge.accept(1, { statuses: 'x' }), TypeError)
})

// All 10,000: npm run judge.
for (const [run, deploys, ofEach] of [[test, 200, 20], [rareTest, 1000, 60]] as const) {
  run(
    `of ${deploys} deploys of the same code none is rolled back, and of ${ofEach} that are worse for good, of each kind, nine in ten are found`,
    (t) => {
      assert.deepEqual(listRolledBack({ from: 1, count: deploys }), [])
      for (const { name, found, tried } of countFound({ count: ofEach })) {
        t.diagnostic(`${name}: ${found} of ${tried} found`)
        assert.ok(found >= 0.9 * tried, `${name}: ${found} of ${tried}`)
      }
    }
  )
}
