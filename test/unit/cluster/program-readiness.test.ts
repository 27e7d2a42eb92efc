import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs'
import http from 'node:http'
import { test, type TestContext } from 'node:test'
import { tempFolder } from '../../support/folder.ts'
import { tellProgramActivity } from '../../../server/cluster/program-activity.ts'
import { createProgramReadiness } from '../../../server/cluster/program-readiness.ts'
import type { AddressInfo } from 'node:net'
import type { ProbeSettings } from '../../../workers/protocol.ts'

function setUp (t: TestContext, signal: 'auto' | 'notify' | 'online' = 'auto', probe: ProbeSettings | null = null) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const said: string[] = []
  const ready: PromiseWithResolvers<void> = Promise.withResolvers()
  const closed = [] as string[]
  const readiness = createProgramReadiness({ signal, probe }, { onMessage (message) {
    said.push(message.type === 'listening' ? message.address : message.type)
    if (message.type === 'ready') ready.resolve()
  }, connect: () => null, look: async () => closed.splice(0).forEach((key) => readiness.closes(key)) })
  t.after(readiness.stop)
  let seq = 0
  const file = fs.openSync(`${tempFolder()}/socket`, 'w')
  t.after(() => fs.closeSync(file))
  return {
    readiness,
    said,
    closed,
    untilReady: ready.promise,
    bind (port: number, addressType: number | string = 4) {
      readiness.asks({ type: 'socket', seq: ++seq, query: { address: '0.0.0.0', port, addressType, index: 0 } })
      readiness.isAnswered({ seq, key: `key of ${port}` }, { fd: file })
    },

    /** What it has closed is known a moment later. */
    async pass (ms: number) {
      t.mock.timers.tick(ms)
      await Promise.resolve()
    }
  }
}

test('a program is ready once it listens at all that it has bound, however long that takes', async (t) => {
  const { readiness, said, bind, pass } = setUp(t)
  bind(80)
  bind(81)
  readiness.listens('http://localhost:80')
  for (let second = 0; second < 60; second++) await pass(1000)
  assert.deepEqual(said, [])
  readiness.listens('http://localhost:81')
  await pass(50)
  assert.deepEqual(said, ['ready'])
})

test('a port that it has bound only to look whether it is free is not waited for, nor served', async (t) => {
  const { readiness, said, closed, bind, pass } = setUp(t)
  bind(80)
  readiness.listens('http://localhost:80')
  closed.push('key of 80')
  await pass(50)
  assert.deepEqual(said, [])
  bind(81)
  bind(82)
  closed.push('key of 81')
  readiness.listens('http://localhost:82')
  await pass(50)
  assert.deepEqual(said, ['ready'])
})

test('a UDP socket receives once it is bound', async (t) => {
  const { said, bind, pass } = setUp(t)
  bind(53, 'udp4')
  await pass(50)
  assert.deepEqual(said, ['udp://localhost:53', 'ready'])
})

test('a program that has to say that it is ready is not before that, whatever it listens on', async (t) => {
  const { readiness, said, bind, pass } = setUp(t, 'notify')
  bind(80)
  readiness.listens('http://localhost:80')
  for (let second = 0; second < 60; second++) await pass(1000)
  readiness.says('line')
  assert.deepEqual(said, [])
  readiness.says('notify')
  assert.deepEqual(said, ['ready'])
})

test('a program that says that it is ready need not listen', (t) => {
  const { readiness, said } = setUp(t)
  readiness.says('notify')
  assert.deepEqual(said, ['ready'])
})

test('an address that is the program\'s own alone counts too', async (t) => {
  const { readiness, said, pass } = setUp(t)
  readiness.listens('tcp://localhost:49152')
  await pass(50)
  assert.deepEqual(said, ['ready'])
})

test('where running is enough, it is still asked once it listens, if ready.path says so', async (t) => {
  const server = http.createServer((_request, response) => response.end('fine'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { readiness, said, untilReady, pass } = setUp(t, 'online', { path: '/', status: ['200'], intervalMs: 100,
    timeoutMs: 60_000, warmup: [], warmupRounds: 1 })
  readiness.started(process.pid)
  assert.deepEqual(said, [])
  readiness.listens(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await pass(50)
  await untilReady
  assert.deepEqual(said, ['ready'])
})

test('a program that has only waited for 5 s is told to be idle, one that works is not', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const told: boolean[] = []
  let at = 0
  let cpuMs = 0
  const activity = tellProgramActivity({ pid: 1, onMessage: ({ isIdle }) => told.push(isIdle), cpuMsOf: () => cpuMs,
    now: () => at })
  const pass = (ms: number, worked: number) => {
    at += ms
    cpuMs += worked
    t.mock.timers.tick(ms)
  }
  pass(250, 200)
  for (let second = 0; second < 20; second++) pass(1000, 500)
  assert.deepEqual(told, [false])
  for (let second = 0; second < 5; second++) pass(1000, 10)
  assert.deepEqual(told, [false, true])
  activity.stop()
})
