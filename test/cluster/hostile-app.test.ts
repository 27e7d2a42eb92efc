import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdirSync, readlinkSync } from 'node:fs'
import net from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { attempt } from '../../server/errors.ts'
import { get } from '../support/asking.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { startDeck, startReady } from '../support/deck.ts'
import { rareOnly } from '../support/rare.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'

/** Of test/fixtures/harms-its-master.js, in this order. */
const HARMS = ['acknowledgement', 'refusal', 'twice-the-same-query', 'query-of-a-wrong-port', 'answer-to-nothing',
  'empty-envelope', 'garbage', 'half-garbage', 'other-half', 'long-line', 'ten-thousand', 'socket', 'server']

describe('an app cannot harm its master', { concurrency: true }, () => {
  test('whatever it sends: nonsense is dropped, told once and counted, and the worker is heard as before', async (t) => {
    const deck = await startDeckHere(t, 'harms-its-master.js', { workers: 1 })
    const { workers: [{ id, pid }] } = await deck.until({ ready: 1 })
    const url = await deck.appUrl()
    const startedAt = performance.now()
    for (const harm of HARMS) assert.equal(await (await fetch(`${url}/${harm}`)).text(), String(pid), harm)
    assert.equal(await (await fetch(`${url}/answers`)).text(), '0', 'of the primary of node:cluster')

    // It is heard still, by the one worker that there is.
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    const told = (await deck.history('type=unexpected&limit=1000')).map(({ message }) => message)
    assert.equal(told.length, 2, told.join('\n'))
    assert.match(String(told[1]), new RegExp(`^worker ${id} has sent what was dropped: `))
    // A busy machine hears them over some windows, each of which admits as many.
    const windows = 1 + Math.ceil((performance.now() - startedAt) / 10_000)
    assert.ok(Number(/has sent (\d+) messages that were dropped/.exec(String(told[0]))?.[1]) > 10_000 - 2000 * windows,
      String(told[0]))
  })

  test('that takes away timers and listeners is ready, rolled and told to stop like any other', async (t) => {
    const deck = await startDeckHere(t, 'replaces-what-it-finds.js', { workers: 1 })
    const { workers: [{ pid }] } = await deck.until({ ready: 1 })
    assert.equal(await (await fetch(await deck.appUrl())).text(), String(pid))
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.deepEqual((await deck.untilHistory('type=worker.exited', 1)).map(({ cause, code }) => [cause, code]), [[
      'restart',
      0
    ]])
  })

  test('sockets that it sends do not pile up', { skip: (process.platform !== 'linux' && 'reads /proc') || rareOnly },
    async (t) => {
      const deck = await startReady(t, 'harms-its-master.js', { workers: 1 })
      const url = await deck.appUrl()
      const count = () => readdirSync(`/proc/${deck.masterPid}/fd`).length
      await fetch(`${url}/socket`)
      const before = count()
      for (let n = 0; n < 20; n++) await fetch(`${url}/socket`)
      assert.ok(count() <= before + 2, `${before} descriptors, then ${count()}`)
    })

  test('a descriptor is the worker\'s own, as under plain Node, and the master touches none because a worker names it',
    { skip: process.platform !== 'linux' && 'reads /proc' }, async (t) => {
    const [plain, own] = [openListener(t), openListener(t)]
    const alone = spawn(through[0], [...through.slice(1), process.execPath,
      fileURLToPath(new URL('../fixtures/listens-on-descriptors.js', import.meta.url))], { env: { ...process.env, OWN },
      stdio: ['ignore', 'ignore', 'ignore', plain.fd] })
    t.after(() => alone.kill('SIGKILL'))
    const deck = await startDeck(t, 'listens-on-descriptors.js', { workers: 1, env: { OWN },
      launch: { through, descriptors: [own.fd] } })
    const { workers: [{ pid }] } = await deck.until({ ready: 1 })
    const { masterPid } = deck
    const ask = ({ port }: { port: number }, what: string) => get(`http://127.0.0.1:${port}/${what}`)
    assert.equal(await ask(own, ''), String(pid))

    const before = descriptorsOf(masterPid)
    const ofMasterAlone = Object.keys(before).filter((fd) => !(fd in descriptorsOf(pid)))
    assert.ok(ofMasterAlone.length > 0)
    for (const kind of ['tcp', 'udp']) {
      // A connection of the worker may have that number by now.
      for (const fd of ofMasterAlone)
        assert.match(await ask(own, `${kind}?fd=${fd}`),
          /^(Error EINVAL listen|Error EEXIST listen|TypeError ERR_INVALID_FD_TYPE)/, `${kind} ${fd}`)
      for (const fd of ['9999', 'file', '-1', OWN])
        assert.equal(await ask(own, `${kind}?fd=${fd}`), await ask(plain, `${kind}?fd=${fd}`), `${kind} ${fd}`)
    }
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    assert.notEqual(await ask(own, ''), String(pid))
    const after = descriptorsOf(masterPid)
    for (const fd of ofMasterAlone.filter((fd) => before[fd].startsWith('pipe') || before[fd].startsWith('anon_inode')))
      assert.equal(after[fd], before[fd], fd)
    assert.equal(deck.masterPid, masterPid)
  })
})

/** The number that a socket keeps from the shell to the workers: Node closes the lowest ones for its children. */
const OWN = '90'
const through = ['/bin/bash', '-c', `exec "$@" ${OWN}<&3 3<&-`, 'bash']

/** @returns of a socket that is there to be passed on */
function openListener (t: TestContext): { fd: number, port: number } {
  const handle = net._createServerHandle('127.0.0.1', 0, 4) as Required<SocketHandle>
  t.after(() => handle.close())
  const bound = { port: 0 }
  handle.getsockname(bound)
  return { fd: handle.fd, port: bound.port }
}

/** @returns what each descriptor of a process is */
function descriptorsOf (pid: number): Record<string, string> {
  return Object.fromEntries(readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    // ENOENT: closed in between.
    return attempt(() => [[fd, readlinkSync(`/proc/${pid}/fd/${fd}`)]], [])
  }))
}
