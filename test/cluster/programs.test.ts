import assert from 'node:assert/strict'
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { childrenOf } from '../../server/system/children.ts'
import { textIn } from '../../server/system/proc.ts'
import { askDatagram, askPath, get } from '../support/asking.ts'
import { FIXTURES, runCli, startDeck, type Deck, type Launch } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { isGone } from '../support/is-gone.ts'
import { findProcesses } from '../support/leftovers.ts'
import { openFreshConnections } from '../support/load.ts'
import { asOtherProgram, withoutOtherPrograms } from '../support/other-programs.ts'
import { freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'
import { lacksPython } from '../support/pseudo-terminal.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

describe('programs that are no Node programs', { skip: withoutOtherPrograms }, () => {
  test('share a TCP port, a Unix socket and a UDP port: no request fails over a deploy, a killed worker and a restart, and nothing is left', async (t) => {
    const place = tempFolder()
    const port = await freePort()
    const mark = `PLACE=${place}`
    const deck = await startDeck(t, null, { cwd: place, args: asOtherProgram('serves-on-three-sockets.js'),
      env: { PORT: String(port), PLACE: place } })
    await deck.until({ ready: 2 })
    const url = `http://127.0.0.1:${port}/`
    const load = openFreshConnections(t, url, { perSecond: 40 })
    await load.untilAnswered(20)
    const first = await pidsOf(deck)
    assert.equal(first.size, 2)

    await deck.rollout('deploy')
    const [, killed] = await pidsOf(deck)
    await load.whenIdle(() => process.kill(killed, 'SIGKILL'))
    await deck.untilEvent(({ type, pid }) => type === 'worker.exited' && pid === killed, 'the end of the killed worker')
    await deck.until({ ready: 2 })
    await deck.rollout('restart')

    const { total, failures } = await load.stop()
    assert.deepEqual(failures, [], `of ${total} requests`)
    const last = await pidsOf(deck)
    assert.ok([...last].every((pid) => !first.has(pid)))
    for (const answer of await Promise.all([get(url), askPath(path.join(place, 'app.sock')), askDatagram(port)]))
      assert.ok(last.has(Number(answer)), answer)

    await deck.stop()
    assert.deepEqual(findProcesses(mark), [])
  })

  test('and start scripts whose server is their child: it listens, no request fails over a restart and a killed script, and all of it ends', async (t) => {
    const cwd = tempFolder()
    const port = await freePort()
    writeFileSync(path.join(cwd, 'server.cjs'),
      'require(\'http\').createServer((_request, response) => setTimeout(() => response.end(), 100)).listen(process.env.PORT, \'127.0.0.1\')\n')
    writeFileSync(path.join(cwd, 'start.mjs'), `
      import { fork } from 'node:child_process'
      import { fileURLToPath } from 'node:url'
      const server = fork(fileURLToPath(new URL('server.cjs', import.meta.url)), { stdio: 'inherit' })
      server.on('exit', (code) => process.exit(code ?? 0))
      process.on('SIGTERM', () => server.kill())
    `)
    const deck = await startDeck(t, path.join(cwd, 'start.mjs'), { cwd, env: { PORT: String(port) } })
    await deck.until({ ready: 2 })
    assert.match(deck.output.stdout, /start\.mjs → .*start\.mjs\n +it starts its server as another process/)
    const load = openFreshConnections(t, `http://127.0.0.1:${port}/`, { perSecond: 40 })
    await load.untilAnswered(20)
    await deck.rollout('restart')
    const { workers: [{ pid }] } = await deck.status()
    process.kill(present(pid), 'SIGKILL')
    await deck.untilEvent(({ type, pid: own }) => type === 'worker.exited' && own === pid, 'the end of the script')
    await deck.until({ ready: 2 })
    assert.deepEqual((await load.stop()).failures, [])
    await deck.stop()
    assert.deepEqual(findProcesses(`PORT=${port}`), [])
  })

  test('that go to the background are told so, and leave nobody there', async (t) => {
    const cwd = tempFolder()
    const deck = await startDeck(t, null, { cwd, workers: 1,
      args: ['sh', '-c', `setsid sleep 345 & echo $! > ${path.join(cwd, 'pid')}`] })
    const { message } = await deck.untilEvent(({ type }) => type === 'worker.exited', 'its end')
    assert.match(String(message),
      /exited with code 0 before it was ready; it has gone to the background, and left \w+ \(pid \d+\), which is ended: let it run in the foreground/)
    await until(() => isGone(textIn(path.join(cwd, 'pid')).trim()), 'the end of what it has left')
  })

  test('have a Unix socket of their own in each rollout: no fresh connection fails over a deploy, a killed worker and a restart', async (t) => {
    const place = tempFolder()
    const socketPath = path.join(place, 'app.sock')
    const deck = await startDeck(t, null, { cwd: place, args: asOtherProgram('serves-on-three-sockets.js'),
      env: { PORT: String(await freePort()), PLACE: place } })
    await deck.until({ ready: 2 })
    const load = openFreshConnections(t, 'http://localhost/', { perSecond: 100, socketPath })
    await load.untilAnswered(20)
    const first = statSync(socketPath).ino
    await deck.rollout('deploy')
    const { ino } = statSync(socketPath)
    assert.notEqual(ino, first)

    const [, killed] = await pidsOf(deck)
    await load.whenIdle(() => process.kill(killed, 'SIGKILL'))
    await deck.untilEvent(({ type, pid }) => type === 'worker.exited' && pid === killed, 'the end of the killed worker')
    await deck.until({ ready: 2 })
    assert.equal(statSync(socketPath).ino, ino, 'whoever takes the place of a worker that has gone leaves it as it is')
    const slow = askPath(socketPath, '/slow')
    await load.untilAnswered(5)
    await deck.rollout('restart')
    assert.match(await slow, /^\d+$/, 'a request that has begun is answered')
    const { total, failures } = await load.stop()
    assert.deepEqual(failures, [], `of ${total} requests`)
    await deck.stop()
    assert.deepEqual(readdirSync(place).filter((name) => name.includes('sock')), [])
  })

  test('that shut their Unix socket down when they end lose no connection in a restart, and see it under its path', {
    skip: rareOnly || (lacksPython && 'it is written in Python')
  }, async (t) => {
    const socketPath = path.join(tempFolder(), 'app.sock')
    const deck = await startDeck(t, null, { cwd: tempFolder(),
      args: ['python3', path.join(FIXTURES, 'shuts-its-socket.py')], env: { SOCKET_PATH: socketPath } })
    await deck.until({ ready: 2 })
    const load = openFreshConnections(t, 'http://localhost/', { perSecond: 100, socketPath })
    await load.untilAnswered(20)
    for (let count = 0; count < 2; count++) await deck.rollout('restart')
    const { total, failures } = await load.stop()
    assert.deepEqual(failures, [], `of ${total} requests`)
    const { items } = (await deck.api('/logs?lines=50')).body
    assert.equal(items.filter(({ text }: { text: string }) => text === `bound to ${socketPath}`).length, 6)
  })

  test('that have a Unix socket in a folder of each copy\'s own keep it, and can remove both', {
    skip: rareOnly || (lacksPython && 'it is written in Python')
  }, async (t) => {
    const code =
      'import multiprocessing, signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); manager = multiprocessing.Manager(); manager.dict()["key"] = 1; print("now ready", flush=True); signal.pause()'
    const deck = await startDeck(t, null, { cwd: tempFolder(), flags: ['--ready-log', 'now ready'],
      args: ['python3', '-c', code] })
    await deck.until({ ready: 2 })
    assert.equal((await deck.rollout('restart')).state, 'succeeded')
    const exited = await deck.history('type=worker.exited')
    assert.deepEqual(exited.map(({ code: exit }) => exit), [0, 0])
  })

  test('get no connection of others before ready.path has answered, which is asked of each alone', async (t) => {
    const port = await freePort()
    const deck = await startDeck(t, null, { cwd: tempFolder(),
      flags: ['--ready-path', '/health', '--ready-interval-ms', '50'], args: asOtherProgram('answers-late.js'),
      env: { PORT: String(port) } })
    await deck.untilEvent(({ type }) => type === 'worker.listening', 'the first worker')
    const early = await fetch(`http://127.0.0.1:${port}/`)
    assert.equal(early.status, 200, 'it was asked too early')
    await deck.until({ ready: 2 })
    const load = openFreshConnections(t, `http://127.0.0.1:${port}/`, { perSecond: 40 })
    await load.untilAnswered(20)
    await deck.rollout('deploy')
    const { total, failures } = await load.stop()
    assert.deepEqual(failures, [], `of ${total} requests`)
    await deck.untilEvent(
      ({ type, message }) => type === 'worker.ready' && /GET \/health answered 200 at try 4/.test(String(message)),
      'the probe'
    )
  })

  test('say by sd_notify that they are ready, how they do, that they end and that they live: the next one then starts at once', async (t) => {
    const deck = await startDeck(t, null, { cwd: tempFolder(), workers: 1,
      flags: ['--ready-signal', 'notify', '--watchdog-timeout-ms', '2000'],
      args: asOtherProgram('says-how-it-does.js') })
    const { workers: [{ id, pid, statusText }] } = await deck.until({ ready: 1 })
    assert.equal(statusText, 'waits for <b>jobs</b>')
    process.kill(Number(pid), 'SIGTERM')
    const next = await deck.untilEvent((event) => event.type === 'worker.forked' && Number(event.worker) > id,
      'the next worker')
    const ended = await deck.untilEvent(({ type, worker }) => type === 'worker.exited' && worker === id,
      'the end of the worker')
    assert.ok(next.id < ended.id)
    assert.deepEqual([ended.cause, ended.message], ['app-request',
      `worker ${id} (slot 1) ended, as it has said that it stops`])

    await deck.untilEvent(({ type, worker }) => type === 'worker.ready' && worker === next.worker,
      'the next worker to be ready')
    process.kill(present(next.pid), 'SIGSTOP')
    const hung = await deck.untilEvent(({ type, worker }) => type === 'worker.exited' && worker === next.worker,
      'the end of the worker that hangs')
    assert.equal(hung.cause, 'hung')
    assert.match(String(hung.message),
      /Unresponsive: it has not said WATCHDOG=1 for [\d.]+ s \(option watchdog\.timeoutMs: 2000\)/)
  })

  test('that look for a free port first find it free, also where another copy serves there', async (t) => {
    const cwd = tempFolder()
    const port = await freePort()
    const deck = await startDeck(t, null, { cwd, args: asOtherProgram('looks-for-a-free-port.js'),
      env: { PORT: String(port) } })
    await deck.until({ ready: 2 })
    assert.ok((await pidsOf(deck)).has(Number(await get(`http://127.0.0.1:${port}/`))))

    const { app, workers } = await deck.status()
    assert.deepEqual([app.program, app.addresses, workers[0].runtime], ['env (by sh)', [`http://localhost:${port}`],
      'other'])
    const looked = await deck.api(`/workers/${workers[0].id}/diagnostics`, { method: 'POST',
      body: JSON.stringify({ kind: 'heap-snapshot' }) })
    assert.deepEqual([looked.status, looked.body.detail], [409,
      `worker ${workers[0].id} is no Node.js process, so clusterdeck cannot take a heap-snapshot`])
  })

  rareTest(
    'that have a socket for IPv4 and one for IPv6 alone on one port, of TCP and UDP, serve by all four, also after a master has died',
    async (t) => {
      const port = await freePort()
      const deck = await startDeck(t, null, { cwd: tempFolder(), args: asOtherProgram('serves-both-families.js'),
        env: { PORT: String(port) } })
      await deck.until({ ready: 2 })
      const first = await pidsOf(deck)
      await deck.loseMaster()
      await until(() => [...first].every(isGone), 'the end of those that the first master has started')
      const pids = await pidsOf(deck)
      const answers = ['127.0.0.1', '[::1]'].flatMap((
        host
      ) => [get(`http://${host}:${port}/`), askDatagram(port, host.replace(/[[\]]/g, ''))])
      for (const answer of await Promise.all(answers)) assert.ok(pids.has(Number(answer)), answer)
    }
  )

  test('that listen only where their socket does not yet are ready too', {
    skip: rareOnly || (lacksPython && 'it is written in Python')
  }, async (t) => {
    const port = await freePort()
    const deck = await startDeck(t, null, { cwd: tempFolder(),
      args: ['python3', path.join(FIXTURES, 'listens-if-it-does-not.py')], env: { PORT: String(port) } })
    await deck.until({ ready: 2 })
    assert.ok((await pidsOf(deck)).has(Number(await get(`http://127.0.0.1:${port}/`))))
  })

  test(
    'that set up their socket before they bind keep its options, its copies and its epoll sets, also from one release to the next',
    { skip: lacksPython && 'it is written in Python' },
    async (t) => {
      const url = (port: number) => `http://127.0.0.1:${port}/`
      const port = await freePort()
      const cwd = tempFolder()
      const start = (program: string) => ['sh', '-c', `. ./settings && exec python3 ${path.join(FIXTURES, program)}`]
      writeFileSync(path.join(cwd, 'settings'), '')
      const deck = await startDeck(t, null, { cwd, args: start('sets-up-its-socket-before-it-binds.py'),
        env: { PORT: String(port) } })
      await deck.until({ ready: 2 })
      for (let round = 0; round < 4; round++) assert.match(await get(url(port)), /^\d+ lost nothing$/)

      writeFileSync(path.join(cwd, 'settings'), 'export PLAIN=1')
      await deck.rollout('deploy')
      for (let round = 0; round < 4; round++) assert.match(await get(url(port)), /^\d+ lost nothing$/)
    }
  )

  test('that serve are not harmed when what answers their calls dies: another one answers the next ones', async (t) => {
    const port = await freePort()
    const deck = await startDeck(t, null, { cwd: tempFolder(), args: asOtherProgram('listens-on-port.js'),
      env: { PORT: String(port) } })
    await deck.until({ ready: 2 })
    const before = await pidsOf(deck)
    const load = openFreshConnections(t, `http://127.0.0.1:${port}/`, { perSecond: 40 })
    process.kill(await helperOf(deck), 'SIGKILL')
    await deck.rollout('restart')
    const { failures } = await load.stop()
    assert.deepEqual(failures, [])
    assert.ok([...await pidsOf(deck)].every((pid) => !before.has(pid)))
  })

  test('that have held up three times what answers their calls are not answered any more, and the status says so', async (t) => {
    const deck = await startDeck(t, null, { cwd: tempFolder(), workers: 1, args: asOtherProgram('listens-on-port.js'),
      env: { PORT: String(await freePort()) } })
    await deck.until({ ready: 1 })
    // The kernel sends this signal to a helper that has waited for too long.
    for (let time = 0, last = 0; time < 3; time++) process.kill(last = await helperOf(deck, last), 'SIGALRM')
    await until(
      async () =>
        (await deck.status()).workers[0].socketNotes.some((note: string) =>
          note.startsWith('it has held up what answers its calls')
        ),
      'the note'
    )
  })

  test(
    'that shut their listener down at their end: no request fails over restarts, one that ends itself, a release that never gets ready and a dead master',
    { skip: rareOnly || (lacksPython && 'it is written in Python') },
    async (t) => {
      const cwd = tempFolder()
      const port = await freePort()
      const flags = ['--ready-path', '/', '--ready-interval-ms', '100', '--ready-timeout-ms', '1500']
      const deck = await startDeck(t, null, { cwd, flags, workers: 3,
        args: ['python3', path.join(FIXTURES, 'shuts-its-listener-down.py')], env: { PORT: String(port) } })
      await deck.until({ ready: 3 })
      const load = openFreshConnections(t, `http://127.0.0.1:${port}/`, { perSecond: 40 })
      await load.untilAnswered(20)
      await deck.rollout('restart')
      const [leaver] = await pidsOf(deck)
      await load.whenIdle(() => process.kill(leaver, 'SIGTERM'))
      await deck.untilEvent(({ type, pid }) => type === 'worker.exited' && pid === leaver,
        'the end of the one that ends itself')
      await deck.until({ ready: 3 })

      writeFileSync(path.join(cwd, 'sick'), '')
      assert.equal((await deck.rollout('restart')).state, 'failed')
      rmSync(path.join(cwd, 'sick'))

      const orphans = await pidsOf(deck)
      const [dead] = orphans
      await deck.loseMaster()
      await load.whenIdle(() => process.kill(dead, 'SIGTERM'))
      await deck.until({ ready: 3 })
      await until(async () => [...await pidsOf(deck)].every((pid) => !orphans.has(pid)),
        'the workers of the next master')
      await deck.rollout('restart')

      const { total, failures } = await load.stop()
      assert.deepEqual(failures, [], `of ${total} requests`)
      const exited = await deck.history('type=worker.exited&limit=100')
      assert.deepEqual(exited.filter(({ message }) => /EADDRINUSE|Address already in use/.test(String(message))), [])
    }
  )

  test('that Python runs write each line at once, unless told otherwise', {
    skip: rareOnly || (lacksPython && 'it is written in Python')
  }, async (t) => {
    const parts = { cwd: tempFolder(), workers: 1, flags: ['--ready-log', 'now ready', '--ready-timeout-ms', '1500'],
      args: ['sh', '-c', 'exec python3 -c "import time; print(\'now ready\'); time.sleep(60)"'] }
    await (await startDeck(t, null, parts)).until({ ready: 1 })
    const other = await startDeck(t, null, { ...parts, env: { PYTHONUNBUFFERED: '' } })
    const { message } = await other.untilEvent(({ type }) => type === 'worker.exited', 'its end')
    assert.match(String(message), /has not written the line "now ready"/)
  })

  test('that find another copy at their port, as they look by a connection, are told what to do', async (t) => {
    const deck = await startDeck(t, null, { cwd: tempFolder(), args: asOtherProgram('looks-whether-it-answers.js'),
      env: { PORT: String(await freePort()) } })
    const { message, detail } = await deck.untilEvent(({ type }) => type === 'worker.exited',
      'the end of the second worker')
    assert.match(String(message),
      /Port \d+ not free on 127\.0\.0\.1\.; the master has refused it no port, and other copies of it serve: it may have looked by itself/)
    const { health } = await deck.status()
    assert.ok(health.reasons[0].text.endsWith(`not free on 127.0.0.1.; ${detail?.hint}`), JSON.stringify(health))
  })

  rareTest('that may not bind their port are told how they could', async (t) => {
    const launch = { through: ['setpriv', '--bounding-set=-net_bind_service'] }
    const deck = await startDeck(t, null, { cwd: tempFolder(), args: asOtherProgram('listens-on-port.js'),
      env: { PORT: '1' }, launch })
    const { message } = await deck.untilEvent(({ type }) => type === 'worker.exited', 'the end of the worker')
    assert.match(String(message),
      /permission denied.*:1 is not permitted \(EACCES\): the master binds it, and may not bind ports below \d+\. Let it by/is)
  })

  test('that bind one address twice are told so', async (t) => {
    const port = String(await freePort())
    const deck = await startDeck(t, null, { cwd: tempFolder(), workers: 1, args: asOtherProgram('listens-twice.js'),
      env: { PORT: port, SECOND_PORT: port } })
    await deck.untilEvent(({ type }) => type === 'worker.exited', 'the end of the worker')
    const { items } = (await deck.api('/logs?lines=50')).body
    assert.ok(
      items.some(({ text }: { text: string }) => text.includes(`EADDRINUSE: address already in use 127.0.0.1:${port}`)),
      JSON.stringify(items)
    )
  })
})

/** Numbers of system calls, which are the same on x86-64 and arm64 but for the first. */
const SECCOMP = process.arch === 'arm64' ? 277 : 317
const PIDFD_GETFD = 438

/** `numbers`: of the system calls that it may not use */
function without (...numbers: number[]): Launch {
  return {
    through: [process.execPath, fileURLToPath(new URL('../support/denies-calls.ts', import.meta.url)), numbers.join()]
  }
}

describe('programs in a container', { skip: withoutOtherPrograms }, () => {
  rareTest('share their sockets under the default profile of Docker, which forbids to look at those of others',
    async (t) => {
      const port = await freePort()
      const deck = await startDeck(t, null, { cwd: tempFolder(), args: asOtherProgram('listens-on-port.js'),
        env: { PORT: String(port) }, launch: without(PIDFD_GETFD) })
      await deck.until({ ready: 2 })
      const before = await pidsOf(deck)
      await deck.rollout('restart')
      const answer = Number(await get(`http://127.0.0.1:${port}/`))
      assert.ok(!before.has(answer) && (await pidsOf(deck)).has(answer))
    })

  test('that may not filter system calls run alone: several workers are refused with the reason, and one is said to have sockets of its own', async (t) => {
    const port = await freePort()
    const parts = { cwd: tempFolder(), args: asOtherProgram('listens-on-port.js'), env: { PORT: String(port) },
      launch: without(SECCOMP) }
    const { code, stderr } = await runCli(['start', '--workers', '2', '--data-dir', tempFolder(), '--admin-port', '0',
      '--', ...parts.args], parts)
    assert.equal(code, 2, stderr)
    assert.match(stderr,
      /workers: expected 1 with rollout\.order "stop-first" on this machine, received 2 with "start-first".*seccomp: Operation not permitted/)

    const deck = await startDeck(t, null, { ...parts, workers: 1, flags: ['--rollout-order', 'stop-first'] })
    await deck.until({ ready: 1 })
    assert.equal((await deck.status()).app.ownSockets, 'seccomp: Operation not permitted')
    assert.ok((await pidsOf(deck)).has(Number(await get(`http://127.0.0.1:${port}/`))))
  })
})

/** `except`: has been told to end. Returns the process that answers the calls of programs, once it has begun to. */
async function helperOf (deck: Deck, except?: number): Promise<number> {
  const isAtWork = (pid: number) =>
    textIn(`/proc/${pid}/cmdline`).includes('call-helper') && /[^\0]/.test(textIn(`/proc/${pid}/fd/4`))
  const find = () => childrenOf(deck.masterPid).find((pid) => pid !== except && isAtWork(pid))
  await until(() => find() !== undefined, 'the call helper')
  return Number(find())
}

async function pidsOf (deck: Deck) {
  return new Set((await deck.status()).workers.flatMap(({ pid }) => pid ?? []))
}
