import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { askDatagram, get } from '../support/asking.ts'
import { startReady } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'

/** A busy machine takes a second to boot a worker. */
const SOON = ['--ready-timeout-ms', '4000']

describe('apps that are no server', { concurrency: 4 }, () => {
  test('one with a timer counts as ready once its time to listen is over; that is said once, with the option that saves the wait', async (t) => {
    const deck = await startReadyHere(t, 'never-listens.js', { flags: SOON })
    const [said, ...others] = await deck.history('type=worker.no-server')
    assert.deepEqual(others, [])
    assert.match(String(said.message),
      /^worker \d+ \(slot \d\) does not listen after [\d.]+ s and counts as ready\. .*--ready-signal online/)
    assert.match(deck.output.stdout, /worker\.no-server Worker \d+/)
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.equal((await deck.history('type=worker.no-server')).length, 1)
  })

  rareTest('one that holds no code of a server counts as ready well before its time is over', async (t) => {
    const deck = await startDeckHere(t, 'never-listens.js', { workers: 1, flags: ['--ready-timeout-ms', '600000'] })
    const { uptimeMs } = await deck.untilEvent('worker.ready')
    assert.ok(Number(uptimeMs) >= 5000, `after ${uptimeMs} ms`)
    assert.equal((await deck.history('type=worker.no-server')).length, 1)
  })

  rareTest('a server that is slow to start is waited for', async (t) => {
    const deck = await startDeckHere(t, 'boots-slowly.js', { workers: 1, env: { BOOT_MS: '6500' } })
    const { uptimeMs } = await deck.untilEvent('worker.ready')
    assert.ok(Number(uptimeMs) >= 6500, `after ${uptimeMs} ms`)
    assert.deepEqual(await deck.history('type=worker.no-server'), [])
  })

  test('a server of UDP alone is ready once it is bound, also with a port for itself, and so is its successor', async (t) => {
    const port = await freePort()
    const deck = await startReadyHere(t, 'udp-echo.js', { flags: ['--ready-timeout-ms', '600000'],
      env: { PORT: String(port), EXCLUSIVE: 'true' } })
    assert.deepEqual((await deck.status()).app.addresses, [`udp://127.0.0.1:${port}`])
    assert.equal(await askDatagram(port), 'hello')
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.equal(await askDatagram(port), 'hello')
    assert.deepEqual(await deck.history('type=worker.no-server'), [])
  })

  test('a worker that is not ready gets no datagram, unless it waits for an answer itself', async (t) => {
    const port = await freePort()
    const deck = await startDeckHere(t, 'udp-echo.js', { workers: 1, flags: ['--ready-signal', 'message'],
      env: { PORT: String(port), SAYS_READY: 'true' } })
    const { workers: [{ pid }] } = await deck.untilStatus(({ app }) => app.addresses.length === 1, 'its port')
    const answer = askDatagram(port)
    // What is answered too early is there before this.
    await deck.status()
    process.kill(present(pid), 'SIGUSR2')
    assert.equal(await answer, 'hello, ready')

    const other = await freePort()
    await startReadyHere(t, 'udp-echo.js', { workers: 1, flags: ['--ready-signal', 'message'],
      env: { PORT: String(other), ASKS_FIRST: 'true' } })
  })

  rareTest('a UDP socket outlives its workers and its master: no datagram goes unanswered', async (t) => {
    const port = await freePort()
    const deck = await startReady(t, 'udp-echo.js', { flags: ['--ready-signal', 'online'],
      env: { PORT: String(port) } })
    const socket = createSocket('udp4').bind()
    t.after(() => socket.close())
    await once(socket, 'listening')
    // A worker that is ready when it runs has not bound its socket yet.
    const knocking = setInterval(() => socket.send('0', port, '127.0.0.1'), 20)
    await once(socket, 'message')
    clearInterval(knocking)
    const stopping = new AbortController()
    const asking = (async () => {
      let count = 0
      while (!stopping.signal.aborted) {
        socket.send(String(++count), port, '127.0.0.1')
        await untilAnswered(String(count))
      }
      return count
    })()
    asking.catch(() => {})

    async function untilAnswered (text: string) {
      const signal = AbortSignal.timeout(10_000)
      // The knocking may have more than one answer.
      for (let answer; String(answer) !== text;) [answer] = await once(socket, 'message', { signal })
    }
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    await deck.loseMaster()
    await deck.until({ ready: 2 })
    stopping.abort()
    assert.ok(await asking > 5)
    assert.deepEqual((await deck.history('type=worker.exited')).map(({ cause, code }) => `${cause} ${code}`).sort(), [
      'master-lost 0',
      'master-lost 0',
      'restart 0',
      'restart 0'
    ])
  })

  rareTest('one that has nothing to do ends, as under plain Node, and is told what a job needs', async (t) => {
    const deck = await startDeckHere(t, 'does-nothing.js', { workers: 1, flags: SOON })
    const { message, cause } = await deck.untilEvent('worker.exited', { worker: 1 })
    assert.match(String(message),
      /^worker 1 \(slot 1\) exited with code 0 before it was ready; it has come to its end .*--restart-policy on-failure\)$/)
    assert.equal(cause, 'boot-failure')
  })

  rareTest(
    'a server in a thread counts as ready and answers; it is said that no second worker can listen there, and why the next one cannot',
    async (t) => {
      const port = await freePort()
      const deck = await startDeckHere(t, 'runs-threads.js', { workers: 1, flags: SOON,
        env: { WHAT: 'server', PORT: String(port) } })
      const { workers: [{ pid }] } = await deck.until({ ready: 1 })
      assert.equal(await get(`http://127.0.0.1:${port}/`), String(pid))
      const [{ message }] = await deck.history('type=worker.no-server')
      assert.match(String(message),
        /counts as ready\. .*\. It runs threads: the socket of a thread is its own, and no second worker can listen there$/)
      assert.equal((await deck.rollout('restart')).state, 'failed')
      const taken = await deck.untilEvent('worker.thread-port-taken')
      assert.match(String(taken.message),
        new RegExp(
          `^a thread of worker 2 \\(slot 1\\) cannot listen, as another process does \\(listen EADDRINUSE: .*:${port}\\): .*stop-first$`
        ))
      assert.equal(await get(`http://127.0.0.1:${port}/`), String(pid))
    }
  )

  rareTest('one whose work is done in a thread counts as ready', async (t) => {
    const deck = await startReadyHere(t, 'runs-threads.js', { workers: 1, flags: SOON, env: { WHAT: 'consumer' } })
    assert.deepEqual(await deck.history('type=worker.exited'), [])
  })

  rareTest('an idle pool of threads keeps nothing running', async (t) => {
    const deck = await startDeckHere(t, 'runs-threads.js', { workers: 1, flags: SOON, env: { WHAT: 'pool' } })
    const { code, cause } = await deck.untilEvent('worker.exited', { worker: 1 })
    assert.deepEqual([code, cause], [0, 'boot-failure'])
  })

  rareTest('a start that takes long says on the terminal what it is waiting for, and the option', async (t) => {
    const deck = await startDeckHere(t, 'never-listens.js', { flags: ['--ready-timeout-ms', '60000'] })
    const { message } = await deck.untilEvent('master.waiting')
    assert.equal(message,
      '2 of 2 workers are not ready yet: the app does not listen yet (option ready.signal: auto; without a server set --ready-signal online)')
    assert.ok(deck.output.stdout.includes(message))
  })
})
