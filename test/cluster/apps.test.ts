import assert from 'node:assert/strict'
import { chmodSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { isAlive } from '../../server/system/process-identity.ts'
import { openApps } from '../support/apps.ts'
import { FIXTURES, startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const NEVER_READY = { entry: 'never-listens.js', ready: { signal: 'listening' } }
const CRASH_LOOPS = { entry: 'exits-before-listening.js', restart: { minDelayMs: 10, intensity: { restarts: 2 } } }
const SERVES = { entry: 'answers-with-pid.js' }

describe('several apps', { concurrency: 3 }, () => {
  test('run in a host of this command, whatever becomes of the others, and are stopped in reverse order', async (t) => {
    const apps = openApps(t, { mail: { ...SERVES, dependsOn: ['shop'] }, shop: SERVES,
      after: { ...SERVES, dependsOn: ['stuck'] }, stuck: NEVER_READY, loop: CRASH_LOOPS })
    const up = apps.spawn('up')
    await up.says(/^mail {2}\| is ready$/m, /^loop {2}\| .*crash-looping/m, /^after \| waits for stuck$/m,
      /^shop {2}\| listens on http:/m, /^clusterdeck: the host is started: http:/m)
    await until(() => apps.deck('stuck') !== undefined, 'the app that never gets ready')
    assert.deepEqual(apps.decks().map(({ name }) => name), ['loop', 'mail', 'shop', 'stuck'])
    assert.ok(up.output.stderr.indexOf('shop  | is ready') < up.output.stderr.indexOf('mail  | is ready'))

    const { code, stdout } = await apps.run('status')
    assert.equal(code, 0)
    assert.match(stdout,
      /^NAME +HEALTH +WORKERS +MEMORY +CPU +RESTARTS +UPTIME +APP +ADMIN\nmail +The worker is ready +1\/1 .*\nshop +The worker is ready +1\/1 .*\nafter +waiting +- .*\nstuck +Starting 1 worker +0\/1 .*\nloop .*slot 1 keeps crashing +0\/1 /)

    // The next master shows what the one before has shown.
    const [{ master, keeper }] = apps.decks()
    const { app: { addresses: [address] } } = await apps.ask('shop', '/status')
    process.kill(master.pid, 'SIGKILL')
    assert.equal((await fetch(address)).status, 200)
    await until(() => apps.deck('shop')?.master.pid !== master.pid, 'the next master')
    await until(async () => (await apps.run('status -n shop', tempFolder())).code === 0, 'an answer of the next master')
    // For a moment the other apps start.
    await until(async () => (await apps.run('restart mail --wait')).stdout.startsWith('rollout 1 (restart) succeeded'),
      'a restart under the next master')
    await up.says(/^mail {2}\| .*rollout\.succeeded/m)
    assert.equal((await apps.run('stop -n loop', tempFolder())).code, 0)
    await up.says(/^loop {2}\| stopped$/m)

    up.interrupt()
    assert.deepEqual(await up.exited, { code: 0, signal: null })
    assert.ok(up.output.stderr.indexOf('mail  | stopped') < up.output.stderr.indexOf('shop  | stopped'),
      up.output.stderr)
    assert.match(up.output.stderr, /^after \| stopped$/m)
    assert.deepEqual(apps.decks(), [])
    assert.equal(keeper !== null && isAlive(keeper), false)
    assert.equal((await apps.run('down --all')).stderr, 'clusterdeck: no host of this user runs\n')
  })

  rareTest('are shown with all that they write, from the first line to the last, and end the command by their own end',
    async (t) => {
      const apps = openApps(t, { chatty: { entry: 'writes-with-every-request.js' },
        broken: { entry: 'there-is-none.js' }, after: { ...SERVES, dependsOn: ['broken'] } })
      const up = apps.spawn('up')
      await up.says(/^chatty \| is ready$/m, /^broken \| failed: entry in .*there-is-none\.js, which does not exist$/m,
        /^after {2}\| is not started: it depends on broken, which failed /m)
      const { app: { addresses: [address] } } = await apps.ask('chatty', '/status')
      await Promise.all(Array.from({ length: 20 }, async (_, n) => (await fetch(`${address}/order-${n}`)).text()))
      const stopped = apps.run('stop chatty', tempFolder())
      assert.deepEqual(await up.exited, { code: 1, signal: null })
      assert.equal((await stopped).code, 0)
      assert.deepEqual(
        up.output.stdout.match(/(?<=^chatty \| \/order-)\d+$/gm)?.map(Number).sort((one, other) => one - other),
        Array.from({ length: 20 }, (_, n) => n)
      )
      assert.match(up.output.stderr, /^chatty \| stopped$/m)
      assert.match(up.output.stderr, /\nclusterdeck: up: broken failed, after was not started\n$/)
      assert.deepEqual(apps.decks(), [])
    })

  rareTest('run in the host, which goes on without the terminal, and those that do not get ready are told',
    async (t) => {
      const apps = openApps(t, { broken: { entry: 'there-is-none.js' }, stuck: NEVER_READY,
        after: { ...SERVES, dependsOn: ['stuck'] }, shop: SERVES, mail: { ...SERVES, dependsOn: ['shop'] } })
      const first = await apps.run('up mail --detach')
      assert.equal(first.code, 0, first.stderr)
      assert.match(first.stderr,
        /^clusterdeck: the host is started: (http:.*)\n(?:mail \| waits for shop\n)?shop \| is ready\nmail \| is ready\n$/)
      assert.match(first.stdout,
        /^NAME +HEALTH .*\nshop +The worker is ready .*\/apps\/shop\nmail +The worker is ready .*\/apps\/mail\n$/)
      const before = apps.decks()
      assert.deepEqual(before.map(({ name }) => name), ['mail', 'shop'])
      assert.equal(before[0].master.pid, before[1].master.pid)
      assert.equal(JSON.parse((await apps.run('status mail --json', tempFolder())).stdout).app.name, 'mail')

      const second = await apps.run('up broken shop --detach')
      assert.equal(second.code, 1)
      assert.match(second.stdout,
        /^broken +failed .*there-is-none\.js, which does not exist\nshop +The worker is ready /m)
      assert.match(second.stderr,
        /^broken \| failed: entry in .*: expected a file, received .*there-is-none\.js, which does not exist$/m)
      assert.match(second.stderr, /^shop {3}\| already runs$/m)
      assert.match(second.stderr, /\nclusterdeck: up: broken failed\n$/)

      const third = await apps.run('up after --detach --timeout 100ms')
      assert.equal(third.code, 1)
      assert.match(third.stdout, /^after +waiting .* it depends on stuck, which is not ready \(.*\)$/m)
      assert.match(third.stderr, /\nclusterdeck: up: stuck is not ready, after waits\n$/)
      await until(() => apps.deck('stuck') !== undefined, 'the app that goes on')

      assert.equal((await apps.run('down mail')).stdout, 'NAME  STATE\nmail  stopped\n')
      assert.match((await apps.run('status mail', tempFolder())).stderr,
        /^clusterdeck: mail is stopped \(clusterdeck start mail\)\n$/)
      assert.deepEqual(await apps.run('start mail', tempFolder()), { code: 0, stdout: 'is ready\n', stderr: '' })
      assert.match((await apps.run('start answers-with-pid.js --detach --name shop', FIXTURES)).stderr,
        /^clusterdeck: name: expected one that no other app of this host has, received "shop", /)
      assert.equal((await apps.run('stop after', tempFolder())).stdout, 'stopped\n')

      assert.match((await apps.run('down --all', tempFolder())).stdout,
        /^the host has ended, with mail, shop, stuck\n$/)
      assert.deepEqual(readdirSync(String(apps.env.CLUSTERDECK_RUNTIME_DIR)), [], 'each has taken itself off the list')
      const nothing = await apps.run('status')
      assert.equal(nothing.code, 5)
      assert.match(nothing.stdout, /^broken +not running /m)

      // What ran comes back with the host, and what was stopped stays so.
      const again = await apps.run('up shop --detach')
      assert.equal(again.code, 0, again.stderr)
      await until(() => apps.decks().map(({ name }) => name).join() === 'mail,shop,stuck', 'those that ran')
      assert.match((await apps.run('ls', tempFolder())).stdout, /^after +stopped /m)
      assert.equal((await apps.run('delete after mail --yes', tempFolder())).code, 0)
      assert.deepEqual(
        (JSON.parse((await apps.run('ls --json', tempFolder())).stdout) as { name: string }[]).map(({ name }) => name),
        ['shop', 'stuck']
      )

      // So it does for whoever asks for an app of it, or for the host alone.
      assert.equal((await apps.run('stop shop', tempFolder())).code, 0)
      assert.equal((await apps.run('down --all', tempFolder())).code, 0)
      assert.match((await apps.run('ls', tempFolder())).stdout, /^shop +stopped .*\nstuck +not running /m)
      const started = await apps.run('start shop', tempFolder())
      assert.deepEqual([started.code, started.stdout], [0, 'is ready\n'])
      assert.match(started.stderr, /^clusterdeck: the host is started: http:.*\n$/)
      assert.equal((await apps.run('down --all', tempFolder())).code, 0)
      assert.match((await apps.run('host --detach', tempFolder())).stderr,
        /^clusterdeck: the host is started: http:.*\n$/)
      await until(() => apps.decks().map(({ name }) => name).join() === 'shop,stuck', 'those that ran')
      const there = await apps.run('host -d', tempFolder())
      assert.deepEqual([there.code, there.stderr], [0, 'clusterdeck: the host runs already\n'])
      assert.match(there.stdout, /^http:\/\/\S+\n$/)
    })

  rareTest('are not listed where others could write the list, and run all the same', async (t) => {
    const [folder, dataDir] = [tempFolder(), tempFolder()]
    chmodSync(folder, 0o777)
    await startReady(t, 'answers-with-pid.js', { workers: 1, dataDir, env: { CLUSTERDECK_RUNTIME_DIR: folder } })
    assert.deepEqual(readdirSync(folder), [])
    assert.match(readFileSync(path.join(dataDir, 'logs', 'master.log'), 'utf8'),
      /"level":40,.*"msg":"this deck is not in the list of running decks",.*which is open to others \(mode 0777, expected 0700\)/)
  })

  rareTest('go on in the host where what has started them is killed, and the next one shows them and leaves them',
    async (t) => {
      const apps = openApps(t, { shop: SERVES, mail: SERVES })
      const first = apps.spawn('up shop')
      await first.says(/^shop \| is ready$/m)
      const before = apps.decks()
      first.child.kill('SIGKILL')
      await first.exited
      const next = apps.spawn('up')
      await next.says(/^shop \| already runs$/m, /^shop \| is ready$/m, /^mail \| is ready$/m,
        /^clusterdeck: the page of the host: http:/m)
      assert.deepEqual(apps.deck('shop'), before[0])
      assert.match((await apps.run('restart shop --wait')).stdout, /succeeded/)
      await next.says(/^shop \| .*rollout\.succeeded/m)
      next.child.kill('SIGTERM')
      assert.deepEqual(await next.exited, { code: 0, signal: null })
      assert.match(next.output.stderr, /^shop \| goes on in the host$/m)
      assert.match(next.output.stderr, /^mail \| stopped$/m)
      assert.deepEqual(apps.decks(), before)
      assert.equal((await apps.run('down')).stdout, 'NAME  STATE\nshop  stopped\nmail  not running\n')
    })

  rareTest('that a host brings back run as this command orders them, and the host goes on for what others have started',
    async (t) => {
      const apps = openApps(t, { shop: SERVES })
      assert.equal((await apps.run('up -d')).code, 0)
      assert.equal((await apps.run('down --all')).code, 0)
      apps.env.CLUSTERDECK_WORKERS = '2'
      const up = apps.spawn('up')
      await up.says(/^shop \| is ready$/m)
      assert.equal((await apps.ask('shop', '/status')).desiredWorkers, 2)
      assert.equal(
        (await apps.run(`start answers-with-pid.js --detach --name other --data-dir ${tempFolder()}`, FIXTURES)).code,
        0
      )
      // As one who closes the terminal does.
      up.child.kill('SIGHUP')
      assert.deepEqual(await up.exited, { code: 0, signal: null })
      assert.match(up.output.stderr, /^clusterdeck: the host goes on with other \(clusterdeck down --all ends it\)$/m)
      assert.deepEqual(apps.decks().map(({ name }) => name), ['other'])
      assert.match((await apps.run('ls')).stdout, /^shop +stopped /m)
    })

  rareTest('are ended at once by a second Ctrl-C, though nobody reads the output any more', async (t) => {
    const apps = openApps(t, { shop: SERVES, mail: { ...SERVES, dependsOn: ['shop'] } })
    const up = apps.spawn('up')
    await up.says(/^mail \| is ready$/m)
    const [address] = (await apps.ask('mail', '/status')).app.addresses
    const request = fetch(`${address}/?ms=60000`)
    request.catch(() => {})
    await until(async () => (await apps.ask('mail', '/workers/1/requests')).items?.length === 1, 'the request')
    up.child.stdout.destroy()
    up.child.stderr.destroy()
    up.interrupt()
    await until(async () => (await apps.ask('mail', '/status')).state === 'stopping', 'the stop of mail')
    assert.equal((await apps.ask('shop', '/status')).state, 'running', 'it is stopped once mail has been')
    up.interrupt()
    assert.deepEqual(await up.exited, { code: 1, signal: null })
    await assert.rejects(request)
    assert.deepEqual(apps.decks(), [])
  })
})
