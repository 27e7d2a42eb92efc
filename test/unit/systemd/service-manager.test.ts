import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test, type TestContext } from 'node:test'
import { createEventStream } from '../../../server/events/stream.ts'
import { createNotifier } from '../../../server/systemd/notify.ts'
import { createSystemctl } from '../../../server/systemd/systemctl.ts'
import { fakeSystemd } from '../../support/fake-systemd.ts'
import { tellServiceManager } from '../../../server/systemd/service-manager.ts'
import { fake, type Parts } from '../../support/fake.ts'
import { rows } from '../../support/rows.ts'
import type { Status } from '../../../server/deck.ts'

const READY: Parts<Status> = { state: 'running', desiredWorkers: 2, readyWorkers: 2, rollout: null, workers: [] }

function setUp (t: TestContext,
  { env = {}, snapshot = READY, isKept = false }: { env?: Record<string, string>, snapshot?: Parts<Status>,
    isKept?: boolean } = {})
{
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  let state = snapshot
  let now = 0
  const told: string[] = []
  const events = createEventStream()
  const signals = new EventEmitter()
  tellServiceManager({ events, supervisor: { snapshot: () => fake(state) },
    settings: { current: { drain: { deadlineMs: 30_000 }, stop: { termGraceMs: 5000 } } }, keeper: { isKept } }, {
    env: { NOTIFY_SOCKET: '/run/notify', ...env },
    notify: (message) => told.push(message),
    sources: [signals, new EventEmitter()],
    now: () => now
  })
  return { told, signals,
    happen (next: Parts<Status> = {}, event: { type: string, cause?: string } = { type: 'worker.ready' }) {
      state = { ...state, ...next }
      events.publish(event)
    }, pass (ms: number) {
    now += ms
    t.mock.timers.tick(ms)
  } }
}

test('a status that changes often is told once a second, with the last word in the end', (t) => {
  const { told, happen, pass } = setUp(t)
  happen()
  for (const readyWorkers of [1, 2, 1, 2, 1]) {
    happen({ readyWorkers })
    pass(100)
  }
  assert.deepEqual(told, ['READY=1\nSTATUS=All 2 workers are ready'])
  pass(500)
  assert.deepEqual(told.slice(1), ['STATUS=1 of 2 workers ready'])
  pass(300)
  happen({ readyWorkers: 2 })
  happen({ readyWorkers: 1 })
  pass(10_000)
  assert.equal(told.length, 2, 'what is as it was told is no news')
  happen({ readyWorkers: 2 })
  assert.deepEqual(told.slice(2), ['STATUS=All 2 workers are ready'])
})

test('a status is one line, whatever an app has put into a name', (t) => {
  const { told, happen } = setUp(t)
  happen({
    rollout: { kind: 'deploy', state: 'rolling', to: 'r2\nREADY=1', from: 'r1', steps: [],
      progress: { replaced: 0, total: 2 } }
  })
  assert.deepEqual(told, ['READY=1\nSTATUS=Deploying r2 READY=1'])
})

test('a change of state does not wait for the second to pass', (t) => {
  const { told, happen } = setUp(t)
  happen()
  happen({ state: 'stopping', readyWorkers: 0 })
  happen({}, { type: 'worker.exited' })
  assert.deepEqual(told.slice(1), ['STOPPING=1\nEXTEND_TIMEOUT_USEC=45000000\nSTATUS=The master is stopping'])
})

test('after an upgrade the master that leaves says no more, not even that it stops', (t) => {
  const { told, happen, signals, pass } = setUp(t, { env: { WATCHDOG_USEC: '2000000' } })
  happen()
  told.length = 0
  happen({ state: 'stopping' }, { type: 'master.stopped', cause: 'upgrade' })
  signals.emit('SIGHUP')
  pass(10_000)
  assert.deepEqual(told, [])
})

// In five seconds, by WATCHDOG_USEC and WATCHDOG_PID.
for (const [what, time, pid, isKept, ticks] of rows(`
every second of two                      | 2000000 |                 |      | 6
for this process                         | 2000000 | ${process.pid}  |      | 6
for the keeper that has started it       | 2000000 | ${process.ppid} | kept | 6
not for a parent that is no keeper       | 2000000 | ${process.ppid} |      | 0
not where there is none                  |         |                 |      | 0
not where its time makes no sense        | soon    |                 |      | 0
nor for a time of nothing                | 0       |                 |      | 0`))
  test(`the watchdog is fed: ${what}`, (t) => {
    const env = { ...(time && { WATCHDOG_USEC: time }), ...(pid && { WATCHDOG_PID: pid }) }
    const { told, pass } = setUp(t, { env, isKept: isKept === 'kept' })
    for (let second = 0; second < 5; second++) pass(1000)
    assert.deepEqual(told, Array(Number(ticks)).fill('WATCHDOG=1'))
  })

test('without NOTIFY_SOCKET nobody listens', () => {
  const events = { subscribe: () => assert.fail('it has subscribed') }
  tellServiceManager(fake({ events, keeper: {} }), { env: { WATCHDOG_USEC: '1000' },
    sources: fake([{ prependListener: events.subscribe }]) })
})

test('a receiver that is full for a while gets every message, in order, and that is said only if it takes long', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let isFull = true
  const taken: string[] = []
  const said: string[] = []
  const notify = createNotifier('/run/notify', {
    load: () =>
      fake({ sendDatagram: (path: string, message: string) => !isFull && taken.push(`${path} ${message}`) > 0 }),
    say: (line) => said.push(line)
  })
  for (const message of ['READY=1', 'WATCHDOG=1', 'WATCHDOG=1', 'STATUS=a']) notify(message)
  for (let waitedMs = 0; waitedMs < 4000; waitedMs += 100) t.mock.timers.tick(100)
  assert.deepEqual(said, [])
  for (let waitedMs = 0; waitedMs < 20_000; waitedMs += 100) t.mock.timers.tick(100)
  assert.deepEqual(said, ['NOTIFY_SOCKET: /run/notify takes no message; trying on'])
  isFull = false
  t.mock.timers.tick(100)
  assert.deepEqual(taken, ['READY=1', 'WATCHDOG=1', 'STATUS=a'].map((message) => `/run/notify ${message}`))
})

test('a receiver that never reads again takes no memory without end', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let isFull = true
  const taken: string[] = []
  const notify = createNotifier('/run/notify', {
    load: () => fake({ sendDatagram: (_path: string, message: string) => !isFull && taken.push(message) > 0 }),
    say () {}
  })
  for (let n = 1; n <= 10_000; n++) notify(`STATUS=${n}`)
  isFull = false
  t.mock.timers.tick(100)
  assert.deepEqual([taken.length, taken[0], taken.at(-1)], [50, 'STATUS=1', 'STATUS=10000'])
})

test('a socket goes along as long as it is open, and none of those that wait is left out', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let isFull = true
  const taken: [string, number | undefined][] = []
  const notify = createNotifier('/run/notify', { maxQueued: Infinity, say () {},
    load: () =>
      fake({
        sendDatagram: (_path: string, message: string, fd?: number) => !isFull && taken.push([message, fd]) > 0
      }) })
  const sockets = Array.from({ length: 100 }, (_, index) => ({ fd: 10 + index }))
  for (const [index, socket] of sockets.entries()) notify(`FDSTORE=1\nFDNAME=${index}`, socket)
  notify('FDSTOREREMOVE=1\nFDNAME=7')
  // As a handle says of itself once it is closed.
  sockets[7].fd = -1
  isFull = false
  t.mock.timers.tick(100)
  assert.deepEqual([taken.length, taken[8], taken.at(-1)], [100, ['FDSTORE=1\nFDNAME=9', 19], [
    'FDSTOREREMOVE=1\nFDNAME=7',
    undefined
  ]])
})

test('a stop is a restart where systemd says so, and only with sockets that it keeps', async () => {
  const systemd = fakeSystemd()
  const systemctl = createSystemctl({ scope: 'system', env: { PATH: systemd.path } })
  const answers = []
  for (const [job, stored] of [['restart', 2], ['restart', 0], ['stop', 2]] as const) {
    systemd.beginStop(job, { stored })
    answers.push(await systemctl.isRestarting('shop.service'))
  }
  assert.deepEqual(answers, [true, false, false])
  systemd.failAt('list-jobs', 'Failed to connect to bus')
  assert.equal(await systemctl.isRestarting('shop.service'), false)
})

test('an address of another kind is named once', () => {
  const said: string[] = []
  const notify = createNotifier('vsock:2:1234', { load: () => assert.fail('nothing is to be sent'),
    say: (line) => said.push(line) })
  for (const message of ['READY=1', 'STATUS=a']) notify(message)
  assert.deepEqual(said, ['NOTIFY_SOCKET: expected a path, or @ and a name, received "vsock:2:1234"'])
})
