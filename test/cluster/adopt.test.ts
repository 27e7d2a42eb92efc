import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, copyFileSync, existsSync, readFileSync, readdirSync, realpathSync, rmSync,
  writeFileSync } from 'node:fs'
import path from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { askDatagram, askPath, get } from '../support/asking.ts'
import { FIXTURES, runCli, startDeck, type Deck } from '../support/deck.ts'
import { readRecords } from '../support/records.ts'
import { tempFolder } from '../support/folder.ts'
import { startHost, type Host } from '../support/host.ts'
import { hammer, openFreshConnections } from '../support/load.ts'
import { freePort } from '../support/ports.ts'
import { present } from '../support/present.ts'
import { lacksPython } from '../support/pseudo-terminal.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

/** A host, a deck with two workers on three sockets, and clients that keep their connections and such that do not. */
async function startBoth (t: TestContext, ofHost?: Parameters<typeof startHost>[1]) {
  const place = tempFolder()
  const port = await freePort()
  // A release comes back only where its files are kept.
  const app = path.join(tempFolder(), 'app.mjs')
  copyFileSync(path.join(FIXTURES, 'serves-on-three-sockets.js'), app)
  const [host, deck] = await Promise.all([startHost(t, ofHost),
    startDeck(t, app, { flags: ['--name', 'shop', '--releases-mode', 'folder'],
      env: { PORT: String(port), PLACE: place } })])
  await deck.until({ ready: 2 })
  const url = `http://127.0.0.1:${port}/`
  const fresh = openFreshConnections(t, url, { perSecond: 50 })
  const kept = hammer(t, url, { connections: 8 })
  await Promise.all([fresh.untilAnswered(20), kept.untilAnswered(20)])
  return {
    host,
    deck,
    app,
    place,
    port,
    url,
    adopt: (...words: string[]) =>
      runCli(['adopt', deck.folder, ...words], { env: { CLUSTERDECK_HOST_DIR: host.folder } }),
    order: (name: 'hold' | 'fail') => writeFileSync(path.join(place, name), ''),
    withdraw: (name: 'hold' | 'fail') => rmSync(path.join(place, name)),

    /** No request has failed, and whoever answers now does so on all three sockets. */
    async checkNoneLost () {
      for (const load of [fresh, kept]) {
        await load.checkNoneLost()
      }
      const answers = await Promise.all([get(url), askPath(path.join(place, 'app.sock')), askDatagram(port)])
      assert.ok(answers.every((answer) => Number(answer) > 0), String(answers))
      return answers.map(Number)
    }
  }
}

/** @returns names of the apps that it remembers */
function remembered (host: Host): string[] {
  return readRecords(host.folder).map(({ name }) => name)
}

function isOwn ({ pid, host }: { pid: number, host?: string }, before: number) {
  return host === undefined && pid !== before
}

/** The host has the deck, and starts its workers. */
async function untilBegun (host: Host, deck: Deck) {
  await host.untilApp('shop', ({ state }) => state === 'starting')
  await until(() => readFileSync(path.join(deck.folder, 'memory.json'), 'utf8').includes(`"pid":${host.about.pid}`),
    'the host to have begun')
}

/** The deck goes on with two workers of its own, and knows why. */
async function checkGoesOn (deck: Deck, host: Host | null) {
  // The host may have announced itself there in between.
  await until(() => isOwn(JSON.parse(readFileSync(path.join(deck.folder, 'master.json'), 'utf8')), deck.masterPid),
    'the next master of the deck')
  await deck.meetNext()
  await deck.untilStatus(
    ({ workers, readyWorkers }) => readyWorkers === 2 && workers.length === 2 && workers.every(({ orphan }) => !orphan),
    'two workers of its own'
  )
  assert.equal(deck.child.exitCode, null)
  if (host) assert.deepEqual(await host.request('/apps'), { items: [] })
  if (host) assert.deepEqual(remembered(host), [])
}

type Both = Awaited<ReturnType<typeof startBoth>>

const GOES_ON = /the host has ended meanwhile; the deck goes on as before$/m
const kill = (...pids: (number | null)[]) => pids.forEach((pid) => process.kill(present(pid), 'SIGKILL'))

/** What happens while the host starts the workers of the deck. `says`: the command; `check`: that all is well again */
const STRIKES: { title: string, words?: string[], env?: Record<string, string>, strike: (both: Both) => void,
  code: number, says: RegExp, check: (both: Both) => Promise<unknown> }[] = [{
    title: 'the host dies in the middle of it: the next master of the deck goes on',
    strike ({ host, withdraw }) {
      kill(host.about.pid, host.about.keeperPid)
      withdraw('hold')
    },
    code: 1,
    says: GOES_ON,
    check: ({ deck }) => checkGoesOn(deck, null)
  }, { title: 'the master of the host dies in the middle of it: the next master of the deck goes on',
    strike ({ host, withdraw }) {
      kill(host.about.pid)
      withdraw('hold')
    }, code: 1, says: GOES_ON, check: ({ deck, host }) => checkGoesOn(deck, host) }, {
    title:
      'the host hangs in the middle of it, and has no keeper: adopt ends with its time, the old workers serve on, and once that host is killed the deck goes on',
    words: ['--timeout', '4s'],
    env: { CLUSTERDECK_KEEPER: 'off' },
    strike: ({ host }) => process.kill(host.about.pid, 'SIGSTOP'),
    code: 124,
    says: /./,
    async check ({ host, deck, url, withdraw }) {
      assert.equal(host.about.keeperPid, null)
      assert.ok(Number(await get(url)) > 0)
      withdraw('hold')
      kill(host.about.pid)
      await checkGoesOn(deck, null)
    }
  }, { title: 'its master is killed in the middle of it: the host goes on, and the keeper ends',
    strike ({ deck, withdraw }) {
      kill(deck.masterPid)
      withdraw('hold')
    }, code: 0, says: /./, async check ({ host, deck }) {
    await deck.exited
    assert.match(deck.output.stderr, /is in the host now/)
    await host.untilApp('shop', ({ workers }) => workers?.ready === 2)
  } }]

describe('a deck moves into the host', { concurrency: 2 }, () => {
  test('under load, with TCP, a Unix socket and UDP: no request fails, the deck ends with code 0, and history, releases and list go on', async (t) => {
    const { host, deck, app, place, adopt, checkNoneLost } = await startBoth(t)
    appendFileSync(app, '// r2\n')
    await deck.rollout('deploy')
    const { master: { pid: keeperOrMaster } } = await deck.status()
    const { code, stdout, stderr } = await adopt()
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^shop +All 2 workers are ready +2\/2/m)
    assert.match(stderr, /^shop moves into the host: its new workers start beside the old ones$/m)
    assert.deepEqual(await deck.exited, { code: 0, signal: null })
    assert.match(deck.output.stdout, /this app is in the host now: clusterdeck status shop/)
    const pids = await checkNoneLost()

    const { workers } = await host.request('/apps/shop/status')
    assert.ok(pids.every((pid) => workers.some((worker) => worker.pid === pid && !worker.orphan)))
    const { items: events } = await host.request('/apps/shop/events?limit=200')
    const types = events.map(({ type }) => type)
    assert.ok(types.indexOf('app.adopted') < types.indexOf('rollout.succeeded'), String(types))
    const [moved] = events.filter(({ type }) => type === 'app.adopted')
    assert.deepEqual([moved.actor, moved.message], ['the owner\'s token',
      `moved into the host as shop, from a deck of its own (pid ${keeperOrMaster})`])
    assert.ok(
      !events.some(({ type, code, signal, cause }) =>
        type === 'worker.exited' && cause === 'upgrade' && (code ?? signal) === null
      ),
      'how the old workers ended is known'
    )
    const rollback = await host.post('/apps/shop/rollouts', { kind: 'rollback' })
    const { state, from, to } = await host.request(`/apps/shop/rollouts/${rollback.id}?wait=60s`)
    assert.deepEqual([state, from, to], ['succeeded', 'r2', 'r1'])
    assert.equal((await adopt()).code, 1)

    await host.stop()
    assert.ok(!existsSync(path.join(place, 'app.sock')))
    const next = await startHost(t, { folder: host.folder })
    assert.equal((await next.untilApp('shop', ({ state }) => state === 'running')).dataDir, deck.folder)
  })

  rareTest('right after its master was killed, and without waiting', async (t) => {
    const { host, deck, adopt, checkNoneLost } = await startBoth(t)
    process.kill(deck.masterPid, 'SIGKILL')
    const { code, stdout, stderr } = await adopt('--no-wait', '--json', '--name', 'shop-eu')
    assert.equal(code, 0, stderr)
    assert.equal(JSON.parse(stdout).app, 'shop-eu')
    assert.deepEqual(await deck.exited, { code: 0, signal: null })
    await host.untilApp('shop-eu', ({ state, workers }) => state === 'running' && workers?.ready === 2)
    await checkNoneLost()
  })

  rareTest('a name that is taken, a wrong secret and a path where nobody is are refused, and the same master goes on',
    async (t) => {
      const { host, deck, adopt, checkNoneLost } = await startBoth(t)
      await host.addCode('shop', 'setInterval(() => {}, 1000)')
      const { code, stderr } = await adopt()
      assert.equal(code, 2)
      assert.match(stderr,
        /^clusterdeck: name: expected one that no other app of this host has, received "shop", which has its data in .*; choose one by --name$/m)
      const { id, path: socket, secret } = await host.post('/host/adoptions', {})
      const move = (body: object) => deck.post('/move', body)
      const wrong = await move({ path: socket, secret: 'guessed' })
      assert.deepEqual([wrong.status, wrong.body.code], [403, 'forbidden'])
      assert.equal((await host.request(`/host/adoptions/${id}`)).state, 'failed')
      const late = await move({ path: socket, secret })
      assert.deepEqual([late.status, late.body.code], [409, 'not-possible'])
      const { master: { pid } } = await deck.status()
      assert.equal(pid, deck.masterPid)
      await checkNoneLost()
    })

  rareTest(
    'its new workers do not get ready in the host: the next master of the deck goes on with the old ones, and the history says why',
    async (t) => {
      const { host, deck, adopt, order, withdraw, checkNoneLost } = await startBoth(t)
      order('fail')
      const { code, stderr } = await adopt()
      withdraw('fail')
      assert.equal(code, 1)
      assert.match(stderr, /^clusterdeck: adopt: .*; the deck goes on as before$/m)
      await checkGoesOn(deck, host)
      const [stopped] = await deck.history('type=master.stopped&limit=1')
      assert.match(String(stopped.message), /^the app did not move into the host: worker \d+ .*/)
      await checkNoneLost()
      const again = await adopt()
      assert.equal(again.code, 0, again.stderr)
    }
  )

  for (const { title, words = [], env, strike, code, says, check } of STRIKES) {
    rareTest(title, async (t) => {
      const both = await startBoth(t, { env })
      both.order('hold')
      const adopting = both.adopt(...words)
      await untilBegun(both.host, both.deck)
      strike(both)
      const received = await adopting
      assert.equal(received.code, code, received.stderr)
      assert.match(received.stderr, says)
      await check(both)
      await both.checkNoneLost()
    })
  }
})

const PLAIN = `const http = require('http'); const answer = (_, response) => response.end(String(process.pid))
  if (require('fs').existsSync('fails')) throw new Error('told to fail')
  http.createServer(answer).listen(process.env.PORT); http.createServer(answer).listen('app.sock')`

/** Its calls of accept() wait, and it removes its path before it binds that. What goes wrong ends it. */
const WAITING = `import os, signal, socket, threading, time
def serve(listener):
    while True:
        try: client, _ = listener.accept()
        except Exception: os._exit(1)
        client.recv(9999)
        client.sendall(b'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n%d' % os.getpid())
        client.close()
path = socket.socket(socket.AF_UNIX)
if os.path.exists('app.sock'): os.unlink('app.sock')
path.bind('app.sock'); path.listen(64)
if os.path.exists('fails'):
    os.unlink('app.sock')
    raise Exception('told to fail')
port = socket.socket(); port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
port.bind(('127.0.0.1', int(os.environ['PORT']))); port.listen(64)
for each in [path, path, port, port]: threading.Thread(target=serve, args=(each,)).start()
while True: time.sleep(1)`

const PROGRAMS = { plain: { command: process.execPath, file: 'plain.cjs', code: PLAIN, skip: false as string | false },
  waits: { command: 'python3', file: 'waits.py', code: WAITING, skip: lacksPython && 'it is written in Python' } }

/** A host, and a program on a port and a path, which clients ask on connections of their own. */
async function startProgram (t: TestContext, name: keyof typeof PROGRAMS) {
  const { command, file, code } = PROGRAMS[name]
  const [cwd, port] = [realpathSync(tempFolder()), await freePort()]
  writeFileSync(path.join(cwd, file), code)
  const host = await startHost(t)
  const child = spawn(command, [file], { cwd, env: { ...process.env, PORT: String(port) }, stdio: 'ignore' })
  t.after(() => {
    child.kill('SIGKILL')
  })
  await until(() => existsSync(path.join(cwd, 'app.sock')), 'the program to serve')
  const url = `http://127.0.0.1:${port}/`
  const fresh = openFreshConnections(t, url, { perSecond: 50 })
  await fresh.untilAnswered(20)
  return { host, child, cwd, url, answers: () => Promise.all([get(url), askPath(path.join(cwd, 'app.sock'))]),
    adopt: (...words: string[]) =>
      runCli(['adopt', ...words, '--name', name], { env: { CLUSTERDECK_HOST_DIR: host.folder } }),
    async checkNoneLost () {
      await fresh.checkNoneLost()
    } }
}

test('a program that is no deck is replaced under load, on its port and its path: no connection fails, then it is asked to end', async (t) => {
  const { host, child, cwd, url, answers, adopt, checkNoneLost } = await startProgram(t, 'plain')
  const exited = once(child, 'exit')
  const { code, stdout, stderr } = await adopt('--port', new URL(url).port)
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^plain +The worker is ready +1\/1/m)
  assert.match(stderr,
    new RegExp(
      `^node plain\\.cjs \\(pid ${child.pid}\\) serves on \\[::\\]:\\d+, ${cwd}/app\\.sock; new workers start beside it$`,
      'm'
    ))
  assert.deepEqual(await exited, [null, 'SIGTERM'])
  await checkNoneLost()
  const { workers: [{ pid }] } = await host.request('/apps/plain/status')
  assert.deepEqual(await answers(), [String(pid), String(pid)])
  const { items: events } = await host.request('/apps/plain/events?limit=200&type=app.adopted')
  assert.deepEqual(events.map(({ message }) => message), [
    `started in this host as plain, in the place of node plain.cjs (pid ${child.pid})`
  ])
})

test(
  'a program that waits in accept() and removes its path before it binds that is replaced: its new copies wait, too, and it never has a call fail before it is asked to end',
  { skip: PROGRAMS.waits.skip },
  async (t) => {
    const { host, child, answers, adopt, checkNoneLost } = await startProgram(t, 'waits')
    const exited = once(child, 'exit')
    const { code, stderr } = await adopt('--pid', String(child.pid), '--workers', '2')
    assert.equal(code, 0, stderr)
    assert.deepEqual(await exited, [null, 'SIGTERM'])
    await checkNoneLost()
    const pids = (await host.request('/apps/waits/status')).workers.map(({ pid }) => String(pid))
    for (const answer of await answers()) assert.ok(pids.includes(answer), answer)
    const { id } = await host.post('/apps/waits/rollouts', { kind: 'restart' })
    await host.request(`/apps/waits/rollouts/${id}?wait=60s`)
    for (const answer of await answers()) assert.ok(!pids.includes(answer), answer)
  }
)

for (const name of ['plain', 'waits'] as const) {
  test(
    `a program whose new copies do not get ready serves on as before, with its path, and the host has nothing of it: ${name}`,
    { skip: rareOnly || PROGRAMS[name].skip },
    async (t) => {
      const { host, child, cwd, answers, adopt, checkNoneLost } = await startProgram(t, name)
      writeFileSync(path.join(cwd, 'fails'), '')
      const { code, stderr } = await adopt('--pid', String(child.pid))
      assert.equal(code, 1)
      assert.match(stderr,
        /^clusterdeck: adopt: worker 1 .*told to fail.*; (node plain\.cjs|python3 waits\.py) \(pid \d+\) goes on as before$/m)
      // Each of its calls may be one that waits.
      for (let n = 0; n < 5; n++) assert.deepEqual(await answers(), [String(child.pid), String(child.pid)])
      await checkNoneLost()
      assert.deepEqual([await host.request('/apps'), child.exitCode, readdirSync(cwd).filter((each) =>
        each.includes('.sock')
      )], [{ items: [] }, null, ['app.sock']])
    }
  )
}

/** A PM2 of a test. `onOrder`: what its shell does with anything but a question */
function playPm2 (onOrder: string) {
  const home = tempFolder()
  writeFileSync(path.join(home, 'pm2.pid'), String(process.pid))
  writeFileSync(path.join(home, 'pm2'), `#!/bin/sh\n[ "$1" = jlist ] && exec cat '${home}/list'\n${onOrder}\n`, {
    mode: 0o755
  })
  return { home,
    tell: (file: string, apps: { name: string, pid: number | undefined, [more: string]: unknown }[]) =>
      writeFileSync(path.join(home, 'list'),
        JSON.stringify(
          apps.map(({ name, pid, ...more }, id) => ({ name, pid,
            pm2_env: { name, pm_id: id, status: pid === 0 ? 'stopped' : 'online', exec_mode: 'fork_mode',
              pm_cwd: path.dirname(file), pm_exec_path: file, ...more } })
          )
        )),
    adopt: (cwd: string, host: Host) =>
      runCli(['adopt', '--pm2'], { cwd,
        env: { CLUSTERDECK_HOST_DIR: host.folder, PM2_HOME: home, PATH: `${home}:${process.env.PATH}` } }) }
}

test('a job of PM2 between two runs moves, and PM2, which would start it again, has it no more; one that runs is left alone', async (t) => {
  const [cwd, host] = [realpathSync(tempFolder()), await startHost(t)]
  const [file, ran] = [path.join(cwd, 'job.cjs'), path.join(cwd, 'ran')]
  const pm2 = playPm2('echo "$@" >> "$PM2_HOME/told"')
  writeFileSync(file,
    'require(\'fs\').writeFileSync(\'ran\', [process.env.WHO, process.env.CLUSTERDECK_JOB].join(\' \')); process.stdin.on(\'data\', () => {})')
  const long = spawn(process.execPath, ['job.cjs'], { cwd, stdio: ['pipe', 'ignore', 'ignore'] })
  t.after(() => {
    long.kill('SIGKILL')
  })
  pm2.tell(file,
    Object.entries({ night: 0, long: long.pid }).map(([name, pid]) => ({ name, pid, autorestart: false,
      cron_restart: '* * * * * *', env: { WHO: name } })
    ))
  const { code, stdout, stderr } = await pm2.adopt(cwd, host)
  assert.equal(code, 1)
  assert.match(stdout, /^night +The worker has finished/m)
  assert.match(stderr,
    new RegExp(
      `^clusterdeck: long: long of PM2 \\(pid ${long.pid}\\) is a job that runs at this moment: call this again once it has ended$`,
      'm'
    ))
  assert.deepEqual([readFileSync(path.join(pm2.home, 'told'), 'utf8'), long.exitCode], ['delete 0\n', null])
  await until(() => existsSync(ran) && readFileSync(ran, 'utf8') === 'night night', 'its first run in the host')
})

const FROM_PM2 = `const { existsSync, writeFileSync } = require('fs')
  const listen = () => require('http').createServer((_, response) => response.end(String(process.pid))).listen(process.env.PORT, () => writeFileSync('serves-' + process.pid, ''))
  if (process.env.FAILS === undefined || process.env.CLUSTERDECK_SLOT === undefined) return listen()
  writeFileSync('has-begun', '')
  setInterval(() => { if (existsSync('goes-on')) throw new Error('told to fail') }, 20)`

rareTest(
  'of several apps of PM2 each has its turn: one that fails keeps none from moving, and what PM2 restarts meanwhile finds its port free',
  async (t) => {
    const [cwd, host] = [realpathSync(tempFolder()), await startHost(t)]
    const at = (name: string) => path.join(cwd, name)
    const pm2 = playPm2('kill "$2"')
    const ports = { bad: await freePort(), good: await freePort() }
    const env = { bad: { PORT: String(ports.bad), FAILS: '1' }, good: { PORT: String(ports.good) } }
    writeFileSync(at('app.cjs'), FROM_PM2)
    writeFileSync(at('clusterdeck.config.json'),
      JSON.stringify({
        apps: Object.fromEntries(
          Object.entries(env).map(([name, env]) => [name, { entry: 'app.cjs', workers: 1, env }])
        )
      }))
    const run = async (name: 'bad' | 'good') => {
      const child = spawn(process.execPath, ['app.cjs'], { cwd, env: { ...process.env, ...env[name] },
        stdio: 'ignore' })
      t.after(() => {
        child.kill('SIGKILL')
      })
      await until(() => existsSync(at(`serves-${child.pid}`)), `${name} to serve`)
      return child
    }
    const tell = (children: Record<string, ChildProcess>) =>
      pm2.tell(at('app.cjs'), Object.entries(children).map(([name, { pid }]) => ({ name, pid, pm_id: pid })))
    const [bad, good] = await Promise.all([run('bad'), run('good')])
    tell({ bad, good })
    const adopting = pm2.adopt(cwd, host)
    await until(() => existsSync(at('has-begun')), 'the turn of the first')
    good.kill('SIGKILL')
    await once(good, 'exit')
    const next = await run('good')
    const exited = once(next, 'exit')
    tell({ bad, good: next })
    writeFileSync(at('goes-on'), '')
    const { code, stdout, stderr } = await adopting
    assert.equal(code, 1, stderr)
    assert.match(stderr,
      /^clusterdeck: bad: adopt: worker 1 .*told to fail.*; bad of PM2 \(pid \d+\) goes on as before$/m)
    assert.match(stdout, /^good +The worker is ready/m)
    assert.deepEqual([await exited, bad.exitCode], [[null, 'SIGTERM'], null])
    assert.equal(await get(`http://127.0.0.1:${ports.bad}/`), String(bad.pid))
    const { workers: [{ pid }] } = await host.request('/apps/good/status')
    assert.equal(await get(`http://127.0.0.1:${ports.good}/`), String(pid))
  }
)
