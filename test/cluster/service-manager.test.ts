import assert from 'node:assert/strict'
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { FIXTURES, startDeck, startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { startHost } from '../support/host.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { createReleases } from '../support/releases.ts'
import { openNotifySocket, WITHOUT_KOFFI, withoutNativeCalls } from '../support/service-manager.ts'

const STATES = ['READY', 'RELOADING', 'STOPPING']

describe('what the service manager is told', { skip: withoutNativeCalls, concurrency: 2 }, () => {
  for (const [who, flags, isAbstract] of [['a keeper', [], false], ['no keeper, in the abstract namespace', [
    '--no-keeper'
  ], true]] as [string, string[], boolean][]) {
    test(
      `with ${who}: ready once every worker is, reloading while SIGHUP's deploy runs, stopping; the app hears nothing of it`,
      { skip: isAbstract && rareOnly },
      async (t) => {
        const receiver = openNotifySocket(t, { isAbstract })
        const flagsOfDrain = ['--drain-deadline-ms', '100000', '--stop-term-grace-ms', '7000']
        const deck = await startDeck(t, 'answers-with-pid.js', { flags: [...flags, ...flagsOfDrain],
          env: { NOTIFY_SOCKET: receiver.name } })
        await receiver.until('READY=1')
        const { readyWorkers, workers } = await deck.status()
        assert.equal(readyWorkers, 2)
        for (const { pid } of workers)
          assert.doesNotMatch(readFileSync(`/proc/${pid}/environ`, 'utf8'), /NOTIFY_SOCKET|WATCHDOG_/)
        const rollout = await deck.rollout('deploy')
        assert.equal(rollout.state, 'succeeded')
        assert.deepEqual(receiver.told(...STATES), ['READY=1'], 'a deploy that nobody asked for by signal is no reload')

        const before = microseconds()
        deck.signal('SIGHUP')
        const { rollout: id } = await deck.untilEvent('rollout.started', { actor: 'signal' })
        await receiver.until('RELOADING=1')
        await receiver.until('READY=1', 2)
        await deck.untilEvent('rollout.succeeded', { rollout: id })
        const reloading = receiver.messages.find(({ lines }) => lines[0] === 'RELOADING=1')
        const since = BigInt(/^MONOTONIC_USEC=(\d+)$/.exec(String(reloading?.lines[1]))?.[1] ?? 0)
        assert.ok(before <= since && since <= microseconds(), `${before} ≤ ${since}, and not in the future`)

        deck.signal('SIGTERM')
        assert.deepEqual(await deck.exited, { code: 0, signal: null })
        await receiver.until('STOPPING=1')
        assert.deepEqual(receiver.told(...STATES), ['READY=1', 'RELOADING=1', 'READY=1', 'STOPPING=1'])
        assert.deepEqual(receiver.messages.find(({ lines }) => lines.includes('STOPPING=1'))?.lines, ['STOPPING=1',
          'EXTEND_TIMEOUT_USEC=117000000', 'STATUS=The master is stopping'])
        assertStatus(receiver.messages)
        assert.ok(receiver.told('STATUS').includes('STATUS=All 2 workers are ready'))
        assert.deepEqual(receiver.told('WATCHDOG', 'MAINPID'), [])
      }
    )
  }

  rareTest('a reload lasts as long as its deploy, and one that fails or is refused ends as well', async (t) => {
    const receiver = openNotifySocket(t)
    const releases = await createReleases('answers-with-pid.js')
    const gate = path.join(tempFolder(), 'gate')
    const deck = await startDeck(t, releases.entry, { workers: 1, env: { NOTIFY_SOCKET: receiver.name, PORT: '0' } })
    await receiver.until('READY=1')
    await releases.add('waits', `
      import { existsSync } from 'node:fs'
      setInterval(() => { if (existsSync(${JSON.stringify(gate)})) process.exit(1) }, 10)
    `)
    deck.signal('SIGHUP')
    await receiver.until('RELOADING=1')
    await receiver.until('STATUS=Deploying r2')
    await deck.untilEvent('worker.online', { rollout: 1 })
    receiver.look()
    assert.deepEqual(receiver.told(...STATES), ['READY=1', 'RELOADING=1'])
    writeFileSync(gate, '')
    await deck.untilEvent('rollout.failed')
    await receiver.until('READY=1', 2)

    rmSync(gate)
    await deck.post('/rollouts', { kind: 'deploy' })
    // Nothing more happens for a while: only the refusal itself can end the reload.
    await deck.untilEvent('worker.online', { rollout: 2 })
    await receiver.until('STATUS=Deploying r2', 2)
    deck.signal('SIGHUP')
    await receiver.until('READY=1', 3)
    assert.deepEqual(receiver.told(...STATES), ['READY=1', 'RELOADING=1', 'READY=1', 'RELOADING=1', 'READY=1'])
    assert.equal((await deck.status()).rollout?.id, 2, 'the one that was in the way goes on')
  })

  // That it is fed at half its time is of test/timed/service-manager.test.ts.
  rareTest('a watchdog is fed by the loop of the master, and by that of the next one after a death', async (t) => {
    const receiver = openNotifySocket(t)
    const deck = await startDeck(t, 'answers-with-pid.js', { workers: 1,
      env: { NOTIFY_SOCKET: receiver.name, WATCHDOG_USEC: '400000' } })
    await receiver.until('READY=1')
    await receiver.until('WATCHDOG=1', 3)
    process.kill(deck.masterPid, 'SIGSTOP')
    try {
      const stopped = receiver.times('WATCHDOG=1').length
      await new Promise((resolve) => setTimeout(resolve, 700))
      // One may have been on its way.
      assert.ok(receiver.times('WATCHDOG=1').length <= stopped + 1, 'a master that does not run feeds nothing')
    } finally {
      process.kill(deck.masterPid, 'SIGCONT')
    }
    await deck.loseMaster()
    const lost = receiver.times('WATCHDOG=1').length
    await receiver.until('WATCHDOG=1', lost + 3)
    await receiver.until('READY=1', 2)
  })

  rareTest(
    'an upgrade is no stop: the next master says that it is ready; a keeper that is gone leaves it as the main process; a watchdog of another process is left to it',
    async (t) => {
      const receiver = openNotifySocket(t)
      const deck = await startDeck(t, 'answers-with-pid.js', { workers: 1,
        env: { NOTIFY_SOCKET: receiver.name, WATCHDOG_USEC: '2000', WATCHDOG_PID: '1' } })
      await receiver.until('READY=1')
      const { code, stderr } = await runCliHere(['upgrade', '--wait', '--data-dir', deck.folder])
      assert.equal(code, 0, stderr)
      await receiver.until('READY=1', 2)
      await deck.meetNext()
      await deck.until({ ready: 1 })
      assert.deepEqual(receiver.told(...STATES, 'MAINPID'), ['READY=1', 'READY=1'])
      deck.signal('SIGKILL')
      await receiver.until(`MAINPID=${deck.masterPid}`)
      process.kill(deck.masterPid, 'SIGTERM')
      await receiver.until('STOPPING=1')
      assert.deepEqual(receiver.told('WATCHDOG'), [])
    }
  )

  rareTest('a start that comes to nothing says that it stops, and never that it is ready', async (t) => {
    const receiver = openNotifySocket(t)
    const deck = await startDeck(t, 'throws-at-load.js', { workers: 1, env: { NOTIFY_SOCKET: receiver.name } })
    await deck.untilEvent('worker.exited')
    await deck.stop()
    await receiver.until('STOPPING=1')
    assert.deepEqual(receiver.told(...STATES), ['STOPPING=1'])
  })
})

describe('what the service manager is told of a host', { skip: withoutNativeCalls }, () => {
  rareTest('is ready once its apps are, feeds the watchdog over masters, and stops', async (t) => {
    const folder = tempFolder()
    const first = await startHost(t, { folder })
    await first.add({ name: 'shop', cwd: FIXTURES,
      flags: { entry: 'answers-with-pid.js', workers: '1', dataDir: tempFolder() }, env: { PATH: process.env.PATH } })
    await first.untilApp('shop', ({ state }) => state === 'running')
    await first.stop()

    const receiver = openNotifySocket(t)
    const host = await startHost(t, { folder, env: { NOTIFY_SOCKET: receiver.name, WATCHDOG_USEC: '2000000' } })
    await receiver.until('READY=1')
    assert.equal((await host.request('/apps/shop')).state, 'running')
    assert.deepEqual(receiver.told('STATUS'), ['STATUS=0 of 1 apps run', 'STATUS=1 of 1 apps run'])
    await receiver.until('WATCHDOG=1', 2)
    process.kill(host.about.pid, 'SIGKILL')
    await host.untilNext(host.about.pid)
    const fed = receiver.times('WATCHDOG=1').length
    await receiver.until('WATCHDOG=1', fed + 2)
    assert.deepEqual(await host.stop(), { code: 0, signal: null })
    await receiver.until('STOPPING=1')
    assert.deepEqual(receiver.messages.find(({ lines }) => lines.includes('STOPPING=1'))?.lines, ['STOPPING=1',
      'EXTEND_TIMEOUT_USEC=90000000'])
  })
})

describe('without the native calls', { concurrency: 2 }, () => {
  rareTest('the program systemd-notify says it, one message after the other', async (t) => {
    const folder = tempFolder()
    const [program, heard] = [path.join(folder, 'systemd-notify'), path.join(folder, 'heard')]
    writeFileSync(program, '#!/bin/sh\nshift\nfor variable; do echo "$NOTIFY_SOCKET $variable" >> "$HEARD"; done\n')
    chmodSync(program, 0o755)
    const env = { NOTIFY_SOCKET: '/run/the socket', HEARD: heard, PATH: `${folder}:${process.env.PATH}`,
      WATCHDOG_USEC: '60000000' }
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, env, launch: WITHOUT_KOFFI })
    await deck.stop()
    const read = () =>
      readFileSync(heard, 'utf8').split('\n').filter(Boolean).map((line) => line.replace('/run/the socket ', ''))
    // The last one may outlive the master that sent it.
    while (!read().includes('STATUS=The master is stopping')) await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal(read()[0], 'WATCHDOG=1')
    assert.deepEqual(read().filter((line) => !line.startsWith('STATUS=')).slice(1), ['READY=1', 'STOPPING=1',
      'EXTEND_TIMEOUT_USEC=45000000'])
  })

  rareTest('nor that program: said once, and the cluster runs', async (t) => {
    const env = { NOTIFY_SOCKET: '/run/nowhere', PATH: tempFolder() }
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, env, launch: WITHOUT_KOFFI })
    await deck.stop()
    assert.deepEqual(deck.output.stderr.match(/NOTIFY_SOCKET.*/g), [
      'NOTIFY_SOCKET: neither the optional package koffi nor the program systemd-notify can be used (spawn systemd-notify ENOENT); the service manager is told nothing'
    ])
  })
})

function assertStatus (messages: { at: number, lines: string[] }[]) {
  const told = messages.filter(({ lines }) => lines.some((line) => line.startsWith('STATUS=')))
  assert.ok(told.length >= 3)
  for (const { lines } of messages) {
    for (const line of lines) assert.match(line, /^[A-Z_]+=[^\n]+$/)
  }
}

/** CLOCK_MONOTONIC, as it is the same for all processes of one machine. */
function microseconds () {
  return process.hrtime.bigint() / 1000n
}
