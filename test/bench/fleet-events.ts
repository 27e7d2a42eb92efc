/**
 * What it costs a master to tell its fleet what has piled up while NATS was away: `node test/bench/fleet-events.ts
 * [events] [delay ms]` prints the time that it takes, and the delay of the loop meanwhile, beside that of a loop that
 * is idle. Then how long pages of that stream take. `delay`: one way, to NATS. It takes a nats-server.
 */
import path from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { openHistory } from '../../db/history.ts'
import { createEventStream } from '../../server/events/stream.ts'
import { createNatsConnection } from '../../server/fleet/nats-connection.ts'
import { createFeed } from '../../server/fleet/feed.ts'
import { createOutbox } from '../../server/fleet/outbox.ts'
import { tempFolder } from '../support/folder.ts'
import { createLink, startNats } from '../support/nats.ts'
import { createOwner } from '../support/owner.ts'
import { quantile } from './figures.ts'

const total = Number(process.argv[2] ?? 10_000)
const delayMs = Number(process.argv[3] ?? 0)
const IDLE_MS = 3000
const PAGES = 20
const NS_PER_MS = 1e6

const owner = createOwner()

// Nothing of a fleet keeps its process alive.
const alive = setInterval(() => {}, 1000)
try {
  await run()
} finally {
  clearInterval(alive)
  await owner.end()
}

async function run () {
  const nats = await startNats(owner)
  const link = await createLink(owner, { to: nats.port, delayMs })
  const history = openHistory({ file: path.join(tempFolder(), 'history.db') })
  const events = createEventStream()
  events.subscribe(history.record)
  const connection = createNatsConnection({
    options: { servers: [delayMs ? link.url : nats.url], name: 'bench', tls: {} },
    member: 'one'
  })
  const outbox = createOutbox({ nats: connection, history, events,
    teller: () => ({ member: 'one', app: 'shop', host: 'here' }) })
  const feed = createFeed({ nats: connection })
  owner.after(async () => {
    await outbox.close()
    await connection.close()
    history.close()
  })
  events.publish({ type: 'master.started' })
  connection.start()
  await told(outbox)

  console.log(`the loop while it is idle: ${await loopDelay(() => wait(IDLE_MS))}`)
  const connected = new Promise((resolve) => {
    let isFirst = true
    // At once: it has been connected.
    connection.use(async () => {
      if (!isFirst) resolve()
      isFirst = false
    })
  }) as Promise<void>
  await nats.kill()
  for (let n = 0; n < total; n++)
    events.publish({ type: 'worker.exited', cause: 'crash', slot: n % 8 + 1, worker: n + 1, pid: 4000 + n,
      release: 'r12', code: 1, uptimeMs: 5000,
      message: `worker ${n + 1} threw: TypeError: Cannot read properties of undefined`,
      detail: { crash: n, crashGroup: 3 } })
  await nats.start()
  await connected
  const startedAt = performance.now()
  const cpu = process.cpuUsage()
  const delays = await loopDelay(() => told(outbox))
  const tookMs = performance.now() - startedAt
  const { user, system } = process.cpuUsage(cpu)
  console.log(`the loop meanwhile:        ${delays}`)
  console.log(
    `${total} events in ${(tookMs / 1000).toFixed(2)} s, ${(tookMs / total).toFixed(3)} ms each, of which ${
      ((user + system) / 1000 / total).toFixed(3)
    } ms of CPU`
  )

  for (const [name, wanted] of [['a page of 50', {}], ['of one member', { member: 'one' }], [
    'of a member that is not there',
    { member: 'none' }
  ], ['of one type and cause', { types: ['worker.exited:crash'] }], ['of problems that are not there', {
    types: ['master.stopped:master-lost', 'keeper.lost']
  }]] as [string, object][]) {
    const times = [] as number[]
    const delays = await loopDelay(async () => {
      for (let n = 0; n < PAGES; n++) {
        const askedAt = performance.now()
        await feed.read({ limit: 50, ...wanted })
        times.push(performance.now() - askedAt)
      }
    })
    console.log(
      `${name}: p50 ${quantile(times, 0.5).toFixed(1)} ms, max ${quantile(times, 1).toFixed(1)} ms; the loop: ${delays}`
    )
  }
}

async function told (outbox: ReturnType<typeof createOutbox>) {
  while (outbox.state.waiting !== 0) await wait(10)
}

async function loopDelay (work: () => Promise<unknown>) {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await work()
  delay.disable()
  return `p50 ${(delay.percentile(50) / NS_PER_MS).toFixed(2)} ms, p99 ${
    (delay.percentile(99) / NS_PER_MS).toFixed(2)
  } ms, max ${(delay.max / NS_PER_MS).toFixed(2)} ms`
}
