import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { createSteering } from '../../../server/cluster/steering.js'
import { fstatSync } from 'node:fs'
import { loadPosix } from '../../../server/system/posix.js'

const calls = loadPosix()
const skip = calls === null && 'it takes Linux and koffi'
const ANY = { '0.0.0.0': '127.0.0.1', '127.0.0.1': '127.0.0.1', '::': '::1', '::1': '::1' }

for (const [address, reached] of Object.entries(ANY)) {
  test(`only the probe reaches a worker that does not serve yet: ${address}`, { skip }, async (t) => {
    const { steering, answers, port, inodes } = await twoWorkers(t, address, { serving: [1] })
    const probe = await said(steering.connect(inodes[1]))
    assert.equal(probe, 'worker 2')
    const open = steering.connect(inodes[1])
    await once(/** @type {net.Socket} */ (open), 'connect')
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
    const serving = /** @type {number[]} */ ([])
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

/** @param {import('node:test').TestContext} t @param {string} address @param {{ serving: number[], isHeldBack?: boolean }} how */
async function twoWorkers (t, address, { serving, isHeldBack = false }) {
  const steering = createSteering({ calls: /** @type {any} */ (calls), isHeldBack, living: () => [1, 2].map((worker) => ({ worker, isServing: serving.includes(worker), processes: null })) })
  const group = steering.bind('key', { address, port: 0, addressType: address.includes(':') ? 6 : 4, index: 0 })
  if ('errno' in group) throw new Error(`errno ${group.errno}`)
  /** @type {Record<number, number>} */
  const answers = { 1: 0, 2: 0 }
  const handles = [1, 2].map((worker) => {
    const { handle } = group.member(steering.numberFor('key', { worker }))
    const server = net.createServer((socket) => {
      answers[worker]++
      socket.on('error', () => {}).end(`worker ${worker}`)
    }).listen(handle)
    t.after(() => server.close())
    steering.look()
    return /** @type {import('../../../server/cluster/steering.js').SocketHandle} */ (handle)
  })
  const place = { port: 0 }
  handles[0].getsockname?.(place)
  return { steering, answers, port: place.port, inodes: handles.map(({ fd }) => fstatSync(fd).ino) }
}

/** @param {net.Socket | null} socket @returns {Promise<string>} */
async function said (socket) {
  let text = ''
  for await (const chunk of /** @type {net.Socket} */ (socket)) text += chunk
  return text
}
