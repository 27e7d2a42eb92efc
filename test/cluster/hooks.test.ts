import assert from 'node:assert/strict'
import { existsSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { runCli, startDeck, startReady } from '../support/deck.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { app, pick, steer } from '../support/deploys.ts'
import { tempFolder } from '../support/folder.ts'
import { isGone } from '../support/is-gone.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'
import { until } from '../support/until.ts'
import type { DeckEvent } from '../../server/events/stream.ts'

type Hook = { command: string[], timeoutMs?: number }

const shell = (script: string) => ({ command: ['sh', '-c', script] })

/** Releases whose hooks can be changed, and write to files of the folder. */
async function withHooks (fixture: string = 'answers-with-pid.js') {
  const releases = await createReleases(fixture)
  const file = path.join(releases.root, 'hooks.json')
  const place = (name: string) => path.join(releases.root, name)
  const site = { ...releases, flags: ['--config', file], place,
    read: (name: string) => existsSync(place(name)) ? readFileSync(place(name), 'utf8') : '',
    configure (hooks: Partial<Record<'beforeStart' | 'beforeDeploy' | 'afterDeploy' | 'onCrash', Hook>>,
      more: Record<string, unknown> = {})
    {
      writeFileSync(file, JSON.stringify({ hooks, ...more }))
    } }
  return site
}

describe('hooks', { concurrency: 3 }, () => {
  test('beforeDeploy runs once before the first fork of a deploy, afterDeploy behind its success; restarts and rollbacks run none', async (t) => {
    const site = await withHooks()
    const note = (name: string) =>
      shell(
        `echo "$CLUSTERDECK_HOOK $CLUSTERDECK_FROM_RELEASE $CLUSTERDECK_RELEASE $CLUSTERDECK_ROLLOUT $COLOUR token:$CLUSTERDECK_TOKEN $PWD" >> ${
          site.place('noted')
        }; echo ${name} was here`
      )
    site.configure({ beforeDeploy: note('before'), afterDeploy: note('after') }, { env: { COLOUR: 'green' } })
    const deck = await startReadyHere(t, site.entry, { workers: 1, flags: site.flags })
    await site.add('second', app('response.end(\'next\')'))
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    const after = await deck.untilEvent('hook.succeeded', { detail: { hook: 'afterDeploy' } })
    assert.equal(after.detail?.output, 'after was here\n')
    const about = `r1 r2 1 green token: ${realpathSync(site.place('second'))}`
    assert.equal(site.read('noted'), `beforeDeploy ${about}\nafterDeploy ${about}\n`)

    const history = (await deck.history('rollout=1&limit=100')).reverse()
    const at = (matches: (event: DeckEvent) => boolean) => history.findIndex(matches)
    const passed = at(({ type, detail }) => type === 'hook.succeeded' && detail?.hook === 'beforeDeploy')
    assert.ok(at(({ type }) => type === 'hook.started') < passed && passed < at(({ type }) => type === 'worker.forked'),
      'it has ended before anything is forked')
    assert.equal(history[passed].release, 'r2')
    assert.ok(Number(history[passed].detail?.durationMs) >= 0)

    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.equal((await deck.rollout({ kind: 'rollback' })).state, 'succeeded')
    assert.equal(site.read('noted').split('\n').length, 3)
  })

  rareTest(
    'beforeStart runs once before the first worker of a start; a next master runs it again only where the one before died during it',
    async (t) => {
      const site = await withHooks()
      site.configure({
        beforeStart: shell(
          `echo "$CLUSTERDECK_HOOK $CLUSTERDECK_RELEASE" >> ${site.place('noted')}; while test -e ${
            site.place('gate')
          }; do sleep 0.02; done; echo passed >> ${site.place('noted')}`
        )
      })
      writeFileSync(site.place('gate'), '')
      const deck = await startDeck(t, site.entry, { flags: site.flags })
      await until(() => site.read('noted') !== '', 'the hook to begin')
      assert.deepEqual((await deck.status()).workers.map(({ state }) => state), ['queued', 'queued'])
      await assert.rejects(deck.rollout('restart'), /hooks\.beforeStart is running/)
      await deck.loseMaster()
      await until(() => site.read('noted').split('\n').length === 3, 'the hook to begin again')
      rmSync(site.place('gate'))
      await deck.until({ ready: 2 })
      await deck.loseMaster()
      await deck.until({ ready: 2 })
      assert.equal(site.read('noted'), 'beforeStart r1\nbeforeStart r1\npassed\n')
      assert.equal((await deck.history('type=hook.started')).length, 2)
    }
  )

  test('beforeStart that fails ends the start with its reason, and no worker is started', async () => {
    const site = await withHooks()
    site.configure({ beforeStart: shell('echo "no such table" >&2; exit 3') })
    const { code, stdout, stderr } = await runCli(['start', site.entry, '--admin-port', '0', '--data-dir', tempFolder(),
      ...site.flags])
    assert.equal(code, 1)
    assert.match(stderr, /clusterdeck: beforeStart exited with code 3 after [\d.]+ m?s: no such table\n/)
    assert.doesNotMatch(stdout, /worker\./)
  })

  test('beforeDeploy that fails fails the deploy with its output, shown safely, and replaces nothing', async (t) => {
    const site = await withHooks()
    site.configure({})
    const deck = await startReadyHere(t, site.entry, { flags: site.flags })
    const before = (await deck.status()).workers.map(({ pid }) => pid)
    // It is read at each deploy.
    site.configure({
      beforeDeploy: shell('printf "migrating\\n"; printf "\\033[31m<b>no table\\033[0m\\007 users\\n" >&2; exit 3')
    })
    const { code, stderr } = await runCliHere(['deploy', '--wait', '--data-dir', deck.folder])
    assert.equal(code, 1)
    assert.match(stderr, / {2}\| migrating\n {2}\| <b>no table users\n/)
    assert.match(stderr,
      /rollout 1 \(deploy\) failed: beforeDeploy exited with code 3 after [\d.]+ m?s: <b>no table users/)
    const failed = await deck.untilEvent('hook.failed')
    assert.deepEqual([failed.code, failed.detail?.output], [3, 'migrating\n<b>no table users\n'])
    const { workers, release } = await deck.status()
    assert.deepEqual([workers.map(({ pid }) => pid), release.id], [before, 'r1'])
    const page =
      await (await fetch(`${deck.adminUrl}/history/${failed.id}`, {
        headers: { authorization: `Bearer ${deck.token}` }
      })).text()
    assert.ok(page.includes('&lt;b&gt;no table users') && !page.includes('<b>no table'))

    site.configure({ beforeDeploy: { command: ['no-such-program-here'] } })
    assert.match(String((await deck.rollout('deploy')).reason),
      /^beforeDeploy could not be started: no-such-program-here in .+ \(ENOENT\)$/)
    site.configure({ beforeDeploy: { ...shell('sleep 100'), timeoutMs: 100 } })
    assert.equal((await deck.rollout('deploy')).reason,
      'beforeDeploy did not end within 100 ms (option hooks.beforeDeploy)')
  })

  rareTest('an abort ends beforeDeploy with all that it has started, and a flood of output harms nobody', async (t) => {
    const site = await withHooks()
    site.configure({
      beforeDeploy: shell(`sleep 1000 & echo $! > ${site.place('pid')}; yes "$(printf '%01000d' 7)" & cat /dev/zero`)
    })
    const deck = await startReadyHere(t, site.entry, { flags: site.flags })
    const rollout = await deck.begin('deploy')
    await until(() => site.read('pid').trim() !== '', 'the hook')
    const { rollout: shown } = await deck.status()
    assert.deepEqual([shown?.state, shown?.hook?.name, shown?.hook?.state], ['preparing', 'beforeDeploy', 'running'])
    const began = performance.now()
    for (let n = 0; n < 20; n++) await deck.status()
    assert.ok(performance.now() - began < 15_000, `20 answers took ${performance.now() - began} ms`)
    await steer(deck, rollout, 'abort')
    assert.deepEqual(pick(await deck.rolloutEnd(rollout)), ['rolled-back', 'aborted by the owner\'s token'])
    const { message, detail } = await deck.untilEvent('hook.failed')
    assert.equal(message, 'beforeDeploy was ended, as the deploy was called off')
    const { length } = present(detail?.output) as string
    assert.ok(length <= 8001, `${length} characters are kept`)
    await until(() => isGone(Number(site.read('pid'))), 'the end of what it has started')
    assert.equal((await deck.status()).readyWorkers, 2)
  })

  test('onCrash hears of a crash, and a crash loop starts it once', async (t) => {
    const site = await withHooks('dies-on-request.cjs')
    writeFileSync(site.place('package.json'), '{}')
    site.configure({
      onCrash: shell(
        `echo "$CLUSTERDECK_CRASH $CLUSTERDECK_CRASH_GROUP $CLUSTERDECK_CRASH_FINGERPRINT $CLUSTERDECK_CRASH_SLOT $CLUSTERDECK_CRASH_CAUSE $CLUSTERDECK_CRASH_MISSED $CLUSTERDECK_RELEASE" >> ${
          site.place('noted')
        }`
      )
    })
    const deck = await startReadyHere(t, site.entry, { workers: 1,
      flags: [...site.flags, '--restart-min-delay-ms', '1'] })
    const url = await deck.appUrl()
    for (let n = 1; n <= 2; n++) {
      await fetch(new URL('/throw-in-timer', url)).catch(() => {})
      await deck.untilEvent('worker.exited', { detail: { crash: n } })
      await deck.until({ ready: 1 })
    }
    await deck.untilEvent('hook.succeeded')
    assert.match(site.read('noted'), /^1 1 v1:[0-9a-f]{32} 1 crash 0 r1\n$/)
    assert.equal((await deck.history('type=hook.started')).length, 1)
  })

  rareTest('a master that dies during beforeDeploy leaves neither a running hook nor an open deploy', async (t) => {
    const site = await withHooks()
    site.configure({ beforeDeploy: shell(`echo $$ > ${site.place('pid')}; exec sleep 1000`) })
    const deck = await startReady(t, site.entry, { flags: site.flags })
    const rollout = await deck.begin('deploy')
    await deck.untilEvent('hook.started')
    await until(() => site.read('pid').trim() !== '', 'the hook')
    await deck.loseMaster()
    await deck.untilEvent('hook.failed', { cause: 'master-lost' })
    await until(() => isGone(Number(site.read('pid'))), 'its end')
    const { state, reason, hook } = await deck.rolloutEnd(rollout)
    assert.deepEqual([state, reason, hook?.state], ['failed', 'its master ended', 'ended'])
    await deck.until({ ready: 2 })
    assert.equal((await deck.status()).release.id, 'r1')
  })

  rareTest('a stop waits for no hook', async (t) => {
    const site = await withHooks()
    site.configure({ afterDeploy: shell(`trap '' TERM; echo $$ > ${site.place('pid')}; while :; do sleep 0.05; done`) })
    const deck = await startReadyHere(t, site.entry, { workers: 1, flags: site.flags })
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    await until(() => site.read('pid').trim() !== '', 'the hook')
    assert.equal((await deck.stop()).code, 0)
    assert.ok(isGone(Number(site.read('pid'))))
  })
})
