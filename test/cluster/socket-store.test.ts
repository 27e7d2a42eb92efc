import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { describe, test } from 'node:test'
import { errorCode } from '../../server/errors.ts'
import { fakeSystemd } from '../support/fake-systemd.ts'
import { startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { startHost } from '../support/host.ts'
import { openFreshConnections, whenAllIdle } from '../support/load.ts'
import { freePort } from '../support/ports.ts'
import { rareOnly } from '../support/rare.ts'
import { until } from '../support/until.ts'
import { BELOW_SYSTEMD, openSocket, openSocketStore, withoutNativeCalls } from '../support/service-manager.ts'

const APP = 'listens-where-told.js'
type Address = { host: string, port: number } | { path: string }

/** `addresses`: what the app's servers listen on */
const listenOn = (...addresses: Address[]) => ({ ADDRESSES: JSON.stringify(addresses) })
const loopback = (port: number) => ({ host: '127.0.0.1', port })

describe('sockets in the store of the service manager', { skip: withoutNativeCalls, concurrency: 2 }, () => {
  for (const [what, flags, spares] of [['keeper, master and workers', [], false], ['keeper and master alone', [], true],
    ['a master without a keeper, and its workers', ['--no-keeper'], false]] as [string, string[], boolean][])
  {
    test(`${what} are killed together: whoever connects meanwhile waits, and is answered`, {
      skip: (spares || flags.length > 0) && rareOnly
    }, async (t) => {
      const store = openSocketStore(t)
      const place = { path: path.join(tempFolder(), 'app.sock') }
      const port = await freePort()
      const env = { ...listenOn(loopback(port), place), NOTIFY_SOCKET: store.name, FDSTORE: '100' }
      const first = await startReady(t, APP, { env, flags })
      await store.untilKept(2)
      const loads = [openFreshConnections(t, `http://127.0.0.1:${port}`, { perSecond: 50 }),
        openFreshConnections(t, 'http://app', { perSecond: 50, socketPath: place.path })]
      for (const load of loads) await load.untilAnswered(20)
      const { workers } = await first.status()
      const killed = [Number(first.child.pid), first.masterPid, ...spares ? [] : workers.map(({ pid }) => Number(pid))]
      await whenAllIdle(loads, () => {
        for (const pid of new Set(killed)) process.kill(pid, 'SIGKILL')
      })
      await first.exited
      const second = await startReady(t, APP, { env, flags, dataDir: first.folder, launch: store.launch() })
      for (const load of loads) {
        const { total, slowestMs } = await load.checkNoneLost()
        t.diagnostic(`${total} connections, the slowest took ${slowestMs} ms`)
      }
      assert.equal(second.output.stderr, '')
      assert.equal(store.kept.length, 2, 'the same ones are stored')
      for (const { pid } of (await second.status()).workers)
        assert.doesNotMatch(readFileSync(`/proc/${pid}/environ`, 'utf8'), /LISTEN_|FDSTORE|NOTIFY_SOCKET/)
      assert.deepEqual(await second.stop(), { code: 0, signal: null })
      await store.untilKept(0)
    })
  }

  test('a restart leaves the sockets open, and the path of a Unix socket; a stop closes them', async (t) => {
    const [store, systemd] = [openSocketStore(t), fakeSystemd()]
    const place = { path: path.join(tempFolder(), 'app.sock') }
    const port = await freePort()
    const env = { ...listenOn(loopback(port), place), NOTIFY_SOCKET: store.name, PATH: systemd.path }
    const first = await startReady(t, APP, { env, launch: BELOW_SYSTEMD })
    await store.untilKept(2)
    const loads = [openFreshConnections(t, `http://127.0.0.1:${port}`, { perSecond: 50 }),
      openFreshConnections(t, 'http://app', { perSecond: 50, socketPath: place.path })]
    for (const load of loads) await load.untilAnswered(20)
    systemd.beginStop('restart', { stored: 2 })
    assert.deepEqual(await first.stop(), { code: 0, signal: null })
    const second = await startReady(t, APP, { env, dataDir: first.folder,
      launch: { ...store.launch(), execArgv: BELOW_SYSTEMD.execArgv } })
    for (const load of loads) await load.checkNoneLost()
    assert.equal(second.output.stderr, '')

    systemd.beginStop('stop', { stored: 2 })
    assert.deepEqual(await second.stop(), { code: 0, signal: null })
    await store.untilKept(0)
    for (const where of [loopback(port), place]) assert.match(await knock(where), /ECONNREFUSED|ENOENT/)
  })

  test('a socket that no app has on record is closed and told, also one that has another address than the record', async (t) => {
    const store = openSocketStore(t)
    const port = await freePort()
    const env = { ...listenOn(loopback(port)), NOTIFY_SOCKET: store.name }
    const first = await startReady(t, APP, { env })
    await store.untilKept(1)
    await first.stop()
    await store.untilKept(0)
    const strangers = [store.sent[0], 'clusterdeck-of-somebody-else', 'stored'].map((name) => ({ name,
      ...openSocket(t) })
    )
    for (const { name, fd } of strangers) store.put(name, { fd })
    const second = await startReady(t, APP, { env, dataDir: first.folder, launch: store.launch() })
    for (const { name, port, close } of strangers) {
      close()
      assert.ok(
        second.output.stderr.includes(
          `clusterdeck: the socket 127.0.0.1:${port} ("${name}") of the service manager is closed: `
        ),
        second.output.stderr
      )
      await untilRefused(port)
    }
    await store.untilKept(1)
    assert.equal(await knock(loopback(port)), 'connected')
  })

  test('of a host, the socket of an app that is stopped goes, and does not come back, nor does that of one that fails; the others stay', async (t) => {
    const store = openSocketStore(t)
    const [shop, mail, blog] = [await freePort(), await freePort(), await freePort()]
    const env = { NOTIFY_SOCKET: store.name }
    const first = await startHost(t, { env })
    const code = (port: number) =>
      `require('node:http').createServer((_, answer) => answer.end(String(process.pid))).listen(${port}, '127.0.0.1')`
    const folders = []
    for (const [name, port] of Object.entries({ shop, mail, blog })) {
      folders.push(await first.addCode(name, code(port)))
      await first.untilApp(name, ({ state }) => state === 'running')
    }
    await store.untilKept(3)
    await first.post('/apps/mail/stop')
    await first.untilApp('mail', ({ state }) => state === 'stopped')
    await store.untilKept(2)
    assert.equal(await knock(loopback(mail)), 'ECONNREFUSED')
    assert.equal(await knock(loopback(shop)), 'connected')

    const late = openSocket(t)
    store.put(store.sent[1], late)
    rmSync(path.join(folders[2], 'app.js'))
    const worker = await (await fetch(`http://127.0.0.1:${blog}`)).text()
    for (const pid of [first.about.pid, Number(first.child.pid), Number(worker)]) process.kill(pid, 'SIGKILL')
    await first.exited
    const second = await startHost(t, { folder: first.folder, env, launch: store.launch() })
    late.close()
    await second.untilApp('shop', ({ state }) => state === 'running')
    await second.untilApp('blog', ({ state }) => state === 'failed')
    for (const port of [late.port, blog]) await untilRefused(port)
    await store.untilKept(1)
    assert.equal(await knock(loopback(shop)), 'connected')
  })
})

/** Somebody may still be about to close it. */
async function untilRefused (port: number) {
  await until(async () => await knock(loopback(port)) === 'ECONNREFUSED', `a refusal at port ${port}`)
}

/** @returns what becomes of a connection */
async function knock (where: net.NetConnectOpts): Promise<string> {
  const socket = net.connect(where)
  try {
    await once(socket, 'connect')
    return 'connected'
  } catch (error) {
    return String(errorCode(error))
  } finally {
    socket.destroy()
  }
}
