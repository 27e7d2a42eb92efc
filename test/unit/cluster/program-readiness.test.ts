import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs'
import http from 'node:http'
import { test, type TestContext } from 'node:test'
import { playScenes } from '../../support/scenes.ts'
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

playScenes(`
a program is ready once it listens at all that it has bound, however long that takes
  binds 80; binds 81; listens at http://localhost:80; a minute  → nothing
  listens at http://localhost:81; 50 ms                      → ready
a port that it has bound only to look whether it is free is not waited for, nor served
  binds 80; listens at http://localhost:80; closes 80; 50 ms  → nothing
  binds 81; binds 82; closes 81; listens at http://localhost:82; 50 ms  → ready
a UDP socket receives once it is bound
  binds 53 of udp4; 50 ms                                    → udp://localhost:53, ready
a program that has to say that it is ready is not before that, whatever it listens on: notify
  binds 80; listens at http://localhost:80; a minute; says line  → nothing
  says notify                                                → ready
a program that says that it is ready need not listen
  says notify                                                → ready
an address that is the program's own alone counts too
  listens at tcp://localhost:49152; 50 ms                    → ready
`, { open: (t, title) => setUp(t, title.endsWith(': notify') ? 'notify' : 'auto'),
  acts: { 'binds PORT': ({ bind }, port) => bind(Number(port)),
    'binds PORT of KIND': ({ bind }, port, kind) => bind(Number(port), kind),
    'listens at URL': ({ readiness }, url) => readiness.listens(url),
    'closes PORT': ({ closed }, port) => closed.push(`key of ${port}`),
    'says WAY': ({ readiness }, way) => readiness.says(way as 'line' | 'notify'),
    'MS ms': ({ pass }, ms) => pass(Number(ms)), async 'a minute' ({ pass }) {
    for (let second = 0; second < 60; second++) await pass(1000)
  } }, see: ({ said }) => said.join(', ') || 'nothing' })

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
