import assert from 'node:assert/strict'
import { closeSync, openSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { startDeck, startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { hang } from '../support/hang.ts'
import { present } from '../support/present.ts'
import { rareTest } from '../support/rare.ts'
import type { OpenRequest } from '../../workers/request-list.ts'

const WATCH = ['--watchdog-timeout-ms', '2000']

/** How a worker may hang, and the function on top of the stack; null: there is no stack to be had. */
const HANGS = [['loop', 'spinForever'], ['regex', 'matchForever'], ['wait', 'waitForever'], ['native', null]] as [
  string,
  string | null
][]

describe('the watchdog', { concurrency: true }, () => {
  test('ends whatever hangs, with the place where it is stuck, after its replacement has been started', async (t) => {
    const folder = tempFolder()
    const deck = await startReady(t, 'hangs.js', { workers: 5, flags: ['--watchdog-timeout-ms', '4000'],
      env: { FOLDER: folder } })
    const url = await deck.appUrl()
    const pids = new Map()
    for (const [how] of HANGS) pids.set(how, await hang(url, folder, how))
    for (const [how, top] of HANGS) {
      const pid = pids.get(how)
      const exited = await deck.untilEvent('worker.exited', { pid })
      assert.deepEqual([exited.cause, exited.signal, exited.actor, exited.release, exited.detail?.errorName], ['hung',
        'SIGKILL', 'system', 'r1', 'Unresponsive'], how)
      assert.match(String(exited.message), /event loop blocked for [\d.]+ m?s \(option watchdog\.timeoutMs: 4000\)/)
      if (top) {
        assert.match(String(exited.detail?.stack?.split('\n')[1]),
          new RegExp(`^    at ${top} \\(.*hangs\\.js:\\d+:\\d+\\)$`), how)
        // A report may have come before it hung.
        assert.match(String(exited.message),
          new RegExp(` in "GET /${how}"(, with 1 connection still open, by its last report)?$`))
        const { body: { latest } } = await deck.api(`/crashes/${Number(exited.detail?.crashGroup)}`)
        const { requests, vitals } = latest as unknown as { requests: OpenRequest[],
          vitals: { cpuPercent: number, loopDelayP99Ms: number | null }[] }
        assert.deepEqual(requests.map(({ path, isHanging }) => [path, isHanging]), [[`/${how}`, true]])
        const busy = how === 'wait' ? 0 : 10
        assert.ok(Number(vitals.at(-1)?.cpuPercent) >= busy, `${how}: ${vitals.at(-1)?.cpuPercent} % CPU`)
        assert.equal(vitals.at(-1)?.loopDelayP99Ms, null)
      } else assert.deepEqual([exited.detail?.stack, /no JavaScript stack: .*native code/.test(String(exited.message))],
          [null, true], String(exited.message))
    }
    await deck.until({ ready: 5 })
    const events = (await deck.history('limit=200')).reverse()
    assert.equal(events.filter(({ type }) => type === 'worker.exited').length, HANGS.length, 'nobody else is harmed')
    for (const exited of events.filter(({ type }) => type === 'worker.exited')) {
      const unresponsive = present(
        events.find(({ type, worker }) => type === 'worker.unresponsive' && worker === exited.worker)
      )
      const forked = present(
        events.find(({ type, slot, worker }) =>
          type === 'worker.forked' && slot === exited.slot && Number(worker) > Number(exited.worker)
        )
      )
      assert.ok(unresponsive.id < forked.id && forked.id < exited.id, 'new before old')
    }
  })

  rareTest('nobody is ended who is stopped together with the master, as by a machine that sleeps', async (t) => {
    const deck = await startDeck(t, 'answers-with-pid.js', { flags: WATCH })
    const { workers } = await deck.until({ ready: 2 })
    const pids = [deck.masterPid, ...workers.map(({ pid }) => pid)]
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 4000))
    for (const pid of pids.reverse()) process.kill(pid, 'SIGCONT')
    await new Promise((resolve) => setTimeout(resolve, 2500))
    assert.deepEqual(await deck.history('type=worker.unresponsive,worker.exited'), [])
  })

  rareTest('nobody is ended in whom a debugger may be attached', async (t) => {
    const deck = await startReady(t, 'hangs.js', { workers: 1, flags: [...WATCH, '--exec-argv=--inspect=127.0.0.1:0'] })
    const answer = await fetch(`${await deck.appUrl()}/busy?ms=4000`)
    assert.equal(answer.status, 200)
    assert.deepEqual(await deck.history('type=worker.unresponsive,worker.exited'), [])
  })

  rareTest('spares a worker that answers before it is killed: it serves until its replacement is ready', async (t) => {
    const folder = tempFolder()
    const deck = await startReady(t, 'hangs.js', { workers: 1, flags: WATCH, env: { FOLDER: folder } })
    const pid = await hang(await deck.appUrl(), folder, 'native')
    await deck.untilEvent('worker.unresponsive')
    closeSync(openSync(path.join(folder, 'fifo'), 'w'))
    await deck.untilEvent('worker.responsive', { pid })
    const exited = await deck.untilEvent('worker.exited', { pid })
    assert.deepEqual([exited.cause, exited.actor], ['hung', 'system'])
    assert.match(String(exited.message), /its replacement is ready/)
    await deck.until({ ready: 1 })
  })
})
