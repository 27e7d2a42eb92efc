import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { createOrphanHandle } from '../../../server/cluster/orphan-handle.ts'
import { identifyProcess } from '../../../server/system/process-identity.ts'
import { holdsFileOf, orderText, parseOrderText } from '../../../workers/protocol.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import type { CrashNote } from '../../../server/lifecycle/state.ts'
import type { ToldExit } from '../../../server/lifecycle/loss.ts'

const LIMITS = Object.freeze({ idleGraceMs: 5000, deadlineMs: 30_000, stalledMs: 10_000, longLivedMs: 14_400_000,
  spreadMs: 30_000, isLast: false })

async function setUp (t: TestContext,
  { folder = tempFolder(), isTold = false }: { folder?: string, isTold?: boolean } = {})
{
  const child = spawn('sleep', ['600'])
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const [orderFile, crashFile] = [path.join(folder, 'orders', '1.json'), path.join(folder, 'crash.json')]
  const exits: ToldExit[] = []
  const said: unknown[] = []
  const handle = createOrphanHandle({ ...identifyProcess(Number(child.pid)), orderFile, crashFile }, { isTold,
    onMessage: (message) => said.push(message), onExit: (exit) => exits.push(exit) })
  return { child, handle, exits, said, orderFile, crashFile, order: () => JSON.parse(readFileSync(orderFile, 'utf8')) }
}

test('an orphan is claimed at once, and told to drain with all that it has to know', async (t) => {
  const { child, handle, order } = await setUp(t)
  assert.deepEqual(order(), { pid: child.pid, claimedBy: process.pid, drain: null })
  handle.tell({ type: 'drain', ...LIMITS })
  assert.deepEqual(order(), { pid: child.pid, claimedBy: process.pid, drain: LIMITS })
  handle.tell({ type: 'end-connections', spreadMs: 0, isLast: true })
  assert.deepEqual(order().drain, { ...LIMITS, longLivedMs: 0, spreadMs: 0, isLast: true })
})

test('what an orphan still holds is read from where it writes that, and is told as often as it does', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { child, handle, said, orderFile } = await setUp(t)
  const held = { requests: 0, transfers: 1, webSockets: 2, eventStreams: 3, connections: 4, sessions: 5 }
  handle.tell({ type: 'drain', ...LIMITS })
  writeFileSync(holdsFileOf(orderFile), JSON.stringify({ pid: child.pid, ...held }))
  t.mock.timers.tick(2000)
  t.mock.timers.tick(2000)
  assert.deepEqual(said, [{ type: 'holds', ...held }])
  utimesSync(holdsFileOf(orderFile), 1, 1)
  t.mock.timers.tick(2000)
  assert.equal(said.length, 2)
  handle.leave({ code: 0, signal: null })
  assert.equal(existsSync(holdsFileOf(orderFile)), false)
})

test('the end of one that is seen to be gone is told, and its order is removed', async (t) => {
  const { child, handle, exits, orderFile } = await setUp(t)
  handle.terminate()
  await once(child, 'exit')
  await until(() => exits.length > 0, 'the end to be told')
  assert.deepEqual(exits, [{ code: null, signal: null, error: null }])
  assert.equal(existsSync(orderFile), false)
})

test('the end that its keeper has seen is told as it was, with the error that it left', async (t) => {
  // It would be seen to be gone.
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { child, handle, exits, crashFile } = await setUp(t)
  const error = { errorName: 'Error', errorMessage: 'boom', stack: null }
  writeFileSync(crashFile, JSON.stringify({ at: Date.now(), ...error }))
  handle.kill()
  await once(child, 'exit')
  handle.leave({ code: null, signal: 'SIGKILL' })
  const [{ error: found, ...how }] = exits
  const { errorName, errorMessage, stack } = found as CrashNote
  assert.deepEqual(how, { code: null, signal: 'SIGKILL' })
  assert.deepEqual({ errorName, errorMessage, stack }, error)
  assert.equal(existsSync(crashFile), false)
})

test('one that is gone waits for its keeper to tell how it ended, where there is one that does', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { child, handle, exits } = await setUp(t, { isTold: true })
  child.kill('SIGKILL')
  await once(child, 'exit')
  for (let polls = 0; polls < 20; polls++) t.mock.timers.tick(100)
  assert.deepEqual(exits, [])
  handle.leave({ code: 7, signal: null })
  assert.deepEqual(exits, [{ code: 7, signal: null, error: null }])
})

test('one that cannot be written to keeps nobody from starting, and is told to go by a signal', async (t) => {
  const folder = tempFolder()
  writeFileSync(path.join(folder, 'orders'), 'no folder')
  const { child, handle, exits } = await setUp(t, { folder })
  handle.tell({ type: 'drain', ...LIMITS })
  assert.equal((await once(child, 'exit'))[1], 'SIGTERM')
  await until(() => exits.length > 0, 'the end to be told')
})

test('an order fits into the name of a link, and says the same there', () => {
  const longest = { idleGraceMs: 2 ** 31 - 1, deadlineMs: 2 ** 31 - 1, stalledMs: 2 ** 31 - 1, longLivedMs: 2 ** 31 - 1,
    spreadMs: 2 ** 31 - 1, isLast: true }
  for (const drain of [null, LIMITS, longest]) {
    const text = orderText({ pid: 2 ** 22, claimedBy: 2 ** 22, drain })
    assert.ok(text.length <= 59, text)
    assert.deepEqual(parseOrderText(text), { pid: 2 ** 22, claimedBy: 2 ** 22, drain })
  }
})
