import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { get } from '../support/asking.ts'
import { FEW, hammer } from '../support/load.ts'
import { startReady } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { asOtherProgram, withoutOtherPrograms } from '../support/other-programs.ts'
import { freePort } from '../support/ports.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { withoutStarved } from '../support/starved.ts'
import { supervised } from '../support/supervised.ts'

const ASK = Object.freeze({ readyPath: '/health', readyIntervalMs: 20 })

type Told = { seen: ({ url: string } & Record<string, unknown>)[], connections: number, connectionsBefore: number,
  pid: number }

/** What tells-who-asked.js has been asked. */
async function seenBy (url: string) {
  const { seen, ...rest }: Told = JSON.parse(await get(`${url}/seen`))
  return { ...rest, seen, urls: seen.slice(1).map((each) => each.url) }
}

describe('readiness over HTTP', { concurrency: 2 }, () => {
  test('nobody reaches the next worker while it says 503, and no request fails', async (t) => {
    const { deck, release, url, until } = await supervised(t, 'tells-who-asked.js', { flags: ASK,
      args: ['--unhealthy', '5'] })
    const first = await until('worker.ready')
    assert.equal(first.message, 'GET /health answered 200 at try 6')
    const load = hammer(t, `${url()}/`, FEW)
    deck.dispatch({ type: 'rollout', kind: 'deploy', release, actor: 'test' })
    await until('rollout.succeeded')
    const { total, failures } = await load.stop()
    assert.deepEqual([failures, total > 20], [[], true], `${total} asked`)
    const { connectionsBefore, connections, seen, pid } = await seenBy(url())
    assert.equal(connectionsBefore, 0)
    assert.deepEqual(seen[0], { listening: true, port: true }, 'it believed that it listens')
    assert.equal(connections, 1, 'all tries went over one connection, which was kept alive')
    assert.notEqual(pid, first.pid)
    const { url: asking, agent, host, from, httpVersion } = seen[1]
    assert.deepEqual([asking, agent, host, from, httpVersion], ['/health', 'clusterdeck-probe', new URL(url()).host,
      '127.0.0.1', '1.1'])
  })

  for (const [app, args, sees] of [['express-app.cjs', [], null], ['fastify-on-localhost.js', [], null], [
    'https-app.js',
    [],
    null
  ], ['http2-app.js', [], null], ['tells-who-asked.js', ['--kind', 'https'], { httpVersion: '1.1', isEncrypted: true,
    isAuthorized: false, from: '127.0.0.1' }], ['tells-who-asked.js', ['--kind', 'https-with-client-certificates'], {
    httpVersion: '1.1',
    isEncrypted: true,
    isAuthorized: true
  }], ['tells-who-asked.js', ['--kind', 'http2-over-tls'], { httpVersion: '2.0', isEncrypted: true, isAuthorized: false,
    from: '127.0.0.1' }]] as const)
  {
    rareTest(`${[app, ...args].join(' ')} is asked, and then serves`, async (t) => {
      const takesOthers = app !== 'http2-app.js' && !args.some((word) => /client/.test(word))
      const { url, until } = await supervised(t, app, { flags: { ...ASK, readyPath: '/' }, args: [...args] })
      assert.match((await until('worker.ready')).message, /^GET \/ answered 200$/)
      if (!takesOthers) return
      assert.ok(await get(url()))
      const probe = sees && (await seenBy(url())).seen[1]
      for (const [name, value] of Object.entries(sees ?? {})) assert.equal(probe?.[name], value, name)
    })
  }

  test('warms the app up, in order, before any connection; what fails there is told and stops nobody', async (t) => {
    const { url, until, count } = await supervised(t, 'tells-who-asked.js', {
      flags: { ...ASK, readyWarmup: ['/large', '/fails'], readyWarmupRounds: 2 }
    })
    await until('worker.listening')
    const clients = hammer(t, `${url()}/client`, FEW)
    assert.equal((await until('worker.warm-up-failed')).message,
      '2 of 4 warm-up requests failed: GET /fails answered 503 (the <b>cache</b> is empty)')
    assert.match((await until('worker.ready')).message, /^GET \/health answered 200; 4 warm-up requests took \d+ ms$/)
    await clients.stop()
    assert.deepEqual(
      (await seenBy(url())).urls.filter((each: string, index: number) => each !== '/client' || index < 5),
      ['/health', '/large', '/fails', '/large', '/fails']
    )
    assert.equal(count('worker.exited'), 0)
  })

  rareTest('counts neither as requests of the app nor towards recycle.maxRequests', async (t) => {
    const { deck, url, until, reports, count } = await supervised(t, 'tells-who-asked.js', {
      flags: { ...ASK, readyWarmup: ['/'], readyWarmupRounds: 30, recycleMaxRequests: 20 },
      args: ['--unhealthy', '2']
    })
    await until('worker.ready')
    for (let asked = 0; asked < 5; asked++) await get(`${url()}/`)
    deck.dispatch({ type: 'stop', actor: 'test' })
    await until('worker.exited')
    const sum = reports.flatMap(({ statuses }) => statuses).reduce((total, each) => total + each, 0)
    assert.deepEqual([sum, count('worker.recycling')], [5, 0])
    assert.equal(reports.at(-1)?.inFlight, 0)
  })

  for (const [how, flags] of Object.entries({ 'by message': { readySignal: 'message' },
    'by a line of its output': { readyLog: '/^ready after \\d+ ms$/' } }))
  {
    test(`an app that says ${how} that it is ready is asked then`, async (t) => {
      const { url, until } = await supervised(t, 'says-ready-later.js', { flags: { ...ASK, ...flags, readyPath: '/' } })
      assert.equal((await until('worker.ready')).message, 'GET / answered 200')
      assert.equal(await get(url()), 'first asked after it was ready')
    })
  }

  for (const [what, app, args] of [['an app', 'says-ready-again.js', []], ['a program', null,
    asOtherProgram('says-ready-again.js')]] as [string, string | null, string[]][])
  {
    test(`${what} is not ready by a line of another worker, whose log is the same`, {
      skip: rareOnly || (app === null && withoutOtherPrograms)
    }, async (t) => {
      const [cwd, port] = [tempFolder(), await freePort()]
      const deck = await startReady(t, app, { args, cwd, workers: 1,
        flags: ['--ready-log', 'now ready', '--rollout-limits-ready-timeout-ms', '1500'], env: { PORT: String(port) } })
      writeFileSync(path.join(cwd, 'hold'), '')
      const load = hammer(t, `http://127.0.0.1:${port}/`, FEW)
      const { state, reason } = await deck.rollout('restart')
      assert.equal(state, 'failed')
      assert.match(String(reason), /has not written the line "now ready"/)
      rmSync(path.join(cwd, 'hold'))
      assert.equal((await deck.rollout('restart')).state, 'succeeded')
      await load.checkNoneLost()
    })
  }

  rareTest('an app that has to reach itself first does not get ready, and its end says what it answered', async (t) => {
    const { until } = await supervised(t, 'asks-itself-first.js', { flags: { ...ASK, readyTimeoutMs: 4000 } })
    const why =
      'worker 1 (slot 1) was not ready within 4 s (option ready.timeoutMs): GET /health answered 503 (asking myself: ECONNREFUSED)'
    assert.equal(withoutStarved((await until('worker.draining')).message), why)
    assert.equal((await until('worker.exited')).cause, 'boot-failure')
  })

  test('a deploy whose workers are never healthy fails with the answer as its reason, and the old ones go on', async (t) => {
    const sick = path.join(tempFolder(), 'sick')
    const deck = await startDeckHere(t, 'tells-who-asked.js', {
      flags: ['--ready-path', '/health', '--rollout-limits-ready-timeout-ms', '4000'],
      args: ['--sick', sick]
    })
    const before = (await deck.until({ ready: 2 })).workers.map(({ pid }) => pid)
    const url = await deck.appUrl()
    const load = hammer(t, `${url}/seen`, FEW)
    writeFileSync(sick, '')
    const { state, reason } = await deck.rollout('deploy')
    assert.equal(state, 'failed')
    assert.equal(withoutStarved(String(reason)),
      'worker 3 (slot 1) was not ready within 4 s (option rollout.limits.readyTimeoutMs): GET /health answered 503 (the <b>cache</b> is empty)')
    assert.deepEqual((await deck.until({ ready: 2 })).workers.map(({ pid }) => pid), before)
    await load.checkNoneLost()
    const exit = await deck.untilEvent('worker.exited', { worker: 3 })
    assert.equal(exit.cause, 'boot-failure')
    const { body: { items: [group] } } = await deck.api('/crashes')
    const { body } = await deck.api(`/crashes/${group.id}`)
    assert.ok(JSON.stringify(body).includes('GET /health answered 503 (the <b>cache</b> is empty)'),
      'the crash record has it too')
  })
})
