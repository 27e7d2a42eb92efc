import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import net from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { attempt } from '../../../server/errors.ts'
import { createEvenAccept, type Calls, type EvenAccept } from '../../../workers/even-accept.ts'
import { withoutNativeCalls } from '../../support/service-manager.ts'
import { until } from '../../support/until.ts'
import type { SocketHandle } from '../../../workers/node-internals.d.ts'

const THIEF = fileURLToPath(new URL('../../fixtures/takes-a-wake-up.cjs', import.meta.url))
const EXCLUSIVE = /events: 100000/
const ANY = /events: +(19|1)\b/

describe('accepting in turn', { skip: (process.platform !== 'linux' && 'epoll is of Linux') || withoutNativeCalls },
  () => {
    test('waits for each listening socket alone, after each connection anew, and as libuv does once it is closed', async (t) => {
      const { evenAccept, known } = setUp()
      const [one, two] = [await listen(t, evenAccept), await listen(t, evenAccept)]
      assert.deepEqual(await known, [true])
      for (const { fd } of [one, two]) await until(() => EXCLUSIVE.test(registration(fd)), 'it to wait alone')

      const accepted = once(one.server, 'connection')
      await connect(t, one.server)
      await accepted
      while (registration(one.fd) === '') await new Promise((resolve) => setImmediate(resolve))
      assert.match(registration(one.fd), EXCLUSIVE)

      one.server.close()
      evenAccept.again()
      assert.doesNotMatch(registration(one.fd), EXCLUSIVE, 'a number that may be another descriptor\'s by then')
      assert.match(registration(two.fd), EXCLUSIVE)
    })

    test('finds a connection that another process was woken for and has not taken', async (t) => {
      const { evenAccept, known } = setUp()
      const { server, fd } = await listen(t, evenAccept)
      await known
      const thief = fork(THIEF, { stdio: ['ignore', 'inherit', 'inherit', fd, 'ipc'] })
      t.after(() => thief.kill('SIGKILL'))
      await once(thief, 'message')
      // It sleeps elsewhere too, as for a thread of V8. A kernel that does not say where says 0.
      while (!waitsForEvents(Number(thief.pid))) await new Promise((resolve) => setImmediate(resolve))
      evenAccept.again()
      const woken = once(thief, 'message')
      const accepted = once(server, 'connection').then(() => 'accepted')
      await connect(t, server)
      await woken
      const unaccepted = await Promise.race([accepted, new Promise((resolve) => setImmediate(resolve, 'not accepted'))])
      assert.equal(unaccepted, 'not accepted', 'it is the other one\'s')
      evenAccept.again()
      assert.equal(await accepted, 'accepted')
    })

    test('leaves each other worker the time to take one of many that come at once', async (t) => {
      const { evenAccept, known } = setUp()
      const { server } = await listen(t, evenAccept)
      await known
      evenAccept.again({ others: 63 })
      const times: number[] = []
      server.on('connection', () => times.push(performance.now()))
      await Promise.all(Array.from({ length: 12 }, () => connect(t, server)))
      await until(() => times.length === 12, 'all to be accepted')
      // The first of them began no burst, and a timer of 5 ms may end in the fifth.
      assert.ok(times[11] - times[0] >= 10 * 4, `within ${times[11] - times[0]} ms`)
    })

    test('leaves sockets as they are where it cannot be done', async (t) => {
      for (const load of [() => null,
        () => ({ control: (_epoll: number, operation: number) => operation === 2 ? 0 : -1, option: () => -1 })])
      {
        const { evenAccept, known } = setUp(load)
        const { server, fd } = await listen(t, evenAccept)
        assert.deepEqual(await known, [false])
        assert.match(registration(fd), ANY)
        const accepted = once(server, 'connection')
        await connect(t, server)
        await accepted
      }
    })
  })

function setUp (load?: () => Calls | null) {
  let tell: (known: boolean[]) => void = () => {}
  const known = new Promise((resolve) => {
    tell = resolve
  })
  const told: boolean[] = []
  const evenAccept = createEvenAccept({ ...(load && { load }), onKnown (isEven) {
    told.push(isEven)
    setImmediate(() => tell(told))
  } })
  return { evenAccept, known }
}

async function listen (t: TestContext, evenAccept: EvenAccept) {
  const handle = net._createServerHandle('127.0.0.1', 0, 4) as SocketHandle
  const server = net.createServer()
  evenAccept.take(server, handle)
  t.after(() => server.close())
  server.on('connection', (socket) => t.after(() => socket.destroy()))
  server.listen(handle)
  await once(server, 'listening')
  return { server, fd: handle.fd }
}

async function connect (t: TestContext, server: net.Server) {
  const socket = net.connect((server.address() as net.AddressInfo).port, '127.0.0.1')
  t.after(() => socket.destroy())
  await once(socket, 'connect')
}

/** @returns how this process waits for it */
function registration (fd: number): string {
  return readdirSync('/proc/self/fdinfo').flatMap((name) => {
    const rows = attempt(() => readFileSync(`/proc/self/fdinfo/${name}`, 'utf8'), '').split('\n')
    return rows.filter((line) => new RegExp(`^tfd: +${fd} `).test(line))
  }).join()
}

function waitsForEvents (pid: number) {
  const [stat, place] = ['stat', 'wchan'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'latin1'))
  return /\) S /.test(stat) && (place === '0' || place.includes('epoll'))
}
