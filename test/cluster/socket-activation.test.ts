import assert from 'node:assert/strict'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import path from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { runCliHere } from '../support/cli-here.ts'
import { runCli, startDeck, type TestOwner, startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { openFreshConnections } from '../support/load.ts'
import { present } from '../support/present.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { openDatagramSocket, openSocket, passing, withoutNativeCalls } from '../support/service-manager.ts'

const APP = 'listens-where-told.js'
const APP_FILE = fileURLToPath(new URL(`../fixtures/${APP}`, import.meta.url))
const ALONE = ['--no-keeper']

/** `addresses`: what the app's servers listen on */
const listenOn = (...addresses: unknown[]) => ({ ADDRESSES: JSON.stringify(addresses) })
const loopback = (port: number) => ({ host: '127.0.0.1', port })

describe('sockets of the service manager', { skip: withoutNativeCalls, concurrency: 2 }, () => {
  for (const [who, flags] of [['the keeper', []], ['a master without a keeper', ALONE]] as [string, string[]][]) {
    test(
      `${who} gets them: what connected before the start is answered, no worker has a descriptor more than it should, and the whole service may start anew without a request that fails`,
      { skip: flags.length > 0 && rareOnly },
      async (t) => {
        const [app, other, admin, datagram] = [openSocket(t), openSocket(t), openSocket(t), openDatagramSocket(t)]
        const early = await knock({ host: '127.0.0.1', port: app.port })
        const launch = passing([app, other, datagram, admin], ['web', 'other', 'dns', 'admin'])
        const env = { ...listenOn(loopback(app.port)), NOTIFY_SOCKET: '/nowhere', WATCHDOG_USEC: '60000000' }
        const start = () => startDeck(t, APP, { launch, flags, env, workers: 1 })
        const deck = await start()
        const { workers: [{ pid }] } = await deck.until({ ready: 1 })
        assert.equal((await early.answer).pid, pid)
        assert.equal(new URL(deck.adminUrl).port, String(admin.port))

        assert.match(deck.output.stderr,
          /^clusterdeck: the inherited descriptor 5 \("dns"\) is not used: expected a listening TCP or Unix stream socket, received another kind of socket, as a datagram one is$/m)
        const unused =
          `the app does not listen on 127.0.0.1:${other.port} ("other"), which the service manager opened for it`
        assert.equal((await deck.untilEvent('socket.unused')).message, unused)
        assert.ok(deck.output.stdout.includes(`socket.unused ${unused.replace('the app', 'The app')}\n`),
          deck.output.stdout)
        assert.equal((await deck.history('type=socket.unused')).length, 1)

        const inodes = inodesOf(pid)
        const count = ({ fd }: { fd: number }) =>
          inodes.filter((inode) => inode === readlinkSync(`/proc/self/fd/${fd}`)).length
        assert.deepEqual([app, other, datagram, admin].map(count), [1, 0, 0, 0])
        assert.deepEqual(serviceVariables(pid), [])

        const fresh = openFreshConnections(t, `http://127.0.0.1:${app.port}`, { perSecond: 50 })
        await fresh.untilAnswered(20)
        assert.deepEqual(await deck.stop(), { code: 0, signal: null })
        await assert.rejects(ask(`http://127.0.0.1:${app.port}`, 200), /timeout/,
          'the socket still takes connections, as somebody else has it')
        const second = await start()
        await second.until({ ready: 1 })
        const { failures, total, slowestMs } = await fresh.stop()
        t.diagnostic(`${total} connections, the slowest took ${slowestMs} ms`)
        assert.deepEqual(failures, [])
      }
    )
  }

  rareTest(
    'a master that is killed, and an upgrade: the next one has them from the keeper, the admin\'s too, and drops nothing',
    async (t) => {
      const [app, admin] = [openSocket(t), openSocket(t)]
      const deck = await startDeck(t, APP, { launch: passing([app, admin], ['web', 'admin']),
        env: listenOn(loopback(app.port)), workers: 1 })
      const { workers: [{ pid }] } = await deck.until({ ready: 1 })
      const keeperDescriptors = inodesOf(Number(deck.child.pid)).length
      const fresh = openFreshConnections(t, `http://127.0.0.1:${app.port}`, { perSecond: 50 })
      await fresh.untilAnswered(20)
      await deck.loseMaster()
      await deck.until({ ready: 1 })
      const { code } = await runCliHere(['upgrade', '--wait', '--data-dir', deck.folder])
      assert.equal(code, 0)
      await deck.meetNext()
      const { workers } = await deck.until({ ready: 1 })
      await fresh.checkNoneLost()
      assert.ok(!workers.some((worker) => worker.pid === pid))
      assert.equal(new URL(deck.adminUrl).port, String(admin.port))
      assert.deepEqual(await deck.history('type=socket.unused'), [])
      assert.equal(inodesOf(Number(deck.child.pid)).length, keeperDescriptors, 'the keeper has leaked no descriptor')
    }
  )

  rareTest(
    'a Unix socket is found by its path, which stays when all is over; an app that listens on descriptor 3, as one made for systemd does, gets it',
    async (t) => {
      const socketPath = path.join(tempFolder(), 'app.sock')
      const [third, unix] = [openSocket(t), openSocket(t, { path: socketPath })]
      const early = await knock({ path: socketPath })
      const deck = await startDeck(t, APP, { launch: passing([third, unix], ['web', 'local']),
        env: listenOn({ fd: 3 }, { path: socketPath }), workers: 1 })
      const { workers: [{ pid }] } = await deck.until({ ready: 1 })
      assert.equal((await early.answer).pid, pid)
      assert.equal((await ask(`http://127.0.0.1:${third.port}`)).pid, pid)
      assert.deepEqual(await deck.history('type=socket.unused'), [])
      assert.equal((await deck.rollout('restart')).state, 'succeeded')
      assert.deepEqual(await deck.stop(), { code: 0, signal: null })
      assert.ok(existsSync(socketPath))
    }
  )

  rareTest(
    'what does not listen is named and left alone: a file, a connection, and fewer descriptors than were promised',
    async (t) => {
      const socketPath = path.join(tempFolder(), 'peer.sock')
      const file = openSync('/dev/null', 'r')
      t.after(() => closeSync(file))
      const connections = await Promise.all([openConnection(t, openSocket(t)),
        openConnection(t, openSocket(t, { path: socketPath }))])
      const launch = passing([{ fd: file }, ...connections], ['log', 'tcp', 'unix'])
      const deck = await startReady(t, 'answers-with-pid.js', { launch, env: { LISTEN_FDS: '1000' }, workers: 1 })
      const said = deck.output.stderr.split('\n').filter(Boolean).map((line) =>
        /^clusterdeck: the inherited descriptor (\d+ \(".*"\)) is not used: .*, received (.*)$/.exec(line)?.slice(1)
          .join(' ')
      )
      const connection = 'a connection (Accept=yes in its socket unit)'
      assert.deepEqual(said.slice(0, 3), ['3 ("log") something else', `4 ("tcp") ${connection}`,
        `5 ("unix") ${connection}`])
      assert.match(String(said.at(-1)), /^\d+ \("unknown"\) nothing$/)
      assert.ok(said.length < 100, 'what follows the last one is not looked for')
      assert.deepEqual(await deck.history('type=socket.unused'), [])
    }
  )

  rareTest('an app that listens on another address of the same port is told what is in its way', async (t) => {
    const socket = openSocket(t)
    const { code, stderr } = await runCli(['start', APP_FILE, '--admin-port', '0', '--workers', '1', '--data-dir',
      tempFolder()], { launch: passing([socket], ['web']), env: listenOn({ port: socket.port }) })
    assert.equal(code, 1)
    assert.equal(stderr,
      `clusterdeck: port ${socket.port} is in use (EADDRINUSE); the service manager has 127.0.0.1:${socket.port} ("web"), and that is not the address that the app listens on\n`)
  })

  for (const [what, name, where, flags, message] of [['sticky', 'web', 'tcp', ['--dispatch', 'sticky'],
    /^clusterdeck: dispatch: expected "shared" for a socket of the service manager, 127\.0\.0\.1:\d+ \("web"\), received "sticky"\n$/],
    ['a Unix socket for the admin port', 'admin', 'unix', [],
      /^clusterdeck: LISTEN_FDNAMES: expected a TCP socket under the name "admin", received \/.*admin\.sock \("admin"\)\n$/]] as [
      string,
      string,
      'tcp' | 'unix',
      string[],
      RegExp
    ][])
  {
    test(`${what}: one clear line, exit code 2`, async (t) => {
      const socket = openSocket(t, where === 'unix' ? { path: path.join(tempFolder(), 'admin.sock') } : {})
      const { code, stderr } = await runCli(['start', APP_FILE, '--data-dir', tempFolder(), ...flags], {
        launch: passing([socket], [name])
      })
      assert.match(stderr, message)
      assert.equal(code, 2)
    })
  }
})

async function openConnection (t: TestOwner, { port, path }: { port: number, path?: string }) {
  const socket = net.connect(path ? { path } : { host: '127.0.0.1', port })
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  return { fd: present(socket._handle).fd }
}

/** @returns on a connection of its own */
function ask (url: string, timeout: number = 40_000) {
  return read(http.get(url, { agent: false, timeout }))
}

/** Has connected and asked when it returns. */
async function knock (where: net.NetConnectOpts) {
  const socket = net.connect(where)
  await once(socket, 'connect')
  return { answer: read(http.get({ createConnection: () => socket })) }
}

function read (request: http.ClientRequest): Promise<{ pid: number }> {
  return new Promise((resolve, reject) => {
    request.on('error', reject).on('timeout', () => request.destroy(new Error('timeout'))).on('response',
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part) => {
          text += part
        }).on('end', () => resolve(JSON.parse(text)))
      })
  })
}

/** What its descriptors stand for. */
function inodesOf (pid: number) {
  return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`))
}

/** What it was given of the service manager's variables. */
function serviceVariables (pid: number) {
  return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').filter((variable) =>
    /^(LISTEN_(FDS|PID|FDNAMES)|NOTIFY_SOCKET|WATCHDOG_)/.test(variable)
  )
}
