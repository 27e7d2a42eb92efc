import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { loadConnectionCalls, type ConnectionCalls } from '../../../workers/connection-calls.ts'
import { createPassing } from '../../../workers/passing.ts'
import { tempFolder } from '../../support/folder.ts'
import { listening } from '../../support/listening.ts'
import { withoutNativeCalls } from '../../support/service-manager.ts'

type Passed = Parameters<Parameters<typeof createPassing>[0]['onPassed']>[0]

test(
  'a connection goes to another worker with what was read of it, many at once in their order, and to none that has ended',
  { skip: withoutNativeCalls },
  async (t) => {
    const folder = tempFolder()
    const calls = loadConnectionCalls() as ConnectionCalls
    const passed = [] as Passed[]
    const onProblem = (error: Error) => {
      throw error
    }
    let onEach = () => {}
    const one = createPassing({ folder, worker: 1, calls, onPassed: () => assert.fail('it has passed one itself'),
      onProblem })
    const two = createPassing({ folder, worker: 2, calls, onPassed: (each) => {
      passed.push(each)
      onEach()
    }, onProblem })
    const server = net.createServer({ pauseOnConnect: true })
    const port = await listening(t, server)

    const [clients, sockets] = [[], []] as [net.Socket[], net.Socket[]]
    for (let index = 0; index < 40; index++) {
      const client = net.connect(port, '127.0.0.1')
      clients.push(client)
      sockets.push(...await once(server, 'connection'))
    }
    for (const [index, socket] of sockets.entries()) {
      // Some with more than fits at once.
      const bytes = Buffer.alloc(index % 10 === 0 ? 500_000 : index, index)
      let outcome
      while ((outcome = one.pass(2, { key: `socket ${index % 3}`, fd: Number(socket._handle?.fd), bytes })) === 'busy')
        await wait(1)
      assert.equal(outcome, 'passed')
      socket.destroy()
    }
    if (passed.length < clients.length)
      await new Promise((resolve) => {
        onEach = () => passed.length === clients.length && resolve(null)
      })
    for (const [index, { key, bytes, handle }] of passed.entries()) {
      assert.equal(key, `socket ${index % 3}`)
      assert.ok(bytes.equals(Buffer.alloc(index % 10 === 0 ? 500_000 : index, index)), `bytes of ${index}`)
      const socket = new net.Socket({ handle } as net.SocketConstructorOpts)
      assert.equal(socket.remotePort, clients[index].localPort)
      socket.end('from the other one')
      assert.equal(String((await once(clients[index], 'data'))[0]), 'from the other one')
      clients[index].destroy()
    }

    assert.equal(one.isThere(3), false)
    two.close()
    const client = net.connect(port, '127.0.0.1')
    const [socket] = await once(server, 'connection') as [net.Socket]
    assert.equal(one.pass(2, { key: '', fd: Number(socket._handle?.fd) }), 'gone')
    socket.destroy()
    client.destroy()
    one.close()
  }
)
