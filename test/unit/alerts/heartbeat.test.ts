import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startHeartbeat, type Options } from '../../../server/alerts/heartbeat.ts'
import { keptEvents } from '../../support/event-log.ts'
import { fake } from '../../support/fake.ts'
import { serveHttp } from '../../support/http-server.ts'
import { until } from '../../support/until.ts'

type Timers = Pick<typeof globalThis, 'setTimeout' | 'clearTimeout'>

/** A service that answers as it is told, and a heartbeat whose one timer is fired by hand. */
async function setUp (t: TestContext,
  { answers = [], everyMs = 60_000 }: { answers?: (number | 'cut' | 'hang')[], everyMs?: number } = {})
{
  const received: string[] = []
  const { url } = await serveHttp(t, ({ method, url: path, socket }, response) => {
    received.push(`${method} ${path}`)
    const answer = answers.shift() ?? 200
    if (answer === 'cut') socket.destroy()
    else if (answer !== 'hang') response.writeHead(answer, { location: '/elsewhere' }).end('x'.repeat(100_000))
  })
  const options: Options = { url: `${url}/ping/hidden-key`, everyMs }
  const status = { state: 'running' as 'running' | 'stopping', readyWorkers: 2 }
  const { events, publish } = keptEvents()
  let timer: { run: () => void, ms: number } | null = null
  const timers = fake<Timers>({ setTimeout: (run, ms) => (timer = { run, ms }), clearTimeout () {
    timer = null
  } })
  const heartbeat = startHeartbeat({ options: () => options, status: () => status, events: { publish } }, { timers })
  t.after(heartbeat.close)
  const fire = () => {
    const fired = timer
    timer = null
    return fired?.run() as unknown as Promise<void> | undefined
  }
  return {
    ...heartbeat,
    origin: url,
    received,
    options,
    status,
    fire,
    told: () => events.map(({ type, message }) => `${type} ${message}`),
    /** until the next one; null: there is none */
    get ms () {
      return timer?.ms ?? null
    }
  }
}

test('comes at once and every minute while one worker is ready, and not while none is or the app stops', async (t) => {
  const heartbeat = await setUp(t)
  assert.equal(heartbeat.ms, 0)
  await heartbeat.fire()
  assert.deepEqual([heartbeat.received, heartbeat.ms], [['GET /ping/hidden-key'], 60_000])
  heartbeat.status.readyWorkers = 1
  await heartbeat.fire()
  assert.equal(heartbeat.received.length, 2)

  heartbeat.status.readyWorkers = 0
  await heartbeat.fire()
  assert.deepEqual([heartbeat.received.length, heartbeat.ms], [2, 1000], 'it looks each second')
  heartbeat.status.readyWorkers = 1
  await heartbeat.fire()
  assert.deepEqual([heartbeat.received.length, heartbeat.ms], [3, 60_000])
  heartbeat.status.state = 'stopping'
  await heartbeat.fire()
  assert.deepEqual([heartbeat.received.length, heartbeat.told()], [3, []])
})

test('tells once that the service does not take it, by its host alone, and once that it does again', async (t) => {
  const heartbeat = await setUp(t, { answers: [404, 302, 'cut', 503, 200, 200, 404] })
  const waits: (number | null)[] = []
  for (let n = 0; n < 7; n++) {
    await heartbeat.fire()
    waits.push(heartbeat.ms)
  }
  assert.deepEqual(waits, [60_000, 60_000, 10_000, 10_000, 60_000, 60_000, 60_000],
    'soon where the network or the service failed')
  assert.deepEqual(heartbeat.received, Array(7).fill('GET /ping/hidden-key'), 'no redirect is followed')
  assert.deepEqual(heartbeat.told(), [`heartbeat.failed ${heartbeat.origin} did not take the heartbeat: answered 404`,
    `heartbeat.recovered ${heartbeat.origin} takes the heartbeat again`,
    `heartbeat.failed ${heartbeat.origin} did not take the heartbeat: answered 404`])
})

test('a try that fails delays no later one', async (t) => {
  const heartbeat = await setUp(t, { answers: ['cut', 'hang'], everyMs: 15_000 })
  await heartbeat.fire()
  assert.equal(heartbeat.ms, 15_000, 'the next one is due before a repetition')
  heartbeat.fire()
  assert.equal(heartbeat.ms, 15_000, 'it is planned before the service has answered')
})

test('its end cuts off a try that waits for its answer, and tells nothing of it', async (t) => {
  const heartbeat = await setUp(t, { answers: ['hang'] })
  const tried = heartbeat.fire()
  await until(() => heartbeat.received.length === 1, 'the request')
  heartbeat.close()
  await tried
  assert.deepEqual([heartbeat.ms, heartbeat.told()], [null, []])
})

test('an address that is set while the app runs counts at once, and none ends it', async (t) => {
  const heartbeat = await setUp(t)
  const { url } = heartbeat.options
  heartbeat.options.url = undefined
  await heartbeat.fire()
  assert.deepEqual(heartbeat.received, [])
  heartbeat.options.url = url
  heartbeat.configure()
  assert.equal(heartbeat.ms, 0)
  await heartbeat.fire()
  assert.equal(heartbeat.received.length, 1)
})
