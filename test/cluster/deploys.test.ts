import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { startDeck } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { app, deploy, end, pick, releasesOf, start, steer, underLoad } from '../support/deploys.ts'
import { tempFolder } from '../support/folder.ts'
import { openFreshConnections } from '../support/load.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'
import type { Rollout } from '../../server/api/rollouts.ts'

describe('deploys', { concurrency: 2 }, () => {
  test('paused, resumed, promoted and aborted at every step, scaled meanwhile: no request fails', async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    // The clients share this process with the master. A shorter idle grace than the default one could pass while the
    // process has no CPU: a client then asks on a connection that was cut meanwhile, before it reads that.
    const deck = await startDeckHere(t, releases.entry, { workers: 2 })
    await deck.until({ ready: 2 })
    const url = await deck.appUrl()
    await releases.add('second', app('response.end(\'next\')'))
    const { failures } = await underLoad(t, url, async () => {
      const until = (id: number, isSo: (rollout: Rollout) => boolean) =>
        deck.untilEvent(
          ({ type, rollout, detail }) =>
            type.startsWith('rollout.') && rollout === id && isSo(detail as unknown as Rollout),
          'the next step'
        )

      // In the canary's time.
      const first = await start(deck, { strategy: { canary: { workers: 1, durationMs: 60_000 } } })
      await until(first.id, ({ canaryEndsAt }) => canaryEndsAt !== null)
      await steer(deck, first, 'pause')
      assert.equal((await steer(deck, first, 'pause')).code, 'rollout-state')
      assert.equal((await deck.status()).workers.length, 3, 'the canary serves beside the old workers')
      await steer(deck, first, 'abort')
      assert.deepEqual(pick(await end(deck, first)), ['rolled-back', 'aborted by the owner\'s token'])

      // In the middle, with one of two replaced.
      const second = await start(deck, { strategy: { minReadyMs: 2000 } })
      await until(second.id, ({ progress, steps }) => progress.replaced === 1 && steps[1].state === 'soaking')
      await steer(deck, second, 'pause')
      await deck.api('/scale', { method: 'PUT', body: '{"workers":4}' })
      await steer(deck, second, 'resume')
      await steer(deck, second, 'abort')
      assert.deepEqual(pick(await end(deck, second)), ['rolled-back', 'aborted by the owner\'s token'])
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
    }, { connections: 8, perSecond: 50 })
    assert.deepEqual(failures, [])
    assert.equal((await releasesOf(deck)).length, 1)
    assert.equal(await (await fetch(url)).text(), 'next')
  })

  rareTest('deploy --wait exits with 0 for a success alone', async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    const deck = await startDeckHere(t, releases.entry)
    await deck.until({ ready: 2 })
    const cli = (...words: string[]) => runCliHere([...words, '--data-dir', deck.folder])
    const outcomes = []
    for (const [name, source, flags] of [['broken', 'throw new Error("broken")', []], ['held',
      'throw new Error("held")', ['--on-failure', 'hold']], ['good', app('response.end(\'good\')'), ['--canary', '1',
      '--canary-time', '1s', '--surge', '2', '--min-ready', '100ms']]] as [string, string, string[]][])
    {
      await releases.add(name, source)
      const { code, stdout, stderr } = await cli('deploy', '--wait', ...flags)
      outcomes.push([name, code, stdout.includes('succeeded'), /Error: (broken|held)/.exec(stderr)?.[1]])
      if (name === 'held') assert.equal((await cli('abort', '--wait')).code, 0)
    }
    assert.deepEqual(outcomes, [['broken', 1, false, 'broken'], ['held', 1, false, 'held'], ['good', 0, true,
      undefined]])
    assert.match((await cli('releases')).stdout, /^r4 +succeeded +yes .*\nr3 +rolled-back .*\nr2 +failed /m)
    assert.equal((await cli('rollback', '--wait', '--timeout', '1ms')).code, 124)
  })

  for (const [name, isOutage] of [['rolled back by itself, once the one before does better', false], [
    'left where the one before does no better',
    true
  ]] as const) {
    test(`a release that answers nothing but 5xx is ${name}`, { skip: isOutage && rareOnly }, async (t) => {
      const fault = path.join(tempFolder(), 'fault')
      const releases = await createReleases('answers-with-pid.js')
      const deck = await startDeckHere(t, releases.entry, { workers: 2 })
      await deck.until({ ready: 2 })
      await releases.add('good',
        app(`response.statusCode = existsSync(${JSON.stringify(fault)}) ? 500 : 200; response.end()`,
          'import { existsSync } from \'node:fs\''))
      await deploy(deck)
      const ask = async () => {
        const load = openFreshConnections(t, await deck.appUrl(), { perSecond: 50 })
        await load.untilAnswered(30)
        return load
      }
      await (await ask()).stop()
      await releases.add('broken', app('response.statusCode = 500; response.end()'))
      // However long it takes, nobody asks the new workers meanwhile.
      const { verdicts } = await deploy(deck)
      const load = await ask()
      assert.match(verdicts[0].message, /^too few requests to judge the new workers: \d+ in /)
      if (isOutage) await writeFile(fault, '')
      const over = await deck.untilEvent(
        ({ type, actor }) => actor === 'guard' && ['rollout.succeeded', 'rollout.failed'].includes(type),
        'the guard'
      )
      assert.equal(over.type, isOutage ? 'rollout.failed' : 'rollout.succeeded')
      assert.match(String(over.detail?.note),
        /^r3 answered (\d+) of \1 requests by 5xx after rollout 2, r2 0 of \d+ requests/)
      assert.deepEqual(await releasesOf(deck), [isOutage ? 'r3' : 'r2'])
      await load.stop()
    })
  }

  for (const whom of ['its master', 'the next master']) {
    test(`a release that loops in crashes after its deploy is rolled back by itself, once, by ${whom}`, {
      skip: whom === 'the next master' && rareOnly
    }, async (t) => {
      const releases = await createReleases('answers-with-pid.js')
      const begin = whom === 'its master' ? startDeckHere : startDeck
      const deck = await begin(t, releases.entry, { workers: 1,
        flags: ['--restart-min-delay-ms', '1', '--restart-intensity-restarts', '2'] })
      await deck.until({ ready: 1 })
      const fault = path.join(tempFolder(), 'fault')
      await releases.add('late',
        app('response.end(\'late\')',
          `import { existsSync } from 'node:fs'\nsetInterval(() => { if (existsSync(${
            JSON.stringify(fault)
          })) throw new Error('too late') }, 20)`))
      assert.equal((await deploy(deck)).state, 'succeeded')
      if ('loseMaster' in deck) await deck.loseMaster()
      await deck.until({ ready: 1 })
      await writeFile(fault, '')
      const back = await deck.untilEvent(
        ({ type, detail }) => type === 'rollout.succeeded' && detail?.kind === 'rollback',
        'the rollback'
      )
      assert.deepEqual([back.actor, back.detail?.from, back.detail?.to], ['guard', 'r2', 'r1'])
      assert.match(String(back.detail?.note), /^r2 kept crashing after rollout 1$/)
      assert.deepEqual(await releasesOf(deck), ['r1'])
    })
  }
})
