import assert from 'node:assert/strict'
import path from 'node:path'
import { test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { startReady } from '../support/deck.ts'
import { serveHttp } from '../support/http-server.ts'
import { until } from '../support/until.ts'

test('the heartbeat of an app goes on with the next master, a change counts at once, and nothing shows its key', async (t) => {
  const received: string[] = []
  const { url } = await serveHttp(t, (request, response) => {
    received.push(`${request.method} ${request.url}`)
    response.writeHead(received.length === 1 ? 404 : 200).end()
  })
  // By itself none but the first of a master comes in this time.
  const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, flags: ['--heartbeat-every-ms', '86400000'],
    env: { CLUSTERDECK_HEARTBEAT_URL: `${url}/ping/hidden-key` } })
  const failed = await deck.untilEvent('heartbeat.failed')
  assert.equal(failed.message, `${url} did not take the heartbeat: answered 404`)
  const upgraded = await runCliHere(['upgrade', '--wait', '--data-dir', deck.folder], {
    cwd: path.dirname(deck.folder)
  })
  assert.equal(upgraded.code, 0, upgraded.stderr)
  await until(() => received.length === 2, 'the heartbeat of the next master')
  const changed = await runCliHere(['config', 'set', 'heartbeat.everyMs=12h', '--data-dir', deck.folder])
  assert.equal(changed.code, 0, changed.stderr)
  await until(() => received.length === 3, 'the heartbeat after the change')
  assert.deepEqual(received, Array(3).fill('GET /ping/hidden-key'))
  const { stdout } = await runCliHere(['config', '--data-dir', deck.folder])
  assert.match(stdout, /heartbeat\.url +\(hidden\)/)
  assert.doesNotMatch(stdout + JSON.stringify(await deck.history('limit=1000')), /hidden-key/)
})
