import assert from 'node:assert/strict'
import http from 'node:http'
import net from 'node:net'
import path from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { errorReason } from '../../server/errors.ts'
import { runCli, startDeck } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { busyPort, freePort } from '../support/ports.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

/** @returns the pid that answers, or the code of the error */
function ask (where: http.RequestOptions): Promise<string> {
  return new Promise((resolve) => {
    const request = http.get({ agent: false, host: '127.0.0.1', timeout: 40_000, ...where },
      (response) => response.setEncoding('utf8').on('data', resolve)).on('timeout',
        () => request.destroy(new Error('no answer'))).on('error', (error) => resolve(errorReason(error)))
  })
}

describe('where an app listens', { concurrency: 2 }, () => {
  rareTest(
    'an app that moves when its port is busy cannot leave it in a restart: that fails, names both addresses, and the old workers go on',
    async (t) => {
      const port = await freePort()
      const deck = await startDeckHere(t, 'moves-when-its-port-is-busy.js', { workers: 1, env: { PORT: String(port) } })
      const { workers: [{ pid }] } = await deck.until({ ready: 1 })
      const { state, reason } = await deck.rollout('restart')
      assert.equal(state, 'failed')
      assert.match(String(reason),
        new RegExp(
          `^worker 2 \\(slot 1\\) listens on http://127\\.0\\.0\\.1:\\d+, but the worker before it on http://127\\.0\\.0\\.1:${port} \\(option ready\\.addresses: same\\)$`
        ))
      assert.equal(await ask({ port }), String(pid))
      // The one that has moved is on its way out.
      const { app: { addresses } } = await deck.until({ ready: 1 })
      assert.deepEqual(addresses, [`http://127.0.0.1:${port}`])
    }
  )

  rareTest('after its death such an app comes back where it was, as the address is made free for it', async (t) => {
    const port = await freePort()
    const deck = await startDeckHere(t, 'moves-when-its-port-is-busy.js', { workers: 1, env: { PORT: String(port) } })
    const { workers: [{ pid }] } = await deck.until({ ready: 1 })
    process.kill(pid, 'SIGKILL')
    await deck.untilEvent(
      ({ type, worker, message }) =>
        type === 'worker.draining' && worker === 2 && /listens on .* but the worker before it/.test(String(message)),
      'the worker that has moved to be sent away'
    )
    await deck.until({ ready: 1 })
    assert.match(await ask({ port }), /^\d+$/)
  })

  rareTest('with ready.addresses "any" it may move, and connections to the old address are refused, not left waiting',
    async (t) => {
      const port = await freePort()
      const deck = await startDeckHere(t, 'moves-when-its-port-is-busy.js', { workers: 1, env: { PORT: String(port) },
        flags: ['--ready-addresses', 'any'] })
      await deck.until({ ready: 1 })
      assert.equal((await deck.rollout('restart')).state, 'succeeded')
      const { app: { addresses: [address] } } = await deck.until({ ready: 1 })
      assert.match(await ask({ port: new URL(address).port }), /^\d+$/)
      await until(async () => await ask({ port }) === 'ECONNREFUSED', 'the old address to be closed')
    })

  rareTest('the next master expects its workers where those of the last one were', async (t) => {
    const port = await freePort()
    const deck = await startDeck(t, 'moves-when-its-port-is-busy.js', { workers: 1, env: { PORT: String(port) } })
    const { workers: [{ pid }] } = await deck.until({ ready: 1 })
    await deck.loseMaster()
    await deck.untilEvent(
      ({ type, message }) => type === 'worker.draining' && /but the worker before it on/.test(String(message)),
      'the worker that has moved to be sent away'
    )
    assert.equal(await ask({ port }), String(pid), 'the worker of the dead master goes on')
  })

  test('an app that looks for a free port finds the one it wants: at the start, in a restart, after a death', async (t) => {
    const port = await freePort()
    const deck = await startDeckHere(t, 'looks-for-a-free-port.js', { env: { PORT: String(port) } })
    const { workers } = await deck.until({ ready: 2 })
    const here = [`http://localhost:${port}`]
    assert.deepEqual((await deck.status()).app.addresses, here)
    const listening = await deck.history('type=worker.listening')
    assert.deepEqual(listening.map(({ message }) => message), [...here, ...here],
      'what it only looked at is none of its addresses')
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.deepEqual((await deck.status()).app.addresses, here)
    const [one] = (await deck.until({ ready: 2 })).workers
    assert.ok(!workers.some(({ pid }) => pid === one.pid))
    process.kill(one.pid, 'SIGKILL')
    await deck.untilEvent(
      ({ type, slot, worker }) => type === 'worker.ready' && slot === one.slot && Number(worker) > one.id,
      'the replacement'
    )
    assert.deepEqual((await deck.status()).app.addresses, here)
    assert.match(await ask({ port }), /^\d+$/)
    assert.deepEqual(await deck.stop(), { code: 0, signal: null })
  })

  rareTest('whoever looks for a free port is not ready by that', async (t) => {
    const deck = await startDeckHere(t, 'looks-for-a-free-port.js', { workers: 1,
      env: { PORT: String(await freePort()), LATER: '100000' }, flags: ['--ready-timeout-ms', '4000'] })
    const draining = await deck.untilEvent(
      ({ type, worker }) => ['worker.draining', 'worker.ready'].includes(type) && worker === 1,
      'the end of its time'
    )
    // Its timer is all that it does: see test/cluster/no-server.test.ts.
    assert.equal(draining.type, 'worker.ready')
    assert.deepEqual((await deck.status()).app.addresses, [])
    assert.deepEqual(await deck.history('type=worker.listening'), [])
  })

  rareTest('a second port that is in use fails the start with its address, as the first one does', async () => {
    const [port, { port: second, close }] = [await freePort(), await busyPort()]
    const app = fileURLToPath(new URL('../fixtures/listens-twice.js', import.meta.url))
    const { code, stderr } = await runCli(['start', app, '--workers', '2', '--admin-port', '0'], {
      env: { PORT: String(port), SECOND_PORT: String(second) },
      cwd: tempFolder()
    })
    await close()
    assert.equal(code, 1)
    assert.match(stderr,
      new RegExp(
        `^clusterdeck: 127\\.0\\.0\\.1:${second} is in use \\(EADDRINUSE\\): .* \\(pid ${process.pid}.*\\) listens there; .*clusterdeck adopt --port ${second}\n$`
      ))
  })

  rareTest('a worker that listens twice is ready once it has both, and so is its successor', async (t) => {
    const [port, second] = [await freePort(), await freePort()]
    const deck = await startDeckHere(t, 'listens-twice.js', { workers: 1,
      env: { PORT: String(port), SECOND_PORT: String(second) } })
    await deck.until({ ready: 1 })
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    const events = (await deck.history('limit=100')).reverse().filter(({ type }) =>
      ['worker.listening', 'worker.ready'].includes(type)
    )
    assert.deepEqual(events.map(({ type, worker }) => `${type} ${worker}`), ['worker.listening 1', 'worker.listening 1',
      'worker.ready 1', 'worker.listening 2', 'worker.listening 2', 'worker.ready 2'])
  })

  rareTest('a Unix socket in the abstract namespace is shared, and rolled, as any other', async (t) => {
    const name = `clusterdeck-test-${process.pid}-${path.basename(tempFolder())}`
    const deck = await startDeckHere(t, 'abstract-socket.js', { env: { SOCKET_NAME: name } })
    await deck.until({ ready: 2 })
    assert.deepEqual((await deck.status()).app.addresses, [`unix:@${name}`])
    const answer = () =>
      new Promise((resolve, reject) => {
        const socket = net.connect(`\0${name}`,
          () => socket.end('GET / HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n'))
        let text = ''
        socket.setEncoding('utf8').on('data', (chunk) => {
          text += chunk
        }).on('end', () => resolve(text.split('\r\n\r\n')[1])).on('error', reject)
      })
    const before = await answer()
    assert.match(String(before), /^\d+$/)
    assert.equal((await deck.rollout('deploy')).state, 'succeeded')
    const after = await answer()
    assert.match(String(after), /^\d+$/)
    assert.notEqual(after, before)
  })
})
