import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import { createSteering } from '../../../server/cluster/steering.ts'
import { fstatSync } from 'node:fs'
import { bindOnce } from '../../../server/system/native.ts'
import { loadPosix } from '../../../server/system/posix.ts'

const { shutdown, dup } = bindOnce((koffi) => {
  const libc = koffi.load(null)
  return { shutdown: libc.func('int shutdown(int fd, int how)'), dup: libc.func('int dup(int fd)') }
})() ?? { shutdown () {}, dup: Number }
const calls = loadPosix()
const skip = calls === null && 'it takes Linux and koffi'
const ANY = { '0.0.0.0': '127.0.0.1', '127.0.0.1': '127.0.0.1', '::': '::1', '::1': '::1' }

for (const [address, reached] of Object.entries(ANY)) {
  test(`only the probe reaches a worker that does not serve yet: ${address}`, { skip }, async (t) => {
    const { steering, answers, port, inodes } = await twoWorkers(t, address, { serving: [1] })
    const probe = await said(steering.connect(inodes[1]))
    assert.equal(probe, 'worker 2')
    const open = steering.connect(inodes[1])
    await once(open as net.Socket, 'connect')
    for (let count = 0; count < 20; count++) assert.equal(await said(net.connect(port, reached)), 'worker 1')
    if (address === '::') assert.equal(await said(net.connect(port, '127.0.0.1')), 'worker 1')
    open?.destroy()
    assert.deepEqual(answers, { 1: address === '::' ? 21 : 20, 2: 2 })
  })
}

test('spreads connections evenly over all that serve, and probes each of several at once', { skip }, async (t) => {
  const { steering, answers, port, inodes } = await twoWorkers(t, '127.0.0.1', { serving: [1, 2] })
  for (let count = 0; count < 400; count++) await said(net.connect(port, '127.0.0.1'))
  assert.ok(Math.abs(answers[1] - 200) < 5 * 10, JSON.stringify(answers))
  const both = await Promise.all([...inodes, ...inodes].map((inode) => said(steering.connect(inode))))
  assert.deepEqual(both, ['worker 1', 'worker 2', 'worker 1', 'worker 2'])
  assert.equal(steering.connect(1), null)
})

test('where workers are held back, clients wait until one of them serves; a probe does not', { skip }, async (t) => {
  await Promise.all(Object.entries(ANY).map(async ([address, reached]) => {
    const serving = [] as number[]
    const { steering, answers, port, inodes } = await twoWorkers(t, address, { serving, isHeldBack: true })
    const clients = [reached, ...(address === '::' ? ['127.0.0.1'] : [])].map((host) => said(net.connect(port, host)))
    assert.equal(await said(steering.connect(inodes[0])), 'worker 1')
    assert.equal(await said(steering.connect(inodes[1])), 'worker 2')
    assert.deepEqual(answers, { 1: 1, 2: 1 })
    serving.push(2)
    steering.look()
    assert.deepEqual(new Set(await Promise.all(clients)), new Set(['worker 2']))
    assert.equal(await said(net.connect(port, reached)), 'worker 2')
  }))
})

test(
  'where workers shut their sockets down, in whatever order, clients and probes reach whom they are meant for, and the next workers get sockets that listen',
  { skip },
  async (t) => {
    await Promise.all(Object.entries(ANY).map(async ([address, reached]) => {
      const serving = [4, 5]
      const { steering, begin, group, port, inodes } = await workersOf(t, address, { serving, count: 5 })
      for (const worker of [2, 1, 3]) shutdown(group.handles()[worker - 1].fd, 0)
      await assert.rejects(said(steering.connect(inodes[0])), /ECONNREFUSED/)
      assert.deepEqual(await Promise.all([4, 5].map((worker) => said(steering.connect(inodes[worker - 1])))), [
        'worker 4',
        'worker 5'
      ])

      const fresh = [6, 7].map(begin)
      assert.ok(fresh.every((inode) => !inodes.includes(inode)))
      assert.deepEqual(await Promise.all([...fresh, inodes[4]].map((inode) => said(steering.connect(inode)))), [
        'worker 6',
        'worker 7',
        'worker 5'
      ])
      serving.splice(0, 2, 6)
      steering.look()
      assert.deepEqual(await clients(20, port, reached), Array(20).fill('worker 6'))
    }))
  }
)

test('where one that leaves shuts its socket down, clients go on reaching those that serve, before anybody has looked',
  { skip }, async (t) => {
  const { group, port } = await workersOf(t, '127.0.0.1', { serving: [2, 4], leaving: [1, 3], count: 5 })
  for (const worker of [3, 1]) shutdown(group.handles()[worker - 1].fd, 0)
  const startedAt = performance.now()
  assert.deepEqual(new Set(await clients(40, port, '127.0.0.1')), new Set(['worker 2', 'worker 4']))
  assert.ok(performance.now() - startedAt < 1000, 'no client has to send its first packet again')
})

test(
  'where one that serves shuts its socket down, no client reaches one that does not, and the address is never without a socket',
  { skip },
  async (t) => {
    const serving = [1, 3]
    const { steering, answers, begin, group, port } = await workersOf(t, '127.0.0.1', { serving, count: 3 })
    shutdown(group.handles()[0].fd, 0)
    const asked = clients(20, port, '127.0.0.1')
    await new Promise(setImmediate)
    steering.look()
    assert.deepEqual(new Set(await asked), new Set(['worker 3']))
    assert.equal(answers[2], 0)

    for (const { fd } of group.handles()) shutdown(fd, 2)
    steering.look()
    const waiting = clients(3, port, '127.0.0.1')
    begin(4)
    assert.deepEqual(await waiting, Array(3).fill('worker 4'))
  }
)

test('sockets of a master before are known in whatever order they come, also where some are dead and one comes twice', {
  skip
}, async (t) => {
  const { group, inodes } = await workersOf(t, '127.0.0.1', { serving: [], count: 4 })
  const [first, second, third, fourth] = group.handles()
  shutdown(first.fd, 0)
  const steering = createSteering({ calls: calls!, living: () => [] })
  const copies = [second, first, fourth, third, second].map(({ fd }) =>
    net._createServerHandle(null, null, null, dup(fd), 0) as typeof first
  )
  const adopted = steering.adopt('key', copies)
  t.after(() => {
    steering.forget('key')
    adopted.close()
  })
  steering.look()
  assert.deepEqual(adopted.handles(), [copies[2], copies[4], copies[3]],
    'the kernel has given the place of the first one to the last one')
  assert.deepEqual(await Promise.all([2, 3, 4].map((worker) => said(steering.connect(inodes[worker - 1])))), [
    'worker 2',
    'worker 3',
    'worker 4'
  ])
})

async function twoWorkers (t: TestContext, address: string, how: { serving: number[], isHeldBack?: boolean }) {
  return await workersOf(t, address, { ...how, count: 2 })
}

async function workersOf (t: TestContext, address: string,
  { serving, leaving = [], count, isHeldBack = false }: { serving: number[], leaving?: number[], count: number,
    isHeldBack?: boolean })
{
  const answers: Record<number, number> = {}
  const steering = createSteering({ calls: calls!, isHeldBack,
    living: () =>
      Object.keys(answers).map(Number).map((worker) => ({ worker, isServing: serving.includes(worker),
        isLeaving: leaving.includes(worker), processes: null })
      ) })
  const bound = steering.bind('key', { address, port: 0, addressType: address.includes(':') ? 6 : 4, index: 0 })
  if ('errno' in bound) throw new Error(`errno ${bound.errno}`)
  const group = bound
  t.after(() => {
    steering.forget('key')
    group.close()
  })
  const inodes = Array.from({ length: count }, (_, index) => begin(index + 1))
  const place = { port: 0 }
  group.handle.getsockname?.(place)
  return { steering, answers, begin, group, port: place.port, inodes }

  /** @returns the inode of its socket */
  function begin (worker: number): number {
    answers[worker] = 0
    const { handle } = group.member(steering.numberFor('key', { worker }))
    const server = net.createServer((socket) => {
      answers[worker]++
      socket.on('error', () => {}).end(`worker ${worker}`)
    })
    server.on('error', () => server.close()).listen(handle)
    t.after(() => server.close())
    steering.look()
    return fstatSync(Number(handle?.fd)).ino
  }
}

/** @returns who has answered each */
function clients (count: number, port: number, host: string): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, () => said(net.connect(port, host))))
}

async function said (socket: net.Socket | null): Promise<string> {
  let text = ''
  for await (const chunk of socket as net.Socket) text += chunk
  return text
}
