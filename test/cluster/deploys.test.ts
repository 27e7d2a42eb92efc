import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { describe, test } from 'node:test'
import { startDeck } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { app, pick, releasesOf, steer, throwsOnce, underLoad } from '../support/deploys.ts'
import { tempFolder } from '../support/folder.ts'
import { openFreshConnections } from '../support/load.ts'
import { rareOnly } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'
import type { Rollout } from '../../server/rollouts/api.ts'

describe('deploys', { concurrency: 2 }, () => {
  test('paused, resumed, promoted and aborted at every step, scaled meanwhile: no request fails', async (t) => {
    const releases = await createReleases('answers-with-pid.js')
    // The clients share this process with the master. A shorter idle grace than the default one could pass while the
    // process has no CPU: a client then asks on a connection that was cut meanwhile, before it reads that.
    const deck = await startReadyHere(t, releases.entry, { workers: 2 })
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
      const first = await deck.begin({ kind: 'deploy', strategy: { canary: { workers: 1, durationMs: 60_000 } } })
      await until(first.id, ({ canaryEndsAt }) => canaryEndsAt !== null)
      await steer(deck, first, 'pause')
      assert.equal((await steer(deck, first, 'pause')).code, 'rollout-state')
      assert.equal((await deck.status()).workers.length, 3, 'the canary serves beside the old workers')
      await steer(deck, first, 'abort')
      assert.deepEqual(pick(await deck.rolloutEnd(first)), ['rolled-back', 'aborted by the owner\'s token'])

      // In the middle, with one of two replaced.
      const second = await deck.begin({ kind: 'deploy', strategy: { minReadyMs: 2000 } })
      await until(second.id, ({ progress, steps }) => progress.replaced === 1 && steps[1].state === 'soaking')
      await steer(deck, second, 'pause')
      await deck.put('/scale', { workers: 4 })
      await steer(deck, second, 'resume')
      await steer(deck, second, 'abort')
      assert.deepEqual(pick(await deck.rolloutEnd(second)), ['rolled-back', 'aborted by the owner\'s token'])
      await deck.until({ ready: 4 })
      assert.deepEqual(await releasesOf(deck), ['r1'])

      // Through to its end, with a person's word instead of the judge's, while the cluster becomes smaller.
      const third = await deck.begin({ kind: 'deploy', strategy: { canary: { workers: 2, durationMs: 60_000 } } })
      await until(third.id, ({ canaryEndsAt }) => canaryEndsAt !== null)
      await deck.put('/scale', { workers: 1 })
      await steer(deck, third, 'promote')
      assert.deepEqual(pick(await deck.rolloutEnd(third)), ['succeeded', null])
      assert.equal((await steer(deck, third, 'abort')).code, 'rollout-ended')
      await deck.put('/scale', { workers: 4 })
      await deck.until({ ready: 4 })
      return third
    }, { connections: 8, perSecond: 50 })
    assert.deepEqual(failures, [])
    assert.equal((await releasesOf(deck)).length, 1)
    assert.equal(await (await fetch(url)).text(), 'next')
  })

  for (const [name, isOutage] of [['rolled back by itself, once the one before does better', false], [
    'left where the one before does no better',
    true
  ]] as const) {
    test(`a release that answers nothing but 5xx is ${name}`, { skip: isOutage && rareOnly }, async (t) => {
      const fault = path.join(tempFolder(), 'fault')
      const releases = await createReleases('answers-with-pid.js')
      const deck = await startReadyHere(t, releases.entry, { workers: 2 })
      await releases.add('good',
        app(`response.statusCode = existsSync(${JSON.stringify(fault)}) ? 500 : 200; response.end()`,
          'import { existsSync } from \'node:fs\''))
      await deck.rollout('deploy')
      const ask = async () => {
        const load = openFreshConnections(t, await deck.appUrl(), { perSecond: 50 })
        await load.untilAnswered(30)
        return load
      }
      await (await ask()).stop()
      await releases.add('broken', app('response.statusCode = 500; response.end()'))
      // However long it takes, nobody asks the new workers meanwhile.
      const { verdicts } = await deck.rollout('deploy')
      const load = await ask()
      assert.match(verdicts[0].message, /^too few requests to judge the new workers: \d+ in /)
      if (isOutage) await writeFile(fault, '')
      const over = await deck.untilEvent(['rollout.succeeded', 'rollout.failed'], { actor: 'guard' })
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
      await releases.add('late', app('response.end(\'late\')', throwsOnce(fault)))
      assert.equal((await deck.rollout('deploy')).state, 'succeeded')
      if ('loseMaster' in deck) await deck.loseMaster()
      await deck.until({ ready: 1 })
      await writeFile(fault, '')
      const back = await deck.untilEvent('rollout.succeeded', { detail: { kind: 'rollback' } })
      assert.deepEqual([back.actor, back.detail?.from, back.detail?.to], ['guard', 'r2', 'r1'])
      assert.match(String(back.detail?.note), /^r2 kept crashing after rollout 1$/)
      assert.deepEqual(await releasesOf(deck), ['r1'])
    })
  }
})
