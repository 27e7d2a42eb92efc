import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createJudge, verdictOn } from '../../../server/releases/judge.js'
import { bucketOf } from '../../../workers/histogram.js'

const LIMITS = Object.freeze({ crashes: 0, errorRate: 0.05, p99Ratio: 3, minRequests: 50 })
const figures = (/** @type {any} */ changes = {}) => ({ workers: 1, requests: 1000, errorRate: 0, p99Ms: 20, ...changes })

/** A worker's report of one second: so many good and failed answers, each after so many ms. */
function report (/** @type {{ good?: number, failed?: number, aborted?: number, ms?: number }} */ { good = 0, failed = 0, aborted = 0, ms = 5 }) {
  const numbers = Object.fromEntries(['rssBytes', 'heapUsedBytes', 'heapTotalBytes', 'externalBytes', 'cpuPercent', 'eventLoopUtilization', 'loopDelayP50Ms', 'loopDelayP99Ms', 'loopDelayMaxMs', 'inFlight', 'openConnections'].map((name) => [name, 0]))
  const answered = good + failed
  return { ...numbers, intervalMs: 1000, statuses: [good, 0, 0, failed, 0, aborted], latency: answered ? [bucketOf(ms), answered] : [], latencySumMs: answered * ms }
}

for (const [name, fresh, old, passed, message] of /** @type {[string, any, any, boolean | null, RegExp][]} */ ([
  ['as good as the old ones', {}, {}, true, /do as well as the old ones: 0\.0% of 1000 responses are 5xx \(old: 0\.0%\), p99 20 ms \(old: 20 ms\)/],
  ['too few requests', { requests: 49 }, {}, null, /too few requests to judge the new workers: 49, expected at least 50/],
  ['exactly as many as needed', { requests: 50 }, {}, true, /as well/],
  ['errors within the limit', { errorRate: 0.05 }, {}, true, /5\.0% of/],
  ['errors beyond it', { errorRate: 0.051 }, {}, false, /^5\.1% of the new workers' responses are 5xx, old workers: 0\.0% \(option rollout\.limits\.errorRate: 0\.05\)$/],
  ['errors that the old ones have as well', { errorRate: 0.3 }, { errorRate: 0.28 }, true, /30\.0%/],
  ['fewer errors than before', { errorRate: 0 }, { errorRate: 0.5 }, true, /as well/],
  ['slower within the ratio', { p99Ms: 60 }, {}, true, /p99 60 ms \(old: 20 ms\)/],
  ['slower beyond it', { p99Ms: 61 }, {}, false, /^the new workers' p99 latency is 61 ms, old workers: 20 ms \(option rollout\.limits\.p99Ratio: 3\)$/],
  ['slower by a ratio, but by too little to matter', { p99Ms: 9 }, { p99Ms: 1 }, true, /9 ms \(old: 1 ms\)/],
  ['nothing to compare a latency with', { p99Ms: 900 }, { requests: 49, errorRate: null, p99Ms: null }, true, /as well/],
  ['errors beside old workers that had no traffic', { errorRate: 0.2 }, { requests: 0, errorRate: null, p99Ms: null }, false, /20\.0% of/]
])) {
  test(`a judge is shown new workers: ${name}`, () => {
    const sides = { fresh: figures(fresh), old: figures(old) }
    const verdict = verdictOn({ ...sides, slowest: { quantile: 0.99, freshMs: sides.fresh.p99Ms, oldMs: sides.old.p99Ms } }, LIMITS)
    assert.equal(verdict.passed, passed)
    assert.match(verdict.message, message)
  })
}

test('a judge adds up what each side has reported since the comparison began; who aborted is not counted', () => {
  const judge = createJudge({ now: () => 0 })
  judge.accept(9, report({ failed: 1000 }))
  judge.begin()
  judge.accept(1, report({ good: 90, failed: 10, ms: 10 }))
  judge.accept(1, report({ good: 100, aborted: 50, ms: 10 }))
  judge.accept(2, report({ good: 50, ms: 1000 }))
  judge.accept(9, report({ good: 60, failed: 40, ms: 5 }))
  const verdict = judge.judge({ fresh: [9], old: [1, 2, 3], isFinal: true, limits: LIMITS })
  assert.deepEqual([verdict.fresh, verdict.old.requests, verdict.old.workers, verdict.old.errorRate], [{ workers: 1, requests: 100, errorRate: 0.4, p99Ms: verdict.fresh.p99Ms }, 250, 3, 0.04])
  assert.ok(Math.abs(Number(verdict.old.p99Ms) - 1000) < 40 && Math.abs(Number(verdict.fresh.p99Ms) - 5) < 0.3)
  assert.deepEqual([verdict.passed, verdict.isFinal, verdict.at], [false, true, '1970-01-01T00:00:00.000Z'])
  // An old worker that is gone by now was one all the same.
  assert.deepEqual(judge.judge({ fresh: [9], old: [2], isFinal: true, limits: LIMITS }).old, verdict.old)
  judge.begin()
  assert.equal(judge.judge({ fresh: [9], old: [], isFinal: true, limits: LIMITS }).old.workers, 0)
  assert.throws(() => judge.accept(1, { statuses: 'x' }), TypeError)
})

test('a few slow answers among few do not make a release slow, but many do', () => {
  for (const [slow, passed, name] of /** @type {[number, boolean, string][]} */ ([[4, true, 'p93'], [8, false, 'p93']])) {
    const judge = createJudge({ now: () => 0 })
    judge.accept(1, report({ good: 5000, ms: 5 }))
    judge.accept(9, report({ good: 80 - slow, ms: 5 }))
    judge.accept(9, report({ good: slow, ms: 200 }))
    const verdict = judge.judge({ fresh: [9], old: [1], isFinal: true, limits: LIMITS })
    assert.deepEqual([verdict.passed, Math.round(Number(verdict.fresh.p99Ms) / 20)], [passed, 10])
    assert.ok(verdict.message.includes(`${name} `), verdict.message)
  }
})
