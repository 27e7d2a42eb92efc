import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { STATUS } from '../../server/api/cluster.ts'
import { ROLLOUT } from '../../server/rollouts/api.ts'
import { DeckError, start } from '../../server/index.ts'
import { get } from '../support/asking.ts'
import { untilFound } from '../support/until.ts'
import { FIXTURES } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import type { Status } from '../../server/library/records.ts'
import type { Deck, StartOptions } from '../../server/library/types.ts'
import type { Detail } from '../../server/events/stream.ts'

const APP = path.join(FIXTURES, 'answers-with-pid.js')
const MESSAGE_TYPE = '1 to 100 characters without control characters, and not a reserved one: shutdown, NODE_…'
const run = promisify(execFile)
delete process.env.PORT

async function startDeck (t: TestContext, options: StartOptions = {}) {
  const deck = await start({ entry: APP, workers: 2, admin: { port: 0 }, dataDir: tempFolder(), ...options })
  t.after(deck.stop)
  return deck
}

/** @returns a pid */
async function whoAnswers (deck: Deck): Promise<number> {
  return JSON.parse(await get(deck.snapshot().app.addresses[0])).pid
}

/** A read may give a part of what is there. */
function allOf (stream: PassThrough): string {
  let text = ''
  for (let part = stream.read(); part !== null; part = stream.read()) text += part
  return text
}

/** What of this process a deck could have taken. */
function ofTheProcess () {
  const listeners = process.eventNames().filter((name) => !['internalMessage', 'exit'].includes(String(name))).map((
    name
  ) => [name, process.listenerCount(name)])
  return { listeners, settings: [process.cwd(), process.exitCode, process.title] }
}

describe('a deck of a program', { concurrency: 3 }, () => {
  test('start gives a deck whose workers are all ready, and stop one that has none', async (t) => {
    const deck = await startDeck(t)
    const { state, readyWorkers, app, master } = deck.snapshot()
    assert.deepEqual([state, readyWorkers, master.pid], ['running', 2, process.pid])
    const pid = await whoAnswers(deck)
    assert.ok(deck.snapshot().workers.some((worker) => worker.pid === pid))
    await deck.stop()
    await deck.stopped
    await assert.rejects(get(app.addresses[0]), { code: 'ECONNREFUSED' })
    await assert.rejects(get(deck.adminUrl), { code: 'ECONNREFUSED' })
    assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
    for (const ask of [deck.restart, deck.deploy, () => deck.scale(3), () => deck.send('reload')])
      await assert.rejects(ask(), { code: 'stopping' })
  })

  test('restart, deploy and rollback give the finished rollout, also one that has failed, in the shapes of the API', async (t) => {
    const deck = await startDeck(t, { workers: 1 })
    const before = deck.snapshot().workers.map(({ pid }) => pid)
    const restart = await deck.restart({ note: 'to be sure' })
    assert.deepEqual([restart.kind, restart.state, restart.done, restart.note, restart.actor], ['restart', 'succeeded',
      true, 'to be sure', 'program'])
    assert.ok(deck.snapshot().workers.every(({ pid }) => !before.includes(pid)))
    const deploy = await deck.deploy({ strategy: { surge: 2 } })
    assert.deepEqual([deploy.kind, deploy.state, deploy.from, deploy.to], ['deploy', 'succeeded', 'r1', 'r2'])
    // Before it is known which files r1 had, nobody says that it can come back.
    const back = await untilFound(() =>
      deck.rollback({ release: 'r1' }).catch(({ code }) => {
        assert.equal(code, 'drifted')
        return null
      }), 'r1 to be known')
    assert.equal(back.state, 'succeeded')
    assert.equal(deck.snapshot().release.id, 'r1')

    const running = deck.restart()
    STATUS.parse(deck.snapshot())
    await assert.rejects(deck.restart(), { code: 'rollout-running', details: { rollout: 4 } })
    await deck.stop()
    const { state, reason } = ROLLOUT.parse(await running)
    assert.deepEqual([state, reason], ['failed', 'the master is stopping'])
  })

  rareTest('scale ends once as many are ready as are wanted, and nobody else is left', async (t) => {
    const deck = await startDeck(t)
    assert.equal((await deck.scale(3)).readyWorkers, 3)
    assert.equal((await deck.scale(1)).workers.length, 1)
    const [first, second] = await Promise.all([deck.scale(3), deck.scale(2)])
    assert.deepEqual([first.readyWorkers, second.readyWorkers, second.desiredWorkers], [2, 2, 2])
    const refused = assert.rejects(deck.scale(4), { code: 'stopping' })
    await deck.stop()
    await refused
  })

  test('an argument that is wrong is refused by name, and changes nothing', async (t) => {
    const deck = await startDeck(t, { workers: 1 })
    const { lastEventId } = deck.snapshot()
    const loose = deck as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>
    for (const [ask, message] of [[() => loose.scale(0), 'workers: expected an integer from 1 to 256, received 0'], [
      () => loose.scale(),
      'workers: expected an integer from 1 to 256, received nothing'
    ], [() => loose.restart('now'), 'restart: expected an object, received "now"'], [
      () => loose.restart({ strategy: {} }),
      'strategy: expected one of note, received {}'
    ], [() => loose.deploy({ note: 10n }),
      'note: expected a text of at most 500 characters, received something that cannot be shown'], [
      () => loose.deploy({ strategy: { surge: () => {} } }),
      'strategy.surge: expected an integer from 1 to 256 or a share such as "25%", received a function'
    ], [() => loose.rollback({ release: 'latest' }), 'release: expected a release such as r12, received "latest"'], [
      () => loose.send(),
      `type: expected ${MESSAGE_TYPE}, received nothing`
    ], [() => loose.send('shutdown'), `type: expected ${MESSAGE_TYPE}, received "shutdown"`], [
      () => loose.send('reload', 10n),
      'data: expected any JSON of at most 64 KiB, received something that cannot be shown'
    ], [() => loose.send('reload', () => {}), 'data: expected any JSON of at most 64 KiB, received a function'], [
      () => loose.send('reload', Array(65_537)),
      `data: expected any JSON of at most 64 KiB, received [${'null,'.repeat(15)}null…`
    ], [() => loose.send('reload', null, { worker: '1' }), 'worker: expected the id of a worker, received "1"']] as [
      () => Promise<unknown>,
      string
    ][]) {
      await assert.rejects(ask(), (error) =>
        error instanceof DeckError && error.code === 'invalid-argument' && error.message === message, message)
    }
    await assert.rejects(deck.deploy({ path: 'v2' }), { code: 'path-refused' })
    assert.equal(deck.snapshot().lastEventId, lastEventId)
  })

  test('events come by their type and as "event", in their order, and nobody can change them', async (t) => {
    const deck = await startDeck(t, { workers: 1 })
    const all = [] as string[]
    const ends = [] as string[]
    deck.events.on('event', ({ type }) => all.push(type))
    deck.events.on('rollout.succeeded', ({ type }) => ends.push(type))
    const exited = once(deck.events, 'worker.exited')
    deck.events.on('rollout.started', (event) => {
      assert.throws(() => {
        Object.assign(event, { type: 'other' })
      }, TypeError)
      assert.throws(() => (event.detail as Detail).steps?.pop(), TypeError)
      // In the middle of what the master does, this would be answered by chance.
      assert.rejects(deck.restart(), { code: 'rollout-running' })
    })
    await deck.restart()
    const [{ cause, actor }] = await exited
    assert.deepEqual([cause, actor, ends], ['restart', 'program', ['rollout.succeeded']])
    assert.ok(
      all.indexOf('rollout.started') < all.indexOf('worker.ready') &&
        all.indexOf('worker.ready') < all.indexOf('rollout.succeeded')
    )
    await deck.stop()
    assert.equal(all.at(-1), 'master.stopped')
  })

  rareTest('a message reaches the app, and what the app says is an event', async (t) => {
    const deck = await startDeck(t, { entry: path.join(FIXTURES, 'repeats-what-it-hears.js') })
    const [, { id }] = deck.snapshot().workers
    const heard = once(deck.events, 'worker.message')
    assert.deepEqual(await deck.send('reload', ['prices'], { worker: Number(id) }), { workers: [id] })
    const [{ worker, detail }] = await heard
    assert.deepEqual([worker, detail.data], [id, { type: 'reload', from: 'admin', data: ['prices'] }])
    assert.equal((await deck.send('reload')).workers.length, 2)
    await assert.rejects(deck.send('reload', null, { worker: 99 }), { code: 'not-found' })
  })

  rareTest('a snapshot is the caller\'s own, and cannot be changed', async (t) => {
    const deck = await startDeck(t, { workers: 1 })
    const snapshot = deck.snapshot()
    assert.throws(() => {
      snapshot.workers[0].state = 'held'
    }, TypeError)
    assert.throws(() => {
      snapshot.app.addresses.pop()
    }, TypeError)
    await deck.restart()
    assert.notEqual(deck.snapshot().workers[0].pid, snapshot.workers[0].pid)
  })

  test('the token opens the API, and the link the admin page', async (t) => {
    const deck = await startDeck(t, { workers: 1 })
    const response = await fetch(`${deck.adminUrl}/api/v1/status`, {
      headers: { authorization: `Bearer ${deck.token}` }
    })
    assert.equal((await response.json() as Status).master.pid, process.pid)
    assert.equal((await fetch(deck.signInLink(), { redirect: 'manual' })).headers.get('location'), '/')
  })

  rareTest('says what happens only on the streams that it is given, and leaves no listener there', async (t) => {
    const stdout = new PassThrough()
    const before = stdout.eventNames()
    const deck = await startDeck(t, { workers: 1, stdout })
    assert.deepEqual(stdout.eventNames(), before)
    assert.match(allOf(stdout), /1 worker ready in \d+ ms/)
    await deck.restart()
    assert.match(allOf(stdout), /rollout\.succeeded/)
  })

  rareTest('a start that is given up says what it has waited for, and leaves nothing', async (t) => {
    const dataDir = tempFolder()
    const giveUp = new AbortController()
    const stdout = new PassThrough()
    stdout.on('data', (text) => {
      if (String(text).includes('worker.exited')) giveUp.abort(new Error('enough'))
    })
    const never = start({ entry: path.join(FIXTURES, 'throws-at-load.js'), workers: 1, admin: { port: 0 }, dataDir,
      stdout, signal: giveUp.signal })
    await assert.rejects(never, ({ code, message, cause }) => {
      assert.deepEqual([code, cause.message], ['start-failed', 'enough'])
      assert.match(message, /^the start was given up; .*no configuration at all/)
      return true
    })
    await assert.rejects(start({ entry: APP, dataDir, signal: AbortSignal.abort() }), { code: 'start-failed',
      message: 'the start was given up' })
    assert.equal((await startDeck(t, { dataDir })).snapshot().readyWorkers, 2)
  })

  rareTest('an address that is taken fails the start, and leaves nothing', async (t) => {
    const server = net.createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => {
      server.close()
    })
    const { port } = server.address() as net.AddressInfo
    const dataDir = tempFolder()
    const taken = { entry: path.join(FIXTURES, 'takes-a-port-in-use.js'), workers: 1, admin: { port: 0 }, dataDir,
      env: { PORT: String(port) } }
    await assert.rejects(start(taken), { code: 'start-failed', message: `127.0.0.1:${port} is in use (EADDRINUSE)` })
    await assert.rejects(start({ ...taken, admin: { port } }), { code: 'port-in-use' })
    await startDeck(t, { dataDir, workers: 1 })
  })

  rareTest('two decks run side by side; not on one data folder', async (t) => {
    const dataDir = tempFolder()
    const [one, other] = await Promise.all([startDeck(t, { dataDir, workers: 1 }), startDeck(t, { workers: 1 })])
    for (const deck of [one, other]) assert.equal(await whoAnswers(deck), deck.snapshot().workers[0].pid)
    await assert.rejects(startDeck(t, { dataDir }), { code: 'master-running' })
    await one.stop()
    assert.equal((await other.restart()).state, 'succeeded')
  })

  rareTest(
    'a deck runs in a program that hands out its own connections by any policy; a worker of node:cluster starts none',
    async () => {
      const { stdout } = await run(process.execPath, [path.join(FIXTURES, 'starts-a-deck-as-a-worker.js'),
        tempFolder()], { timeout: 60_000, env: { ...process.env, NODE_CLUSTER_SCHED_POLICY: 'none' } })
      assert.deepEqual(stdout.trimEnd().split('\n'), ['answered by its worker',
        'start: expected a process that may have workers, and this one is itself a worker of node:cluster'])
    }
  )

  const wrong: [object | null, string, RegExp][] = [[null, 'invalid-config',
    /^options: expected an object, received null$/], [{ wrokers: 2 }, 'unknown-option',
    /^unknown option "wrokers" \(did you mean "workers"\?\)$/], [{ admin: { prot: 1 } }, 'unknown-option',
    /^unknown option "admin.prot" \(did you mean "admin.port"\?\)$/], [{ admin: 9777 }, 'invalid-config',
    /^admin: expected an object, received 9777$/], [{ workers: 'two' }, 'invalid-config',
    /^workers: expected an integer from 1 to 256 or "max", received "two"$/], [{ drain: { deadlineMs: 5n } },
    'invalid-config',
    /^drain\.deadlineMs: expected an integer from 0 to \d+, or one with its unit such as "30 s", received 5$/], [{
    workers: { n: 5n }
  }, 'invalid-config', /^workers: expected .* received something that is no JSON$/], [{ entry: () => {} },
    'invalid-config', /^entry: expected a path, received a function$/], [{ entry: 'no-such-app.js' }, 'entry-not-found',
    /^entry: expected a file, received .*no-such-app\.js, which does not exist$/], [{ configFile: '' },
    'invalid-config', /^configFile: expected a path, received an empty text$/], [{ configFile: 'no-such.json' },
    'invalid-config', /^config: expected a file, received .*no-such\.json/], [{ stdout: 'stdout' }, 'invalid-config',
    /^stdout: expected a stream that can be written, received a string$/], [{ signal: 'SIGTERM' }, 'invalid-config',
    /^signal: expected an AbortSignal, received a string$/]]
  test('what is wrong in its options is refused by name', async () => {
    for (const [options, code, message] of wrong) {
      const given = options && { entry: APP, dataDir: tempFolder(), ...options }
      await assert.rejects(start(given as StartOptions), (error) => {
        assert.ok(error instanceof DeckError)
        assert.equal(error.code, code)
        assert.match(error.message, message)
        return true
      })
    }
  })
})

test('what a listener throws is the program\'s to catch, and harms neither the deck nor other listeners', async (t) => {
  const deck = await startDeck(t, { workers: 1 })
  const caught: PromiseWithResolvers<Error> = Promise.withResolvers()
  process.setUncaughtExceptionCaptureCallback(caught.resolve)
  t.after(() => process.setUncaughtExceptionCaptureCallback(null))
  deck.events.once('rollout.started', () => {
    throw new Error('a fault of the program')
  })
  const succeeded = once(deck.events, 'rollout.succeeded')
  assert.equal((await deck.restart()).state, 'succeeded')
  assert.equal((await caught.promise).message, 'a fault of the program')
  await succeeded
})

test('takes nothing of the process: no signal, no listener, no exit code', async (t) => {
  const warmUp = await startDeck(t, { workers: 1 })
  await warmUp.stop()
  const before = ofTheProcess()
  const deck = await startDeck(t, { workers: 1 })
  const signals = ofTheProcess().listeners.filter(([name]) => String(name).startsWith('SIG'))
  assert.deepEqual(signals, before.listeners.filter(([name]) => String(name).startsWith('SIG')))
  await deck.stop()
  assert.deepEqual(ofTheProcess(), before)
})
