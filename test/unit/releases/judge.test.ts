import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createJudge } from '../../../server/releases/judge.ts'
import { DEFAULT_STRATEGY } from '../../../server/lifecycle/rollout/strategy.ts'
import type { Limits } from '../../../server/api/shapes.ts'
import { bucketOf } from '../../../workers/histogram.ts'
import { countFound, listRolledBack } from '../../support/judged-deploys.ts'
import { rareTest } from '../../support/rare.ts'

const LIMITS = DEFAULT_STRATEGY.limits
const OLD = 1
const NEW = 9

/** A worker's report of one second: so many good and failed answers, each after so many ms. */
function report (
  { good = 0, failed = 0, aborted = 0, ms = 5, busy = 0 }: { good?: number, failed?: number, aborted?: number,
    ms?: number, busy?: number }
) {
  const numbers = Object.fromEntries(
    ['rssBytes', 'heapUsedBytes', 'heapTotalBytes', 'externalBytes', 'cpuPercent', 'loopDelayP50Ms', 'loopDelayP99Ms',
      'loopDelayMaxMs', 'inFlight', 'openConnections'].map((name) => [name, 0])
  )
  const answered = good + failed
  return { ...numbers, eventLoopUtilization: busy, intervalMs: 1000, statuses: [good, 0, 0, failed, 0, aborted],
    latency: answered ? [bucketOf(ms), answered] : [], latencySumMs: answered * ms }
}

type Answers = (second: number) => Parameters<typeof report>[0]

/** What is found of workers that answer so in each second. `workers`: by id; from NEW on they are new. */
function watch (workers: Record<number, Answers>,
  { seconds = 30, limits = LIMITS }: { seconds?: number, limits?: Limits } = {})
{
  let now = 0
  const judge = createJudge({ now: () => now })
  const ids = Object.keys(workers).map(Number)
  let verdict = null
  for (let second = 0; second < seconds && verdict?.passed !== false; second++) {
    now = second * 1000
    for (const id of ids) judge.accept(id, report(workers[id](second)))
    if ((second + 1) % 5 === 0 || second === seconds - 1)
      verdict = judge.judge({ canary: ids.filter((id) => id >= NEW), baseline: ids.filter((id) => id < NEW),
        isFinal: true, limits })
  }
  assert.ok(verdict)
  return { ...verdict, seconds: now / 1000 + 1 }
}

const always = (answers: Parameters<typeof report>[0]) => () => answers
const SOME = always({ good: 40, ms: 20 })

describe('a judge is shown new workers', () => {
  for (const [name, canary, baseline, passed, message] of [['as good as the old ones', SOME, SOME, true,
    /^the new workers do as well as the old ones: 0\.0% of 1200 responses are 5xx \(old: 0\.0%\), p99 after warm-up 19\.5 ms \(old: 19\.5 ms\)$/],
    ['too few requests', (second: number) => ({ good: second < 49 ? 1 : 0 }), SOME, null,
      /^too few requests to judge the new workers: 30 in 29 s, expected at least 50 \(option rollout\.limits\.minRequests\)$/],
    ['too few after warm-up', always({ good: 4, ms: 900 }), SOME, true,
      /; latency is not compared: 20 answers of the new workers after warm-up, expected at least 50$/], [
    'errors within the limit',
    always({ good: 38, failed: 2 }),
    SOME,
    true,
    /5\.0% of/
  ], ['errors beyond it, but too few answers to be sure', (second: number) => second < 2 ? { good: 25, failed: 5 } : {},
    SOME, null,
    /^too few responses of new and old workers in the same seconds to be sure: 16\.7% of 60 are 5xx, old workers: 0\.0%$/],
    ['errors beyond it', always({ good: 36, failed: 4 }), SOME, false,
      /^10\.0% of the new workers' responses are 5xx, old workers: 0\.0% \(option rollout\.limits\.errorRate: 0\.05\)$/],
    ['errors that the old ones have as well', always({ good: 28, failed: 12 }), always({ good: 29, failed: 11 }), true,
      /30\.0%/], ['fewer errors than before', SOME, always({ good: 20, failed: 20 }), true, /as well/], [
    'slower within the ratio',
    always({ good: 40, ms: 160 }),
    always({ good: 40, ms: 60 }),
    true,
    /p99 after warm-up 155 ms \(old: 58 ms\)/
  ], ['slower beyond it', always({ good: 40, ms: 200 }), always({ good: 40, ms: 60 }), false,
    /^the new workers' p50 latency after warm-up is 195 ms, old workers: 58 ms \(option rollout\.limits\.p99Ratio: 3\)$/],
    ['slower by a ratio, but by too little to matter', always({ good: 40, ms: 45 }), always({ good: 40, ms: 1 }), true,
      /43\.7 ms \(old: /], ['nothing to compare a latency with', always({ good: 40, ms: 900 }), always({}), true,
    /not compared: 0 answers of the old workers after warm-up/], ['errors beside old workers that had no traffic',
    always({ good: 32, failed: 8 }), always({}), false, /20\.0% of/], ['slow, with more to do than they can',
    always({ good: 60, ms: 900, busy: 0.95 }), always({ good: 40, busy: 0.6 }), true,
    /fail no more often than .* latency is not compared: /]] as [string, Answers, Answers, boolean | null, RegExp][])
  {
    test(name, () => {
      const verdict = watch({ [OLD]: baseline, [NEW]: canary })
      assert.equal(verdict.passed, passed, verdict.message)
      assert.match(verdict.message, message)
    })
  }

  test('errors count from the first answer on, latency after warm-up and in three stretches', () => {
    assert.equal(watch({ [OLD]: SOME, [NEW]: always({ failed: 40 }) }).seconds, 5)
    assert.equal(watch({ [OLD]: SOME, [NEW]: always({ good: 40, ms: 900 }) }).seconds, 20)
    assert.equal(
      watch({ [OLD]: SOME, [NEW]: always({ good: 40, ms: 900 }) }, { limits: { ...LIMITS, warmupMs: 1000 },
        seconds: 10 }).seconds,
      10
    )
    for (const coldS of [5, 10, 14]) {
      const verdict = watch({ [OLD]: SOME, [NEW]: (second) => ({ good: 40, ms: second < coldS ? 900 : 20 }) }, {
        seconds: 60
      })
      assert.equal(verdict.passed, true, `${coldS} s: ${verdict.message}`)
    }
  })

  test('new workers that are slow, for too short a time to be sure, do not do as well', () => {
    const verdict = watch({ [OLD]: SOME, [NEW]: always({ good: 40, ms: 900 }) }, { seconds: 15 })
    assert.deepEqual([verdict.passed, verdict.message], [null,
      'too short a time to be sure: the new workers\' p50 latency after warm-up is 875 ms, old workers: 19.5 ms'])
  })

  test('what fails once no old worker answers any more may be what all of them need', () => {
    const until = (end: number, then: object) => (second: number) => second < end ? { good: 40 } : then
    const verdict = watch({ [OLD]: until(10, {}), [NEW]: until(11, { failed: 40 }) }, { seconds: 20 })
    assert.equal(verdict.passed, null)
    assert.match(verdict.message, /^too few responses of new and old workers in the same seconds to be sure: 45\.0%/)
  })

  test('one of several that is slow alone is not the release', () => {
    const slow = always({ good: 40, ms: 900 })
    assert.equal(watch({ [OLD]: SOME, [NEW]: slow, 10: SOME, 11: SOME }).passed, true)
    assert.equal(watch({ [OLD]: SOME, [NEW]: slow, 10: slow, 11: SOME }).passed, false)
  })

  test('errors at first that have ended are told, and undo nothing', () => {
    const verdict = watch({ [OLD]: SOME, [NEW]: (second) => second < 3 ? { failed: 40 } : { good: 60 } }, {
      seconds: 10
    })
    assert.deepEqual([verdict.passed, verdict.warning], [true,
      'new workers answered with 5xx at first, but no longer; with ready.path a worker gets no connection before it can answer'])
  })

  test('what fails for all of them for a while says nothing of the new ones, who came just then', () => {
    const outage = (second: number) => second > 2 ? { failed: 40 } : { good: 40 }
    assert.equal(watch({ [OLD]: outage, [NEW]: (second) => second > 1 ? outage(second) : {} }).passed, true)
  })
})

describe('a judge names the route that got worse', () => {
  const routed = ({ ms, errors = 0 }: { ms: number, errors?: number }) => ({
    ...report({ good: 40 - errors, failed: errors }),
    latency: ms === 20 ? [bucketOf(20), 40] : [bucketOf(20), 28, bucketOf(ms), 12],
    routes: [{ route: 'GET /users/:id', errors: 0, latency: [bucketOf(20), 28] }, { route: 'GET /orders/:id', errors,
      latency: [bucketOf(ms), 12] }]
  })
  for (const [name, fields, message] of [['where it is slower', { ms: 900 },
    /^the new workers' p\d+ latency after warm-up is 875 ms, old workers: 19\.5 ms; mostly GET \/orders\/:id: p99 875 ms, old workers: 19\.5 ms \(option rollout\.limits\.p99Ratio: 3\)$/],
    ['where it fails', { ms: 20, errors: 8 },
      /^20\.0% of the new workers' responses are 5xx, old workers: 0\.0%; mostly GET \/orders\/:id: 66\.7% are 5xx, old workers: 0\.0% \(option/]] as const)
  {
    test(name, () => {
      let now = 0
      const judge = createJudge({ now: () => now })
      let verdict
      for (let second = 0; second < 30 && verdict?.passed !== false; second++) {
        now = second * 1000
        judge.accept(OLD, routed({ ms: 20 }))
        judge.accept(NEW, routed(fields))
        if (second % 5 === 4) verdict = judge.judge({ canary: [NEW], baseline: [OLD], isFinal: true, limits: LIMITS })
      }
      assert.match(verdict?.message ?? '', message)
    })
  }
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

test('a tenth of the answers that are slow make a release slow, a few do not', () => {
  for (const [slow, passed] of [[1, true], [9, false]] as [number, boolean][]) {
    let second = 0
    const judge = createJudge({ now: () => second * 1000 })
    let verdict
    for (; second < 30; second++) {
      judge.accept(OLD, report({ good: 80 }))
      judge.accept(NEW, report({ good: 80 - slow }))
      judge.accept(NEW, report({ good: slow, ms: 200 }))
      verdict = judge.judge({ canary: [NEW], baseline: [OLD], isFinal: true, limits: LIMITS })
    }
    assert.equal(verdict?.passed, passed, verdict?.message)
    if (!passed) assert.match(String(verdict?.message), /p90 latency/)
  }
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

describe('a judge is shown new workers whose requests nobody counts', () => {
  const MIB = 1024 ** 2
  for (const [name, canary, passed, message] of [['as good as the old ones',
    () => ({ cpuPercent: 12, rssBytes: 45 * MIB }), true,
    /^the new workers take no more than the old ones: CPU 12\.0% \(old: 10\.0%\), memory 45\.0 MB \(old: 40\.0 MB\); nobody counts the requests of this program$/],
    ['that take much more CPU', () => ({ cpuPercent: 80, rssBytes: 40 * MIB }), false,
      /^each new worker takes much more than an old one: CPU 80\.0% \(old: 10\.0%\) \(option rollout\.limits\.p99Ratio: 3\)$/],
    ['that take much more memory', () => ({ cpuPercent: 10, rssBytes: 400 * MIB }), false,
      /memory 400 MB \(old: 40\.0 MB\)/], ['that take more at first',
    (second) => ({ cpuPercent: 100 * 0.9 ** second, rssBytes: 40 * MIB }), true, /no more/], [
    'that take three times as much of little',
    () => ({ cpuPercent: 29, rssBytes: 99 * MIB }),
    true,
    /no more/
  ]] as [string, (second: number) => { cpuPercent: number, rssBytes: number }, boolean | null, RegExp][]) {
    test(name, () => {
      const verdict = watchUsage({ canary, seconds: 40 })
      assert.equal(verdict?.passed, passed)
      assert.match(String(verdict?.message), message)
    })
  }

  test('for too short a time', () => {
    const verdict = watchUsage({ canary: () => ({ cpuPercent: 90, rssBytes: MIB }), seconds: 5 })
    assert.equal(verdict?.passed, null)
    assert.match(String(verdict?.message),
      /^the new workers have run for too short a time to compare their CPU and memory/)
  })

  /** `how`: the old worker takes 10 % of a CPU and 40 MiB */
  function watchUsage ({ canary, seconds }: { canary: (second: number) => object, seconds: number }) {
    let now = 0
    const judge = createJudge({ now: () => now })
    let verdict = null
    for (let second = 0; second < seconds && verdict?.passed !== false; second++) {
      now = second * 1000
      judge.accept(OLD, { intervalMs: 1000, cpuPercent: 10, rssBytes: 40 * MIB })
      judge.accept(NEW, { intervalMs: 1000, ...canary(second) })
      if ((second + 1) % 5 === 0)
        verdict = judge.judge({ canary: [NEW], baseline: [OLD], isFinal: true, limits: LIMITS })
    }
    return verdict
  }
})
