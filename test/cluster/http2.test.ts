import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import http2 from 'node:http2'
import { once } from 'node:events'
import { startDeckHere } from '../support/deck-here.ts'
import { hammerHttp2 } from '../support/http2-load.ts'
import { rareOnly, rareTest } from '../support/rare.ts'

const LOADS = [['a new session for every request', { isKept: false }], ['long sessions', {}], [
  'long sessions with ten streams each',
  { streams: 10 }
]] as const
/** Below HTTP/2 the one is as good as the other: TLS has the load in which most is under way. */
const KINDS = [['clear text', 'http2-app.js', LOADS], ['TLS', 'http2-over-tls.js', LOADS.slice(-1)]] as const

describe('HTTP/2 in rollouts', () => {
  for (const [kind, app, loads] of KINDS) {
    test(`no stream is lost over ${kind}: ${loads.map(([name]) => name).join(', ')}`, {
      skip: kind === 'TLS' && rareOnly
    }, async (t) => {
      const deck = await startDeckHere(t, app, { workers: 1 })
      await deck.until({ ready: 1 })
      const url = (await deck.appUrl()).replace('localhost', '127.0.0.1')
      for (const [name, load] of loads) {
        const clients = hammerHttp2(t, url, load)
        assert.equal((await deck.rollout('restart')).state, 'succeeded')
        await clients.until(({ total, sessions }) => total > 100 && sessions > 16)
        const { total, failures } = await clients.stop()
        assert.deepEqual(failures, [], `${name}: of ${total}`)
      }
      const exits = await deck.history('type=worker.exited')
      assert.deepEqual([...new Set(exits.map(({ cause, code }) => `${cause} ${code}`))], ['restart 0'])
    })
  }

  rareTest('an idle session is not told to go before its next request, which is answered', async (t) => {
    const deck = await startDeckHere(t, 'http2-app.js', { workers: 1, flags: ['--drain-idle-grace-ms', '60000'] })
    await deck.until({ ready: 1 })
    const session = http2.connect(await deck.appUrl())
    await once(session, 'remoteSettings')
    await deck.api('/rollouts', { method: 'POST', body: '{"kind":"restart"}' })
    await deck.untilEvent(({ type, worker }) => type === 'worker.draining' && worker === 1,
      'the drain of the old worker')
    const stream = session.request({ ':path': '/' }).setEncoding('utf8')
    const [pid] = await once(stream, 'data')
    const exit = await deck.untilEvent(({ type, worker }) => type === 'worker.exited' && worker === 1,
      'its end, long before the grace period is over')
    assert.equal(exit.pid, Number(pid), 'the lame duck has answered')
    assert.equal(session.closed, true)
  })
})
