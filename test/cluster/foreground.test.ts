import assert from 'node:assert/strict'
import net from 'node:net'
import { once } from 'node:events'
import path from 'node:path'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { startReady } from '../support/deck.ts'
import { openDataDir } from '../../server/system/data-dir.ts'
import { above } from '../support/event-log.ts'
import { tempFolder } from '../support/folder.ts'

test('an upgrade of the host takes the only app along, whose workers still start; that app is not started again as its deck ends', async (t) => {
  const gate = path.join(tempFolder(), 'gate')
  const deck = await startReady(t, 'waits-at-the-gate.js', { workers: 1, env: { GATE: gate } })
  writeFileSync(gate, '')
  await deck.put('/scale', { workers: 2 })
  assert.equal((await deck.post('/host/upgrade', {})).status, 202)
  await deck.untilEvent('worker.forked', { slot: 2, worker: above(2) })
  rmSync(gate)
  await deck.meetNext()
  await deck.untilStatus(({ readyWorkers, upgrade }) => readyWorkers === 2 && upgrade === null, 'the next master')
  const { body: { items: [{ name }] } } = await deck.api<{ items: { name: string }[] }>('/apps')

  const client = net.connect(Number(new URL(await deck.appUrl()).port), '127.0.0.1')
  t.after(() => client.destroy())
  await once(client, 'connect')
  client.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n')
  const stopped = await deck.post(`/apps/${name}/stop`)
  assert.equal(stopped.status, 202)
  const again = await deck.api<{ code: string }>(`/apps/${name}/start`, { method: 'POST' })
  assert.deepEqual([again.status, again.body.code], [409, 'stopping'])
  client.destroy()
  assert.equal((await deck.exited).code, 0)
})

test('a data folder that was let go of is the next master\'s: what that one has announced stays', () => {
  const folder = tempFolder()
  const [first, next] = [openDataDir(folder), openDataDir(folder)]
  const announcement = { pid: process.pid, startTime: null, keeper: null, pidNamespace: null,
    adminUrl: 'http://127.0.0.1:1', startedAt: new Date(0).toISOString() }
  first.lock()
  first.announce(announcement)
  first.release({ handsOver: false })
  assert.equal(existsSync(path.join(folder, 'master.json')), false)
  next.lock()
  next.announce(announcement)
  first.release({ handsOver: false })
  assert.ok(existsSync(path.join(folder, 'master.json')))
  next.release({ handsOver: false })
})
