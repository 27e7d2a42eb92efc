import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import http2 from 'node:http2'
import { once } from 'node:events'
import { startReadyHere } from '../support/deck-here.ts'
import { hammerHttp2 } from '../support/http2-load.ts'
import { rareTest } from '../support/rare.ts'

const LOADS = [['a new session for every request', { isKept: false }], ['long sessions', {}], [
  'long sessions with ten streams each',
  { streams: 10 }
]] as const

// Over TLS, and in other faults, it is among the loads of test/cluster/faults.test.ts.
describe('HTTP/2 in rollouts', () => {
  test(`no stream is lost: ${LOADS.map(([name]) => name).join(', ')}`, async (t) => {
    const deck = await startReadyHere(t, 'http2-app.js', { workers: 1 })
    const url = (await deck.appUrl()).replace('localhost', '127.0.0.1')
    for (const [name, load] of LOADS) {
      const clients = hammerHttp2(t, url, load)
      assert.equal((await deck.rollout('restart')).state, 'succeeded')
      await clients.until(({ total, sessions }) => total > 100 && sessions > 16)
      const { total, failures } = await clients.stop()
      assert.deepEqual(failures, [], `${name}: of ${total}`)
    }
    const exits = await deck.history('type=worker.exited')
    assert.deepEqual([...new Set(exits.map(({ cause, code }) => `${cause} ${code}`))], ['restart 0'])
  })

  rareTest('an idle session is not told to go before its next request, which is answered', async (t) => {
    const deck = await startReadyHere(t, 'http2-app.js', { workers: 1, flags: ['--drain-idle-grace-ms', '60000'] })
    const session = http2.connect(await deck.appUrl())
    await once(session, 'remoteSettings')
    await deck.post('/rollouts', { kind: 'restart' })
    await deck.untilEvent('worker.draining', { worker: 1 })
    const stream = session.request({ ':path': '/' }).setEncoding('utf8')
    const [pid] = await once(stream, 'data')
    const exit = await deck.untilEvent('worker.exited', { worker: 1 })
    assert.equal(exit.pid, Number(pid), 'the lame duck has answered')
    assert.equal(session.closed, true)
  })
})
