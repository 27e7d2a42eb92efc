import assert from 'node:assert/strict'
import { readFile, rm, symlink, writeFile } from 'node:fs/promises'
import http from 'node:http'
import net from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import WebSocket from 'ws'
import { once } from 'node:events'
import { startDeck, startReady } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import { metric } from '../support/vitals.ts'
import type { LeftProcess } from '../../server/lifecycle/state.ts'
import type { DeckClient } from '../support/deck-client.ts'
import type { TestOwner } from '../support/deck.ts'

describe('drain', { concurrency: 3 }, () => {
  test('a response that takes longer than every grace period while its worker is replaced arrives whole; of several requests on their way over one connection all are answered, and the last answer says close', async (t) => {
    const gate = path.join(tempFolder(), 'gate')
    // A worker without a CPU needs a while to exit.
    const graceMs = 1000
    const deck = await startDeckHere(t, 'answers-when-told.js', { workers: 1, env: { GATE: gate },
      flags: ['--drain-idle-grace-ms', String(graceMs), '--stop-term-grace-ms', String(graceMs)] })
    const { workers: [{ pid }] } = await deck.until({ ready: 1 })
    const url = await deck.appUrl()
    const slow = keepAliveGet(`${url}/slow`)
    await slow.sent
    const pipelined = net.connect({ port: Number(new URL(url).port), host: '127.0.0.1' })
    pipelined.write(['/slow', '/slow', '/slow'].map((where) => `GET ${where} HTTP/1.1\r\nHost: app\r\n\r\n`).join(''))
    await once(pipelined, 'connect')
    // All are with the worker once a later one is answered: connections are accepted in order.
    await keepAliveGet(url, new http.Agent()).response
    const { rolled } = await beginDrain(deck, 'deploy')
    await new Promise((resolve) => setTimeout(resolve, 2 * graceMs))
    assert.deepEqual(await deck.history('type=worker.exited'), [])
    await writeFile(gate, '')
    const { body, headers } = await slow.response
    assert.equal(Number(body), pid)
    assert.equal(headers.connection, 'close')
    const answers = (await text(pipelined)).split('HTTP/1.1 200 OK').slice(1)
    assert.deepEqual(answers.map((answer) => /^connection: (.+)\r$/im.exec(answer)?.[1]), ['keep-alive', 'keep-alive',
      'close'])
    const rollout = await rolled
    assert.equal(rollout.state, 'succeeded', rollout.reason ?? undefined)
    const exit = await deck.untilEvent('worker.exited', { worker: 1 })
    assert.deepEqual([exit.code, exit.signal, exit.cause], [0, null, 'deploy'])
  })

  test('an app hears that its worker drains while a request is still open, as a message and on a diagnostics channel; a listener that throws ends nothing', async (t) => {
    const [file, gate] = [path.join(tempFolder(), 'app.cjs'), path.join(tempFolder(), 'gate')]
    await writeFile(file, `
      const { existsSync } = require('node:fs')
      const heard = []
      require('node:diagnostics_channel').subscribe('clusterdeck:draining', ({ deadlineMs }) => heard.push(deadlineMs))
      process.on('message', ({ type, from, data }) => {
        heard.push(type, from, data.deadlineMs)
        process.send({ type: 'heard', data: heard })
        throw new Error('no such order')
      })
      require('node:http').createServer((request, response) => {
        const timer = setInterval(() => existsSync(process.env.GATE) && (clearInterval(timer), response.end(heard.join())), 10)
      }).listen(0)
    `)
    const deck = await startReadyHere(t, file, { workers: 1, env: { GATE: gate },
      flags: ['--drain-deadline-ms', '61000'] })
    const slow = keepAliveGet(await deck.appUrl())
    await slow.sent
    const { rolled } = await beginDrain(deck)
    const { detail } = await deck.untilEvent('worker.message', { worker: 1 })
    assert.deepEqual(detail?.data, [61_000, 'draining', 'master', 61_000])
    await deck.untilEvent('unexpected', { message: /has thrown at "draining": Error: no such order/ })
    await writeFile(gate, '')
    assert.equal(String((await slow.response).body), '61000,draining,master,61000')
    assert.equal((await rolled).state, 'succeeded')
  })

  rareTest(
    'a connection whose answer ends late in a drain is kept for a grace period of its own, as is one that sends half a request',
    async (t) => {
      const graceMs = 4000
      const { deck, port, url } = await startEveryWay(t, graceMs)
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
      t.after(() => agent.destroy())
      const late = keepAliveGet(`${url}/events?count=3&ms=${graceMs / 2}`, agent)
      await late.sent
      const half = net.connect({ port, host: '127.0.0.1' })
      half.write('GET / HTTP/1.1\r\nHost: app\r\n\r\n')
      assert.match(String((await once(half, 'data'))[0]), /connection: keep-alive/i)
      const { rolled } = await beginDrain(deck)
      await new Promise((resolve) => setTimeout(resolve, graceMs / 2))
      half.write('GET / HTTP/1.1\r\n')
      assert.match(String((await late.response).headers.connection), /keep-alive/)
      await new Promise((resolve) => setTimeout(resolve, graceMs / 2))
      const { isReused, headers } = await keepAliveGet(url, agent).response
      assert.deepEqual([isReused, headers.connection], [true, 'close'])
      half.write('Host: app\r\n\r\n')
      assert.match(await text(half), /connection: close/i)
      assert.equal((await rolled).state, 'succeeded')
    }
  )

  rareTest('what a client sends before it has read that the connection ends is not begun, and does not reset it',
    async (t) => {
      const deck = await startReadyHere(t, 'tells-who-asked.js', { workers: 1 })
      const url = new URL(await deck.appUrl())
      const socket = net.connect({ port: Number(url.port), host: '127.0.0.1', allowHalfOpen: true })
      const ask = () => socket.write('GET / HTTP/1.1\r\nHost: app\r\n\r\n')
      ask()
      assert.match(String((await once(socket, 'data'))[0]), /connection: keep-alive/i)
      const { rolled } = await beginDrain(deck)
      ask()
      let last = ''
      socket.on('data', (chunk) => {
        last += chunk
      })
      await once(socket, 'end')
      for (let count = 0; count < 3; count++) {
        ask()
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
      socket.end()
      await once(socket, 'close')
      assert.deepEqual(last.match(/^(HTTP|connection: \w+)/gim), ['HTTP', 'Connection: close'])
      assert.equal((await rolled).state, 'succeeded')
    })

  test('an idle keep-alive connection is kept for the grace period, and is answered in it', async (t) => {
    const deck = await startReadyHere(t, 'answers-with-pid.js', { workers: 1,
      flags: ['--drain-idle-grace-ms', '60000'] })
    const url = await deck.appUrl()
    const agent = new http.Agent({ keepAlive: true })
    const first = await keepAliveGet(url, agent).response
    await beginDrain(deck)
    const second = await keepAliveGet(url, agent).response
    assert.equal(second.isReused, true)
    assert.equal(JSON.parse(second.body).pid, JSON.parse(first.body).pid,
      'the lame duck answers what comes on the old connection')
    assert.equal(second.headers.connection, 'close')
    await deck.untilEvent('rollout.succeeded')
    agent.destroy()
  })

  rareTest('an app that says keep-alive itself does not have the last word', async (t) => {
    const deck = await startReadyHere(t, 'says-keep-alive-itself.js', { workers: 1,
      flags: ['--drain-idle-grace-ms', '60000'] })
    const url = await deck.appUrl()
    const ways = ['/set', '/object', '/list', '/pairs'].map((way) => ({ way,
      agent: new http.Agent({ keepAlive: true, maxSockets: 1 }) })
    )
    for (const { way, agent } of ways)
      assert.match(String((await keepAliveGet(`${url}${way}`, agent).response).headers.connection), /keep-alive/i)
    await beginDrain(deck)
    for (const { way, agent } of ways) {
      const begunAt = performance.now()
      let answer
      // Its turn may be yet to come.
      do answer = await keepAliveGet(`${url}${way}`, agent).response
      while (answer.headers.connection !== 'close' && performance.now() - begunAt < 2000)
      const { headers, isReused } = answer
      assert.deepEqual([isReused, headers.connection, headers['x-way']], [true, 'close',
        ['/list', '/pairs'].includes(way) ? way.slice(1) : undefined], way)
    }
    await deck.untilEvent('rollout.succeeded')
  })

  test('idle connections are cut after the grace period, those that never asked for anything too', async (t) => {
    const deck = await startReadyHere(t, 'answers-with-pid.js', { workers: 1, flags: ['--drain-idle-grace-ms', '200'] })
    const url = new URL(await deck.appUrl())
    const silent = http.request({ port: url.port, agent: false })
    silent.on('error', () => {})
    const agent = new http.Agent({ keepAlive: true })
    await keepAliveGet(url.href, agent).response
    const rollout = await deck.rollout('restart')
    assert.equal(rollout.state, 'succeeded')
    const [draining, exited] = await Promise.all(
      ['worker.draining', 'worker.exited'].map((type) => deck.untilEvent(type, { worker: 1 }))
    )
    assert.ok(Date.parse(exited.at) - Date.parse(draining.at) < 4000)
    agent.destroy()
    silent.destroy()
  })

  test('a worker that ignores SIGTERM is killed once its time is up, and the deploy succeeds', async (t) => {
    const deck = await startReadyHere(t, 'ignores-sigterm.js', { workers: 1, flags: ['--stop-term-grace-ms', '300'] })
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    const [exit] = await deck.history('type=worker.exited')
    assert.deepEqual([exit.cause, exit.signal, exit.worker], ['deploy', 'SIGKILL', 1])
    assert.equal(exit.message,
      'worker 1 (slot 1) was killed, as it had not ended 300 ms after SIGTERM (option stop.termGraceMs); r2 replaces it')
  })

  rareTest(
    'an app with the shutdown of the Express documentation ends by itself, and its exit listeners run, also where its master has died and the next one has replaced it',
    async (t) => {
      const notes = path.join(tempFolder(), 'notes')
      const deck = await startReady(t, 'shuts-down-as-documented.js', { workers: 1, env: { NOTES: notes } })
      assert.equal((await deck.rollout('restart')).state, 'succeeded')
      assert.equal(await readFile(notes, 'utf8'), 'SIGTERM\nclosed\nexit 0\n')
      const [exit] = await deck.history('type=worker.exited')
      assert.deepEqual([exit.code, exit.signal], [0, null])
      await rm(notes)
      await deck.loseMaster()
      const { cause, signal } = await deck.untilEvent('worker.exited', { worker: 2 })
      assert.deepEqual([cause, signal], ['master-lost', null], 'no SIGKILL was needed')
      assert.equal(await readFile(notes, 'utf8'), 'SIGTERM\nclosed\nexit 0\n')
    }
  )

  rareTest('an app that waits for the message of PM2 gets it where that is configured', async (t) => {
    const notes = path.join(tempFolder(), 'notes')
    const deck = await startReadyHere(t, 'waits-for-pm2-message.js', { workers: 1, env: { NOTES: notes },
      flags: ['--stop-message', 'text'] })
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.equal(await readFile(notes, 'utf8'), 'shutdown\n')
  })

  rareTest(
    'a worker that crashes while it drains is a crash, in the history and among the crashes, and its rollout says so',
    async (t) => {
      const deck = await startReadyHere(t, 'dies-on-request.cjs', { workers: 1,
        flags: ['--drain-idle-grace-ms', '60000'] })
      const url = await deck.appUrl()
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
      await keepAliveGet(url, agent).response
      const { rolled } = await beginDrain(deck)
      const last = keepAliveGet(`${url}/throw-in-request`, agent)
      last.response.catch(() => {})
      const exit = await deck.untilEvent('worker.exited', { worker: 1 })
      assert.deepEqual([exit.cause, exit.code, exit.actor, exit.rollout], ['crash', 1, null, 1])
      const { body: { items: [group] } } = await deck.api('/crashes')
      assert.deepEqual([group.errorName, group.count], ['RangeError', 1])
      const rollout = await rolled
      assert.equal(rollout.state, 'succeeded')
      // Its request is answered by nobody, which it can say itself where it gets to it.
      assert.match(String(rollout.warnings.at(-1)),
        /^worker 1 \(slot 1\) exited with code 1: RangeError: boom(, with 1 request and 1 connection still open)?, while it drained$/)
      const succeeded = await deck.untilEvent('rollout.succeeded')
      assert.match(String(succeeded.message),
        /RangeError: boom(, with 1 request and 1 connection still open)?, while it drained$/)
      agent.destroy()
    }
  )

  test('a worker that an exception ends answers the next request on a connection that a client has kept, and ends with the last one', async (t) => {
    const app = path.join(tempFolder(), 'throws-at-sigusr2.cjs')
    await writeFile(app, `process.on('SIGUSR2', () => setTimeout(() => { throw new RangeError('boom') }))
require('node:http').createServer((request, response) => response.end(String(process.pid))).listen(Number(process.env.PORT ?? 0))
`)
    const deck = await startDeckHere(t, app, { workers: 1, flags: ['--crash-grace-ms', '60000'] })
    const { workers: [{ pid }] } = await deck.until({ ready: 1 })
    const url = await deck.appUrl()
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    t.after(() => agent.destroy())
    await keepAliveGet(url, agent).response
    process.kill(pid, 'SIGUSR2')
    await deck.untilEvent(['worker.draining', 'worker.exited'], { worker: 1, cause: 'crash' })
    const { body, headers } = await keepAliveGet(url, agent).response
    assert.deepEqual([body, headers.connection], [String(pid), 'close'])
    const exit = await deck.untilEvent('worker.exited', { worker: 1 })
    assert.deepEqual([exit.cause, exit.code], ['crash', 1])
  })

  rareTest(
    'what does not end is cut when the drain deadline passes, and the exit, the rollout and a metric say so; a process that its worker has left behind is named',
    async (t) => {
      const helper = path.join(tempFolder(), 'he\u202e\n\u001b[31mlper')
      await symlink('/bin/sleep', helper)
      const deck = await startReadyHere(t, 'websocket-echo.js', { workers: 1, env: { HELPER: helper },
        flags: ['--drain-deadline-ms', '1000', '--drain-long-lived-ms', '0', '--drain-spread-ms', '0'] })
      const url = await deck.appUrl()
      const socket = new WebSocket(url.replace('http', 'ws'))
      await once(socket, 'open')
      const upload = http.request(url, { method: 'POST', headers: { expect: '100-continue' } }).on('error', () => {})
      upload.flushHeaders()
      await once(upload, 'continue')
      const closed = once(socket, 'close')
      // The next worker starts no helper, which would outlive these tests.
      await rm(helper)
      const rollout = await deck.rollout('deploy')
      assert.equal((await closed)[0], 1012)
      const [exit] = await deck.history('type=worker.exited')
      const [{ name, pid }] = present(exit.detail?.leftProcesses) as LeftProcess[]
      process.kill(pid, 'SIGKILL')
      assert.deepEqual([rollout.state, rollout.warnings], ['succeeded', [
        'worker 1 (slot 1) ended with 1 request and 1 connection still open, as it had not drained within 1 s (option drain.deadlineMs)'
      ]])
      assert.equal(name, 'he lper')
      assert.deepEqual(exit.detail, { endedRequests: 1, endedConnections: 1,
        closed: { webSockets: 1, eventStreams: 0, connections: 0 }, leftProcesses: [{ name, pid }] })
      assert.equal(exit.message,
        `worker 1 (slot 1) ended, as r2 replaces it, with 1 request and 1 connection still open; it has closed 1 WebSocket; processes that it started still run: he lper (pid ${pid})`)
      assert.equal(await metric(deck, 'clusterdeck_ended_connections_total'), 1)
      assert.equal(await metric(deck, 'clusterdeck_ended_requests_total'), 1)
    }
  )

  rareTest('an app hears of its end by message, its exit listeners run, and its exit code is 0', async (t) => {
    const notes = path.join(tempFolder(), 'notes')
    const deck = await startReadyHere(t, 'cleans-up-at-the-end.js', { workers: 1, env: { NOTES: notes } })
    assert.deepEqual(await deck.stop(), { code: 0, signal: null })
    const [draining, ...rest] = (await readFile(notes, 'utf8')).trim().split('\n')
    assert.match(draining, /^message \{"type":"draining","from":"master","data":\{.*"isLast":true\}\}$/)
    assert.deepEqual(rest, ['message {"type":"shutdown","from":"master"}', 'exit 0'])
  })

  rareTest('an app that closes its servers itself at SIGTERM does so without an error', async (t) => {
    const deck = await startReadyHere(t, 'closes-at-sigterm.js', { workers: 1 })
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    const [exit] = await deck.history('type=worker.exited')
    assert.deepEqual([exit.code, exit.signal], [0, null])
  })

  test('a second SIGTERM kills what is left and exits 1 at once', async (t) => {
    const deck = await startDeck(t, 'answers-with-pid.js', { workers: 1 })
    const { workers: [{ pid }] } = await deck.until({ ready: 1 })
    const slow = keepAliveGet(`${await deck.appUrl()}/?ms=30000`)
    await slow.sent
    deck.signal('SIGTERM')
    await deck.untilStatus(({ state }) => state === 'stopping', 'the stop')
    deck.signal('SIGTERM')
    assert.deepEqual(await deck.exited, { code: 1, signal: null })
    await assert.rejects(slow.response)
    assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  })

  // SIGTERM or SIGINT to all of them, as by the init of a container or Ctrl-C, is of test/cluster/faults.test.ts, and a
  // signal to one worker alone of test/timed/deaths.test.ts.
  test('SIGHUP deploys, SIGUSR2 restarts all, SIGTERM drains: a request under way is answered, new connections are refused, the exit code is 0', async (t) => {
    const gate = path.join(tempFolder(), 'gate')
    const deck = await startReady(t, 'answers-when-told.js', { workers: 2, env: { GATE: gate } })
    deck.signal('SIGHUP')
    const deploy = await deck.untilEvent('rollout.succeeded')
    assert.deepEqual([deploy.detail?.kind, deploy.detail?.to, deploy.actor], ['deploy', 'r2', 'signal'])
    deck.signal('SIGUSR2')
    const restart = await deck.untilEvent('rollout.succeeded', { rollout: 2 })
    assert.deepEqual([restart.detail?.kind, restart.detail?.to], ['restart', 'r2'])

    const { workers } = await deck.until({ ready: 2 })
    const url = await deck.appUrl()
    const slow = keepAliveGet(`${url}/slow`)
    await slow.sent
    deck.signal('SIGTERM')
    await deck.untilStatus(({ state, workers }) => state === 'stopping' && workers.length === 1,
      'the other worker to be gone')
    // What comes before the keeper has let go of the socket is cut with it.
    let refusal
    do refusal = await keepAliveGet(url).response.then(() => assert.fail('a new connection was answered'),
      (error) => error.code)
    while (refusal === 'ECONNRESET')
    assert.equal(refusal, 'ECONNREFUSED')
    await writeFile(gate, '')
    const { body } = await slow.response
    assert.ok(workers.some(({ pid }) => String(pid) === body), body)
    assert.deepEqual(await deck.exited, { code: 0, signal: null })
  })
})

/** Begins a rollout, until the first worker drains. Returns the promise of the rollout at its end. */
async function beginDrain (deck: DeckClient, kind: 'restart' | 'deploy' = 'restart') {
  const rolled = deck.rollout(kind)
  // Where the deck ends before it, nobody waits for it.
  rolled.catch(() => {})
  await deck.untilEvent('worker.draining', { worker: 1 })
  return { rolled }
}

/** An app that serves in all ways, with its first worker. */
async function startEveryWay (t: TestOwner, graceMs: number) {
  const port = await freePort()
  const deck = await startReadyHere(t, 'serves-every-way.js', { workers: 1,
    env: { PORTS: `${port},0,0,0`, LEDGER: path.join(tempFolder(), 'ledger') },
    flags: ['--drain-idle-grace-ms', String(graceMs)] })
  return { deck, port, url: `http://127.0.0.1:${port}` }
}

function keepAliveGet (url: string, agent = new http.Agent({ keepAlive: true })) {
  const request = http.get(url, { agent })
  const response: Promise<{ body: string, headers: http.IncomingHttpHeaders, isReused: boolean }> = new Promise(
    (resolve, reject) => {
      request.on('error', reject).on('response', (message) => {
        let body = ''
        message.on('error', reject).setEncoding('utf8').on('data', (text) => {
          body += text
        }).on('end', () => resolve({ body, headers: message.headers, isReused: request.reusedSocket }))
      })
    }
  )
  response.catch(() => {})
  return { response, sent: new Promise((resolve) => request.once('finish', resolve)) }
}
