import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import type { DeckClient } from '../support/deck-client.ts'

/** @returns what has become of it, and the file */
async function diagnose (deck: DeckClient, body: { kind: string, durationMs?: number }) {
  const { status, headers, body: started } = await deck.post('/workers/1/diagnostics', body)
  assert.equal(status, 202, JSON.stringify(started))
  assert.equal(headers.get('location'), `/api/v1/diagnostics/${started.id}`)
  await deck.untilEvent(['diagnostics.finished', 'diagnostics.failed'], { detail: { id: started.id } })
  const { body: item } = await deck.api(`/diagnostics/${started.id}`)
  const response = await fetch(`${deck.adminUrl}/api/v1/diagnostics/${started.id}/file`, {
    headers: { authorization: `Bearer ${deck.token}` }
  })
  return { item, response, text: await response.text() }
}

describe('diagnostics', { concurrency: true }, () => {
  test('a look into a worker: profile, snapshot, statistics and report, to be downloaded, without the environment', async (t) => {
    const deck = await startReadyHere(t, 'hangs.js', { workers: 1, flags: ['--watchdog-timeout-ms', '2000'],
      env: { DATABASE_PASSWORD: 'a-secret-of-the-app' } })
    const url = await deck.appUrl()
    const profiling = new AbortController()
    const busy = (async () => {
      while (!profiling.signal.aborted) await (await fetch(`${url}/busy?ms=20`)).text()
    })()
    const profile = await diagnose(deck, { kind: 'cpu-profile', durationMs: 500 })
    profiling.abort()
    await busy
    const { nodes }: { nodes: { callFrame: { functionName: string } }[] } = JSON.parse(profile.text)
    assert.ok(nodes.some(({ callFrame }) => callFrame.functionName === 'spinAWhile'), 'where the time went')
    assert.deepEqual([profile.item.state, profile.item.actor, profile.item.slot, profile.item.warning], ['done',
      'the owner\'s token', 1, null])
    assert.equal(profile.response.headers.get('content-disposition'), 'attachment; filename="1-worker-1.cpuprofile"')

    const statistics = await diagnose(deck, { kind: 'heap-statistics' })
    assert.ok(JSON.parse(statistics.text).heapStatistics.used_heap_size > 0)

    const report = await diagnose(deck, { kind: 'report' })
    const content = JSON.parse(report.text)
    assert.ok(content.javascriptStack && content.header.nodejsVersion)
    assert.equal(content.environmentVariables, undefined)
    assert.equal(content.header.networkInterfaces, undefined)
    assert.doesNotMatch(report.text, /a-secret-of-the-app/)

    const snapshot = await diagnose(deck, { kind: 'heap-snapshot' })
    assert.ok(JSON.parse(snapshot.text).snapshot.node_count > 1000)
    assert.match(String(snapshot.item.warning), /stops .* passwords/)
    assert.equal(snapshot.item.bytes, snapshot.text.length)

    const folder = path.join(deck.folder, 'diagnostics')
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    for (const name of readdirSync(folder)) assert.equal(statSync(path.join(folder, name)).mode & 0o777, 0o600, name)
    assert.deepEqual((await deck.history('type=diagnostics.*')).map(({ type, actor }) => [type, actor]),
      ['heap-snapshot', 'report', 'heap-statistics', 'cpu-profile'].flatMap((
        kind
      ) => [...kind === 'cpu-profile' ? [] : [['diagnostics.downloaded', 'the owner\'s token']], [
        'diagnostics.finished',
        'the owner\'s token'
      ], ['diagnostics.started', 'the owner\'s token']]))
    assert.deepEqual(await deck.history('type=worker.exited'), [], 'it lives on')
    assert.deepEqual((await deck.api('/diagnostics')).body.items.map(({ id }) => id), [4, 3, 2, 1])
    assert.equal((await deck.api('/diagnostics/2', { method: 'DELETE' })).status, 200)
    assert.equal((await deck.api('/diagnostics/2')).status, 404)
  })

  rareTest('one at a time per worker, and one whose worker dies fails', async (t) => {
    const deck = await startReadyHere(t, 'hangs.js')
    const order = { method: 'POST', body: JSON.stringify({ kind: 'cpu-profile', durationMs: 60_000 }) }
    assert.equal((await deck.api('/workers/1/diagnostics', order)).status, 202)
    const second = await deck.api('/workers/1/diagnostics', order)
    assert.deepEqual([second.status, second.body.code], [409, 'diagnostics-running'])
    assert.equal((await deck.api('/workers/2/diagnostics', order)).status, 202)
    assert.equal((await deck.api('/diagnostics/1', { method: 'DELETE' })).status, 409)
    assert.equal((await deck.api('/diagnostics/1/file')).status, 404)
    await deck.post('/workers/1/kill')
    const { detail } = await deck.untilEvent('diagnostics.failed')
    assert.deepEqual([detail?.id, detail?.state, detail?.error], [1, 'failed', 'the worker ended before it was done'])
  })

  rareTest('from the command line, with a warning, into a file of its own', async (t) => {
    const deck = await startReadyHere(t, 'hangs.js', { workers: 1, flags: ['--diagnostics-max-files', '2'] })
    const cwd = tempFolder()
    const cli = (...args: string[]) => runCliHere(['diagnose', '1', '--data-dir', deck.folder, ...args], { cwd })
    const snapshot = await cli('--kind', 'heap-snapshot', '--output', 'now.heapsnapshot')
    assert.deepEqual([snapshot.code, snapshot.stdout], [0, `${path.join(cwd, 'now.heapsnapshot')}\n`])
    assert.match(snapshot.stderr, /warning: The worker stops .* passwords/)
    assert.equal(statSync(path.join(cwd, 'now.heapsnapshot')).mode & 0o777, 0o600)
    assert.equal(JSON.parse(readFileSync(path.join(cwd, 'now.heapsnapshot'), 'utf8')).snapshot.meta.node_fields[0],
      'type')
    const profile = await cli('--kind', 'cpu-profile', '--duration', '200ms', '--json')
    assert.equal(JSON.parse(profile.stdout).file, path.join(cwd, '2-worker-1.cpuprofile'))
    assert.equal((await cli('--kind', 'heap-statistics', '--output', 'now.heapsnapshot')).code, 1,
      'nothing is overwritten')
    assert.deepEqual((await deck.api('/diagnostics')).body.items.map(({ id }) => id), [3, 2], 'the oldest goes')
    assert.deepEqual((await cli('--kind', 'core')).code, 2)
  })
})
