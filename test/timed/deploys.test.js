import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runCli, startDeck } from '../support/deck.js'
import { tempFolder } from '../support/folder.js'
import { hammer, openFreshConnections } from '../support/load.js'
import { createReleases } from '../support/releases.js'

/** @param {string} body what it answers a request with @param {string} [atLoad] */
function app (body, atLoad = '') {
  return `import http from 'node:http'
${atLoad}
http.createServer((request, response) => { ${body} }).listen(Number(process.env.PORT ?? 0))
`
}

const GOOD = app("setTimeout(() => response.end('good'), 2)")
const CANARY = Object.freeze({ canary: { workers: 1, durationMs: 2500 }, limits: { minRequests: 20, p99Ratio: 10 } })

/**
 * Releases that should not come through: the source, the strategy that finds it out, the outcome with its reason, and the
 * failures that its own answers account for.
 * @type {{ name: string, source: string, strategy?: any, state: string, reason: RegExp, own?: RegExp }[]}
 */
const BAD = [
  { name: 'throws at load', source: app("response.end('never')", "throw new Error('broken')"), state: 'failed', reason: /exited with code 1 before it was ready: Error: broken/ },
  { name: 'exits with 0 at once', source: 'process.exit(0)', state: 'failed', reason: /exited with code 0 before it was ready/ },
  { name: 'never ready', source: 'setInterval(() => {}, 1000)', strategy: { limits: { readyTimeoutMs: 500 } }, state: 'failed', reason: /was not ready within 500 ms \(option rollout\.limits\.readyTimeoutMs\)/ },
  { name: 'crashes under traffic', source: app("if (Math.random() < 0.2) throw new Error('sometimes'); response.end('ok')"), strategy: { minReadyMs: 2000 }, state: 'failed', reason: /sometimes/, own: /^status 500$/ },
  { name: 'answers one in five with 500', source: app("response.statusCode = Math.random() < 0.2 ? 500 : 200; response.end('ok')"), strategy: CANARY, state: 'failed', reason: /of the new workers' responses are 5xx, old workers: 0\.0%/, own: /^status 500$/ },
  { name: 'ten times slower', source: app("setTimeout(() => response.end('slow'), 500)"), strategy: CANARY, state: 'failed', reason: /the new workers' p\d\d latency is [\d.]+ ms, old workers: [\d.]+ ms \(option rollout\.limits\.p99Ratio: 10\)/ }
]

describe('deploys under load', () => {
  test('a good release comes through, bad ones do not, and no request fails but by their own answers', async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    await releases.add('good', GOOD)
    const deck = await startDeck(t, releases.entry, { workers: 2, flags: ['--drain-idle-grace-ms', '1000', '--rollout-guard-ms', '0'] })
    await deck.until({ ready: 2 })
    const url = await deck.appUrl()

    for (const { name, source, strategy, state, reason, own = /^nothing$/ } of BAD) {
      await releases.add(name.replaceAll(' ', '-'), source)
      const before = await serving(deck)
      const { ended, failures, total } = await underLoad(url, () => deploy(deck, strategy))
      assert.deepEqual([ended.state, ended.done], [state, true], `${name}: ${ended.reason}`)
      assert.match(String(ended.reason), reason, name)
      assert.deepEqual(failures.filter((failure) => !own.test(failure)), [], `${name}: ${failures.length} of ${total} failed`)
      const { release, rollout } = await deck.status()
      assert.deepEqual([await serving(deck), release.id, rollout], [before, 'r1', null], `${name}: the old workers are as they were`)
      t.diagnostic(`${name}: ${ended.state}, ${failures.length} of ${total} by its own answers: ${ended.reason}`)
    }

    await releases.add('better', app("setTimeout(() => response.end('better'), 2)"))
    const { ended, failures, total } = await underLoad(url, () => deploy(deck, { ...CANARY, minReadyMs: 200 }))
    assert.equal(ended.state, 'succeeded', ended.reason)
    assert.deepEqual(failures, [])
    assert.equal(ended.verdicts.at(-1).passed, true)
    assert.match(ended.verdicts.at(-1).message, /do as well as the old ones/)
    t.diagnostic(`better: ${total} requests, ${ended.verdicts.at(-1).message}`)
    assert.equal(await (await fetch(url)).text(), 'better')

    const back = await underLoad(url, () => roll(deck, { kind: 'rollback' }))
    assert.deepEqual([back.ended.state, back.ended.to, back.failures], ['succeeded', 'r1', []])
    assert.equal(await (await fetch(url)).text(), 'good')
  })

  test('paused, resumed, promoted and aborted at every step, scaled meanwhile: no request fails', async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    const deck = await startDeck(t, releases.entry, { workers: 2, flags: ['--drain-idle-grace-ms', '1000'] })
    await deck.until({ ready: 2 })
    const url = await deck.appUrl()
    await releases.add('second', app("response.end('next')"))
    const { failures } = await underLoad(url, async () => {
      const until = (/** @type {any} */ id, /** @type {(rollout: any) => boolean} */ isSo) => deck.untilEvent(({ type, rollout, detail }) => type.startsWith('rollout.') && rollout === id && isSo(detail), 'the next step')

      // In the canary's time.
      const first = await start(deck, { strategy: CANARY })
      await until(first.id, ({ canaryEndsAt }) => canaryEndsAt !== null)
      await steer(deck, first, 'pause')
      assert.equal((await steer(deck, first, 'pause')).code, 'rollout-state')
      assert.equal((await deck.status()).workers.length, 3, 'the canary serves beside the old workers')
      await steer(deck, first, 'abort')
      assert.deepEqual(pick(await end(deck, first)), ['rolled-back', 'aborted by api'])

      // In the middle, with one of two replaced.
      const second = await start(deck, { strategy: { minReadyMs: 1000 } })
      await until(second.id, ({ progress, steps }) => progress.replaced === 1 && steps[1].state === 'soaking')
      await steer(deck, second, 'pause')
      await deck.api('/scale', { method: 'PUT', body: '{"workers":4}' })
      await steer(deck, second, 'resume')
      await steer(deck, second, 'abort')
      assert.deepEqual(pick(await end(deck, second)), ['rolled-back', 'aborted by api'])
      await deck.until({ ready: 4 })
      assert.deepEqual(await releasesOf(deck), ['r1'])

      // Through to its end, with a person's word instead of the judge's, while the cluster becomes smaller.
      const third = await start(deck, { strategy: { canary: { workers: 2, durationMs: 60_000 } } })
      await until(third.id, ({ canaryEndsAt }) => canaryEndsAt !== null)
      await deck.api('/scale', { method: 'PUT', body: '{"workers":1}' })
      await steer(deck, third, 'promote')
      assert.deepEqual(pick(await end(deck, third)), ['succeeded', null])
      assert.equal((await steer(deck, third, 'abort')).code, 'rollout-ended')
      await deck.api('/scale', { method: 'PUT', body: '{"workers":4}' })
      await deck.until({ ready: 4 })
      return third
    })
    assert.deepEqual(failures, [])
    assert.equal((await releasesOf(deck)).length, 1)
    assert.equal(await (await fetch(url)).text(), 'next')
  })

  test('deploy --wait exits with 0 for a success alone', async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    const deck = await startDeck(t, releases.entry)
    await deck.until({ ready: 2 })
    const cli = (/** @type {string[]} */ ...words) => runCli([...words, '--data-dir', deck.folder])
    const outcomes = []
    for (const [name, source, flags] of /** @type {[string, string, string[]][]} */ ([
      ['broken', 'throw new Error("broken")', []], ['held', 'throw new Error("held")', ['--on-failure', 'hold']], ['good', GOOD, ['--canary', '1', '--canary-time', '1s', '--surge', '2', '--min-ready', '100ms']]
    ])) {
      await releases.add(name, source)
      const { code, stdout, stderr } = await cli('deploy', '--wait', ...flags)
      outcomes.push([name, code, stdout.includes('succeeded'), /Error: (broken|held)/.exec(stderr)?.[1]])
      if (name === 'held') assert.equal((await cli('abort', '--wait')).code, 0)
    }
    assert.deepEqual(outcomes, [['broken', 1, false, 'broken'], ['held', 1, false, 'held'], ['good', 0, true, undefined]])
    assert.match((await cli('releases')).stdout, /^r4 +succeeded +yes .*\nr3 +rolled-back .*\nr2 +failed /m)
    assert.equal((await cli('rollback', '--wait', '--timeout', '1ms')).code, 124)
  })

  for (const whom of ['its master', 'the next master']) {
    test(`a release that loops in crashes after its deploy is rolled back by itself, once, by ${whom}`, async (t) => {
      const releases = await createReleases('answers-with-pid.js')
      const deck = await startDeck(t, releases.entry, { workers: 1, flags: ['--restart-min-delay-ms', '1', '--restart-intensity-restarts', '2'] })
      await deck.until({ ready: 1 })
      const fault = path.join(tempFolder(), 'fault')
      await releases.add('late', app("response.end('late')", `import { existsSync } from 'node:fs'\nsetInterval(() => { if (existsSync(${JSON.stringify(fault)})) throw new Error('too late') }, 20)`))
      assert.equal((await deploy(deck)).state, 'succeeded')
      if (whom === 'the next master') await deck.loseMaster()
      await deck.until({ ready: 1 })
      await writeFile(fault, '')
      const back = await deck.untilEvent(({ type, detail }) => type === 'rollout.succeeded' && detail.kind === 'rollback', 'the rollback')
      assert.deepEqual([back.actor, back.detail.from, back.detail.to], ['guard', 'r2', 'r1'])
      assert.match(back.detail.note, /^r2 crashes again and again after rollout 1$/)
      assert.deepEqual(await releasesOf(deck), ['r1'])
    })
  }
})

/**
 * @template T @param {string} url @param {() => Promise<T>} work
 * @returns {Promise<{ ended: T, failures: string[], total: number }>}
 */
async function underLoad (url, work) {
  const keptAlive = hammer(url)
  const fresh = openFreshConnections(url, { perSecond: 100 })
  await fresh.untilAnswered(20)
  const ended = await work()
  const [kept, opened] = await Promise.all([keptAlive.stop(), fresh.stop()])
  return { ended, failures: [...kept.failures, ...opened.failures], total: kept.total + opened.total }
}

/** @typedef {import('../support/deck.js').Deck} Deck */

/** @param {Deck} deck @returns {Promise<number[]>} ids of those that are ready */
async function serving (deck) {
  return (await deck.status()).workers.filter((/** @type {any} */ { state }) => state === 'ready').map((/** @type {any} */ { id }) => id)
}

/** @param {Deck} deck @returns {Promise<string[]>} what runs in workers that are ready */
async function releasesOf (deck) {
  const ids = await serving(deck)
  return [...new Set((await deck.status()).workers.filter((/** @type {any} */ { id }) => ids.includes(id)).map((/** @type {any} */ { release }) => release))]
}

/** @param {Deck} deck @param {any} [strategy] */
function deploy (deck, strategy) {
  return roll(deck, { kind: 'deploy', ...(strategy && { strategy }) })
}

/** @param {Deck} deck @param {any} body */
async function roll (deck, body) {
  return end(deck, await start(deck, body))
}

/** @param {Deck} deck @param {any} body */
async function start (deck, body) {
  const { status, body: started } = await deck.api('/rollouts', { method: 'POST', body: JSON.stringify({ kind: 'deploy', ...body }) })
  assert.equal(status, 202, JSON.stringify(started))
  return started
}

/** @param {Deck} deck @param {{ id: number }} rollout */
async function end (deck, { id }) {
  return (await deck.api(`/rollouts/${id}?wait=60s`)).body
}

/** @param {Deck} deck @param {{ id: number }} rollout @param {string} action */
async function steer (deck, { id }, action) {
  return (await deck.api(`/rollouts/${id}/${action}`, { method: 'POST' })).body
}

/** @param {any} rollout */
function pick ({ state, reason }) {
  return [state, reason]
}
