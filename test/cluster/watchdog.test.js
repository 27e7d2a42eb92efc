import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import { startDeck } from '../support/deck.js'
import { tempFolder } from '../support/folder.js'

const WATCH = ['--watchdog-timeout-ms', '2000']

/** @param {string} url nobody waits for the answer, which may never come */
function ask (url) {
  http.get(url, { agent: false }, (response) => response.resume()).on('error', () => {})
}

for (const { path, name, top, message } of [
  { path: '/loop', name: 'an endless loop', top: /^\s*at (HANGS\.)?spinForever \(.*hangs\.js:7:\d+\)/ },
  { path: '/regex', name: 'an endless regular expression', top: /^\s*at (HANGS\.)?matchForever \(.*hangs\.js:8:\d+\)/ },
  { path: '/wait', name: 'a deadlocked Atomics.wait', top: /^\s*at (HANGS\.)?waitForever \(.*hangs\.js:9:\d+\)/ },
  { path: '/native', name: 'a call of the system that never returns', top: null, message: /no JavaScript stack: .*native code/ }
]) {
  test(`${name} is ended as hung, with the place where it is stuck, after its replacement has been started`, { concurrency: true }, async (t) => {
    const deck = await startDeck(t, 'hangs.js', { flags: WATCH, env: { FOLDER: tempFolder() } })
    await deck.until({ ready: 2 })
    const url = await deck.appUrl()
    ask(`${url}${path}`)
    const exited = await deck.untilEvent(({ type }) => type === 'worker.exited', 'the end of the hung worker')

    assert.equal(exited.cause, 'hung')
    assert.equal(exited.signal, 'SIGKILL')
    assert.equal(exited.actor, 'system')
    assert.equal(exited.release, 'r1')
    assert.equal(exited.detail.errorName, 'Unresponsive')
    assert.match(exited.message, /has not answered for \d+ ms \(option watchdog\.timeoutMs: 2000\)/)
    if (top) assert.match(exited.detail.stack.split('\n')[1], top)
    else assert.equal(exited.detail.stack, null)
    if (message) assert.match(exited.message, message)

    await deck.until({ ready: 2 })
    const events = (await deck.history('limit=100')).reverse()
    const at = (/** @type {(event: any) => boolean} */ matches) => events.findIndex(matches)
    const unresponsive = at(({ type, worker }) => type === 'worker.unresponsive' && worker === exited.worker)
    const forked = at(({ type, slot, worker }) => type === 'worker.forked' && slot === exited.slot && worker !== exited.worker)
    assert.ok(unresponsive >= 0 && forked > unresponsive, 'the replacement is started at once')
    assert.ok(forked < at(({ type }) => type === 'worker.exited'), 'new before old')
    assert.equal(events.filter(({ type }) => type === 'worker.exited').length, 1, 'nobody else is harmed')
  })
}
