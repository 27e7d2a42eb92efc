import assert from 'node:assert/strict'
import { readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { childrenOf } from '../../server/system/children.ts'
import { textIn } from '../../server/system/proc.ts'
import { above } from '../support/event-log.ts'
import { askDatagram, askPath, get } from '../support/asking.ts'
import { FIXTURES, runCli, startDeck, startReady, type Deck, type Launch } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { isGone } from '../support/is-gone.ts'
import { findProcesses } from '../support/leftovers.ts'
import { openFreshConnections, whenAllIdle } from '../support/load.ts'
import { asOtherProgram, withoutOtherPrograms } from '../support/other-programs.ts'
import { freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'
import { lacksPython } from '../support/pseudo-terminal.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const withoutPython = lacksPython && 'it is written in Python'
const rareInPython = rareOnly || withoutPython

describe('programs that are no Node programs', { skip: withoutOtherPrograms }, () => {
  test('share a TCP port and a UDP port, and have a Unix socket of their own in each rollout: no fresh connection fails over a deploy, a killed worker and a restart, and nothing is left', async (t) => {
    const place = tempFolder()
    const socketPath = path.join(place, 'app.sock')
    const { deck, port, url } = await startOther(t, 'serves-on-three-sockets.js', { cwd: place, env: { PLACE: place } })
    const loads = [await loadOn(t, url), await loadOn(t, 'http://localhost/', { perSecond: 100, socketPath })]
    const inode = () => statSync(socketPath).ino
    const [first, firstInode] = [await pidsOf(deck), inode()]
    assert.equal(first.size, 2)

    await deck.rollout('deploy')
    const deployed = inode()
    assert.notEqual(deployed, firstInode)
    const [, killed] = await pidsOf(deck)
    await whenAllIdle(loads, () => process.kill(killed, 'SIGKILL'))
    await deck.untilEvent('worker.exited', { pid: killed })
    await deck.until({ ready: 2 })
    assert.equal(inode(), deployed, 'whoever takes the place of a worker that has gone leaves it as it is')
    const slow = askPath(socketPath, '/slow')
    await loads[1].untilAnswered(5)
    await deck.rollout('restart')
    assert.match(await slow, /^\d+$/, 'a request that has begun is answered')

    for (const load of loads) await load.checkNoneLost()
    const last = await pidsOf(deck)
    assert.ok([...last].every((pid) => !first.has(pid)))
    for (const answer of await Promise.all([get(url), askPath(socketPath), askDatagram(port)]))
      assert.ok(last.has(Number(answer)), answer)
    await deck.stop()
    assert.deepEqual(readdirSync(place).filter((name) => name.includes('sock')), [])
    assert.deepEqual(findProcesses(`PLACE=${place}`), [])
  })

  test('and start scripts whose server is their child: it listens, no request fails over a restart and a killed script, and all of it ends', async (t) => {
    const [cwd, port] = [tempFolder(), await freePort()]
    writeFileSync(path.join(cwd, 'server.cjs'),
      'require(\'http\').createServer((_request, response) => setTimeout(() => response.end(), 100)).listen(process.env.PORT, \'127.0.0.1\')\n')
    writeFileSync(path.join(cwd, 'start.mjs'), `
      import { fork } from 'node:child_process'
      import { fileURLToPath } from 'node:url'
      const server = fork(fileURLToPath(new URL('server.cjs', import.meta.url)), { stdio: 'inherit' })
      server.on('exit', (code) => process.exit(code ?? 0))
      process.on('SIGTERM', () => server.kill())
    `)
    const deck = await startReady(t, path.join(cwd, 'start.mjs'), { cwd, env: { PORT: String(port) } })
    assert.match(deck.output.stdout, /start\.mjs → .*start\.mjs\n +it starts its server as another process/)
    const load = await loadOn(t, `http://127.0.0.1:${port}/`)
    await deck.rollout('restart')
    const [pid] = await pidsOf(deck)
    process.kill(pid, 'SIGKILL')
    await deck.untilEvent('worker.exited', { pid })
    await deck.until({ ready: 2 })
    await load.checkNoneLost()
    await deck.stop()
    assert.deepEqual(findProcesses(`PORT=${port}`), [])
  })

  test('that shut their Unix socket down when they end lose no connection in a restart, and see it under its path', {
    skip: rareInPython
  }, async (t) => {
    const socketPath = path.join(tempFolder(), 'app.sock')
    const { deck } = await startOther(t, 'shuts-its-socket.py', { env: { SOCKET_PATH: socketPath } })
    const load = await loadOn(t, 'http://localhost/', { perSecond: 100, socketPath })
    for (let count = 0; count < 2; count++) await deck.rollout('restart')
    await load.checkNoneLost()
    assert.equal((await written(deck)).filter((text) => text === `bound to ${socketPath}`).length, 6)
  })

  test('that have a Unix socket in a folder of each copy\'s own keep it, and can remove both', { skip: rareInPython },
    async (t) => {
      const code =
        'import multiprocessing, signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); manager = multiprocessing.Manager(); manager.dict()["key"] = 1; print("now ready", flush=True); signal.pause()'
      const { deck } = await startOther(t, ['python3', '-c', code], { flags: ['--ready-log', 'now ready'] })
      assert.equal((await deck.rollout('restart')).state, 'succeeded')
      const exited = await deck.history('type=worker.exited')
      assert.deepEqual(exited.map(({ code: exit }) => exit), [0, 0])
    })

  test('get no connection of others before ready.path has answered, which is asked of each alone', async (t) => {
    const { deck, url } = await startOther(t, 'answers-late.js', {
      flags: ['--ready-path', '/health', '--ready-interval-ms', '50']
    }, startDeck)
    await deck.untilEvent('worker.listening')
    assert.equal((await fetch(url)).status, 200, 'it was asked too early')
    await deck.until({ ready: 2 })
    const load = await loadOn(t, url)
    await deck.rollout('deploy')
    await load.checkNoneLost()
    await deck.untilEvent('worker.ready', { message: /GET \/health answered 200 at try 4/ })
  })

  test('say by sd_notify that they are ready, how they do, that they end and that they live: the next one then starts at once', async (t) => {
    const { deck } = await startOther(t, 'says-how-it-does.js', { workers: 1,
      flags: ['--ready-signal', 'notify', '--watchdog-timeout-ms', '2000'] })
    const { workers: [{ id, pid, statusText }] } = await deck.until({ ready: 1 })
    assert.equal(statusText, 'waits for <b>jobs</b>')
    process.kill(pid, 'SIGTERM')
    const next = await deck.untilEvent('worker.forked', { worker: above(id) })
    const ended = await deck.untilEvent('worker.exited', { worker: id })
    assert.ok(next.id < ended.id)
    assert.deepEqual([ended.cause, ended.message], ['app-request',
      `worker ${id} (slot 1) ended, as it has said that it stops`])

    await deck.untilEvent('worker.ready', { worker: next.worker })
    process.kill(present(next.pid), 'SIGSTOP')
    const hung = await deck.untilEvent('worker.exited', { worker: next.worker })
    assert.equal(hung.cause, 'hung')
    assert.match(String(hung.message),
      /Unresponsive: it has not said WATCHDOG=1 for [\d.]+ s \(option watchdog\.timeoutMs: 2000\)/)
  })

  test('that look for a free port first find it free, also where another copy serves there', async (t) => {
    const { deck, port, url } = await startOther(t, 'looks-for-a-free-port.js')
    assert.ok((await pidsOf(deck)).has(Number(await get(url))))
    const { app, workers: [{ id, runtime }] } = await deck.status()
    assert.deepEqual([app.program, app.addresses, runtime], ['env (by sh)', [`http://localhost:${port}`], 'other'])
    const looked = await deck.post(`/workers/${Number(id)}/diagnostics`, { kind: 'heap-snapshot' })
    assert.deepEqual([looked.status, looked.body.detail], [409,
      `worker ${id} is no Node.js process, so clusterdeck cannot take a heap-snapshot`])
  })

  rareTest(
    'that have a socket for IPv4 and one for IPv6 alone on one port, of TCP and UDP, serve by all four, also after a master has died',
    async (t) => {
      const { deck, port } = await startOther(t, 'serves-both-families.js')
      const first = await pidsOf(deck)
      await deck.loseMaster()
      await until(() => [...first].every(isGone), 'the end of those that the first master has started')
      const pids = await pidsOf(deck)
      for (const host of ['127.0.0.1', '::1']) {
        const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}/`
        for (const answer of [await get(url), await askDatagram(port, host)])
          assert.ok(pids.has(Number(answer)), answer)
      }
    }
  )

  test('that listen only where their socket does not yet are ready too', { skip: rareInPython }, async (t) => {
    const { deck, url } = await startOther(t, 'listens-if-it-does-not.py')
    assert.ok((await pidsOf(deck)).has(Number(await get(url))))
  })

  test(
    'that set up their socket before they bind keep its options, its copies and its epoll sets, also from one release to the next',
    { skip: withoutPython },
    async (t) => {
      const cwd = tempFolder()
      const file = path.join(FIXTURES, 'sets-up-its-socket-before-it-binds.py')
      writeFileSync(path.join(cwd, 'settings'), '')
      const { deck, url } = await startOther(t, ['sh', '-c', `. ./settings && exec python3 ${file}`], { cwd })
      const check = async () => {
        for (let round = 0; round < 4; round++) assert.match(await get(url), /^\d+ lost nothing$/)
      }
      await check()
      writeFileSync(path.join(cwd, 'settings'), 'export PLAIN=1')
      await deck.rollout('deploy')
      await check()
    }
  )

  test('that serve are not harmed when what answers their calls dies: another one answers the next ones', async (t) => {
    const { deck, url } = await startOther(t, 'listens-on-port.js')
    const before = await pidsOf(deck)
    const load = openFreshConnections(t, url, { perSecond: 40 })
    process.kill(await helperOf(deck), 'SIGKILL')
    await deck.rollout('restart')
    await load.checkNoneLost()
    assert.ok([...await pidsOf(deck)].every((pid) => !before.has(pid)))
  })

  test('that have held up three times what answers their calls are not answered any more, and the status says so', async (t) => {
    const { deck } = await startOther(t, 'listens-on-port.js', { workers: 1 })
    // The kernel sends this signal to a helper that has waited for too long.
    for (let time = 0, last = 0; time < 3; time++) process.kill(last = await helperOf(deck, last), 'SIGALRM')
    const notes = async () => (await deck.status()).workers[0].socketNotes.join()
    await until(async () => /it has held up what answers its calls/.test(await notes()), 'the note')
  })

  test(
    'that shut their listener down at their end: no request fails over restarts, one that ends itself, a release that never gets ready and a dead master',
    { skip: rareInPython },
    async (t) => {
      const cwd = tempFolder()
      const { deck, url } = await startOther(t, 'shuts-its-listener-down.py', { cwd, workers: 3,
        flags: ['--ready-path', '/', '--ready-interval-ms', '100', '--ready-timeout-ms', '1500'] })
      const load = await loadOn(t, url)
      await deck.rollout('restart')
      const [leaver] = await pidsOf(deck)
      await load.whenIdle(() => process.kill(leaver, 'SIGTERM'))
      await deck.untilEvent('worker.exited', { pid: leaver })
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

      await load.checkNoneLost()
      const exited = await deck.history('type=worker.exited&limit=100')
      assert.deepEqual(exited.filter(({ message }) => /EADDRINUSE|Address already in use/.test(String(message))), [])
    }
  )

  test('that Python runs write each line at once, unless told otherwise', { skip: rareInPython }, async (t) => {
    const words = ['sh', '-c', 'exec python3 -c "import time; print(\'now ready\'); time.sleep(60)"']
    const options = { workers: 1, flags: ['--ready-log', 'now ready', '--ready-timeout-ms', '1500'] }
    await startOther(t, words, options)
    const { deck } = await startOther(t, words, { ...options, env: { PYTHONUNBUFFERED: '' } }, startDeck)
    assert.match(String((await deck.untilEvent('worker.exited')).message), /has not written the line "now ready"/)
  })

  test('that go to the background are told so, and leave nobody there', async (t) => {
    const file = path.join(tempFolder(), 'pid')
    const { deck } = await startOther(t, ['sh', '-c', `setsid sleep 345 & echo $! > ${file}`], { workers: 1 },
      startDeck)
    const { message } = await deck.untilEvent('worker.exited')
    assert.match(String(message),
      /exited with code 0 before it was ready; it has gone to the background, and left \w+ \(pid \d+\), which is ended: let it run in the foreground/)
    await until(() => isGone(textIn(file).trim()), 'the end of what it has left')
  })

  test('that find another copy at their port, as they look by a connection, are told what to do', async (t) => {
    const { deck } = await startOther(t, 'looks-whether-it-answers.js', {}, startDeck)
    const { message, detail } = await deck.untilEvent('worker.exited')
    assert.match(String(message),
      /Port \d+ not free on 127\.0\.0\.1\.; the master has refused it no port, and other copies of it serve: it may have looked by itself/)
    const { health } = await deck.status()
    assert.ok(health.reasons[0].text.endsWith(`not free on 127.0.0.1.; ${detail?.hint}`), JSON.stringify(health))
  })

  rareTest('that may not bind their port are told how they could', async (t) => {
    const { deck } = await startOther(t, 'listens-on-port.js', { env: { PORT: '1' },
      launch: { through: ['setpriv', '--bounding-set=-net_bind_service'] } }, startDeck)
    const { message } = await deck.untilEvent('worker.exited')
    assert.match(String(message),
      /permission denied.*:1 is not permitted \(EACCES\): the master binds it, and may not bind ports below \d+\. Let it by/is)
  })

  test('that bind one address twice are told so', async (t) => {
    const port = String(await freePort())
    const { deck } = await startOther(t, 'listens-twice.js', { workers: 1, env: { PORT: port, SECOND_PORT: port } },
      startDeck)
    await deck.untilEvent('worker.exited')
    assert.match((await written(deck)).join('\n'), new RegExp(`EADDRINUSE: address already in use 127.0.0.1:${port}`))
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
      const { deck, url } = await startOther(t, 'listens-on-port.js', { launch: without(PIDFD_GETFD) })
      const before = await pidsOf(deck)
      await deck.rollout('restart')
      const answer = Number(await get(url))
      assert.ok(!before.has(answer) && (await pidsOf(deck)).has(answer))
    })

  test('that may not filter system calls run alone: several workers are refused with the reason, and one is said to have sockets of its own', async (t) => {
    const launch = without(SECCOMP)
    const { code, stderr } = await runCli(['start', '--workers', '2', '--data-dir', tempFolder(), '--admin-port', '0',
      '--', ...asOtherProgram('listens-on-port.js')], { cwd: tempFolder(), launch })
    assert.equal(code, 2, stderr)
    assert.match(stderr,
      /workers: expected 1 with rollout\.order "stop-first" on this machine, received 2 with "start-first".*seccomp: Operation not permitted/)

    const { deck, url } = await startOther(t, 'listens-on-port.js', { workers: 1, launch,
      flags: ['--rollout-order', 'stop-first'] })
    assert.equal((await deck.status()).app.ownSockets, 'seccomp: Operation not permitted')
    assert.ok((await pidsOf(deck)).has(Number(await get(url))))
  })
})

/** `what`: a fixture of JavaScript or Python, or words: a program of another language, which is told a port. */
async function startOther (t: TestContext, what: string | string[], options: Parameters<typeof startDeck>[2] = {},
  start = startReady)
{
  const port = await freePort()
  const args = typeof what !== 'string'
    ? what
    : what.endsWith('.py')
    ? ['python3', path.join(FIXTURES, what)]
    : asOtherProgram(what)
  const deck = await start(t, null, { cwd: tempFolder(), args, ...options,
    env: { PORT: String(port), ...options.env } })
  return { deck, port, url: `http://127.0.0.1:${port}/` }
}

/** Fresh connections, some of which are answered already. */
async function loadOn (t: TestContext, url: string,
  options: { perSecond: number, socketPath?: string } = { perSecond: 40 })
{
  const load = openFreshConnections(t, url, options)
  await load.untilAnswered(20)
  return load
}

/** @returns the last lines of the workers */
async function written (deck: Deck): Promise<string[]> {
  return (await deck.api('/logs?lines=50')).body.items.map(({ text }) => text)
}

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
