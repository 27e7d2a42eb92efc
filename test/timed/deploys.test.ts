import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { startReady } from '../support/deck.ts'
import { app, serving, underLoad } from '../support/deploys.ts'
import { rareTest } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'
import type { StrategyWish } from '../../server/lifecycle/rollout/strategy.ts'

const GOOD = app('setTimeout(() => response.end(\'good\'), 2)')
const CANARY = Object.freeze({ canary: { workers: 1, durationMs: 2500 }, limits: { minRequests: 20, p99Ratio: 10 } })
/** One in five of fewer answers than about 100 can be chance. */
const LONG_CANARY = Object.freeze({ canary: { workers: 1, durationMs: 6000 }, limits: CANARY.limits })
/** Latency is compared after warm-up. */
const LONGER_CANARY = Object.freeze({ canary: { workers: 1, durationMs: 7000 },
  limits: { ...CANARY.limits, warmupMs: 500 } })

/**
 * Releases that should not come through: the source, the strategy that finds it out, the outcome with its reason, and
 * the failures that its own answers account for.
 */
const BAD: { name: string, source: string, strategy?: StrategyWish, state: string, reason: RegExp, own?: RegExp }[] = [{
  name: 'throws at load',
  source: app('response.end(\'never\')', 'throw new Error(\'broken\')'),
  state: 'failed',
  reason: /exited with code 1 before it was ready: Error: broken/
}, { name: 'exits with 0 at once', source: 'process.exit(0)', state: 'failed',
  reason: /exited with code 0 before it was ready/ }, { name: 'never ready', source: 'setInterval(() => {}, 1000)',
  strategy: { limits: { readyTimeoutMs: 500 } }, state: 'failed',
  reason: /was not ready within 500 ms \(option rollout\.limits\.readyTimeoutMs\)/ }, { name: 'crashes under traffic',
  source: app('if (Math.random() < 0.2) throw new Error(\'sometimes\'); response.end(\'ok\')'),
  strategy: { minReadyMs: 2000 }, state: 'failed', reason: /sometimes/, own: /^status 500$/ }, {
  name: 'answers one in five with 500',
  source: app('response.statusCode = Math.random() < 0.2 ? 500 : 200; response.end(\'ok\')'),
  strategy: LONG_CANARY,
  state: 'failed',
  reason: /of the new workers' responses are 5xx, old workers: 0\.0%/,
  own: /^status 500$/
}, { name: 'ten times slower', source: app('setTimeout(() => response.end(\'slow\'), 500)'), strategy: LONGER_CANARY,
  state: 'failed',
  reason:
    /the new workers' p\d\d latency after warm-up is [\d.]+ ms, old workers: [\d.]+ ms; mostly GET \/: p99 [\d.]+ ms, old workers: [\d.]+ ms \(option rollout\.limits\.(?:p99Ratio: 10|slowerMs: \d+)\)/ }]

async function startGood (t: TestContext) {
  const releases = await createReleases('answers-with-pid.js')
  await releases.add('good', GOOD)
  // The clients have no CPU for a while, and a connection on which they are late was not closed meanwhile.
  const deck = await startReady(t, releases.entry, { workers: 2,
    flags: ['--drain-idle-grace-ms', '20000', '--rollout-guard-ms', '0'] })
  return { releases, deck, url: await deck.appUrl() }
}

async function assertRefused (t: TestContext, { releases, deck, url }: Awaited<ReturnType<typeof startGood>>,
  bad: typeof BAD)
{
  for (const { name, source, strategy, state, reason, own = /^nothing$/ } of bad) {
    await releases.add(name.replaceAll(' ', '-'), source)
    const before = await serving(deck)
    const { ended, failures, total } = await underLoad(t, url, () => deck.rollout({ kind: 'deploy', strategy }))
    assert.deepEqual([ended.state, ended.done], [state, true], `${name}: ${ended.reason}`)
    assert.match(String(ended.reason), reason, name)
    assert.deepEqual(failures.filter((failure) => !own.test(failure)), [],
      `${name}: ${failures.length} of ${total} failed`)
    const { release, rollout } = await deck.status()
    assert.deepEqual([await serving(deck), release.id, rollout], [before, 'r1', null],
      `${name}: the old workers are as they were`)
    t.diagnostic(`${name}: ${ended.state}, ${failures.length} of ${total} by its own answers: ${ended.reason}`)
  }
}

// What a strategy waits for is mostly time, which the two clusters can spend at once.
describe('deploys under load', { concurrency: 2 }, () => {
  const [first, ...others] = BAD

  rareTest('bad releases do not come through, and no request fails but by their own answers',
    async (t) => assertRefused(t, await startGood(t), others))

  test('a good release comes through after a bad one, and so does the way back, and no request fails', async (t) => {
    const good = await startGood(t)
    const { releases, deck, url } = good
    await assertRefused(t, good, [first])
    await releases.add('better', app('setTimeout(() => response.end(\'better\'), 2)'))
    const { ended, failures, total } = await underLoad(t, url,
      () => deck.rollout({ kind: 'deploy', strategy: { ...CANARY, minReadyMs: 200 } }))
    assert.equal(ended.state, 'succeeded', ended.reason ?? undefined)
    assert.deepEqual(failures, [])
    assert.equal(ended.verdicts.at(-1)?.passed, true)
    assert.match(String(ended.verdicts.at(-1)?.message), /fail no more often than the old ones/)
    t.diagnostic(`better: ${total} requests, ${ended.verdicts.at(-1)?.message}`)
    assert.equal(await (await fetch(url)).text(), 'better')

    const back = await underLoad(t, url, () => deck.rollout({ kind: 'rollback' }))
    assert.deepEqual([back.ended.state, back.ended.to, back.failures], ['succeeded', 'r1', []])
    assert.equal(await (await fetch(url)).text(), 'good')
  })
})
