// What a program in TypeScript may write, and what it may not. It is compiled against the package, and never run.
import { on, once } from 'node:events'
import { DeckError, start } from 'clusterdeck'
import type { Deck, DeckEvent, DeckEvents, DeckOptions, ErrorCode, EventType, Release, Rollout, RolloutStep, StartOptions, Status, Strategy, Worker } from 'clusterdeck'

const options: DeckOptions = {
  entry: 'app.js',
  args: ['--flag'],
  env: { LOG_LEVEL: 'debug', DEBUG: null },
  workers: 'max',
  dispatch: 'shared',
  admin: { port: 0, allowedHosts: ['deck.example.org'] },
  ready: { path: '/health', status: [200, '204-299'], warmup: ['/'] },
  drain: { deadlineMs: 10_000 },
  restart: { intensity: { restarts: 3 } },
  rollout: { surge: '25%', canary: { workers: 1 }, limits: { errorRate: 0.01 }, onFailure: 'hold', guardMs: 0 },
  alerts: [{ kind: 'webhook', url: 'https://example.org/hook', secret: 'at least 16 characters', events: ['worker.*'] }]
}
const surrounded: StartOptions = { ...options, configFile: 'deck.json', stdout: process.stdout, stderr: process.stderr, signal: AbortSignal.timeout(60_000) }

const deck: Deck = await start(surrounded)
await start()

// @ts-expect-error
await start({ wrokers: 2 })
// @ts-expect-error
await start({ workers: 'two' })
// @ts-expect-error
await start({ admin: { prot: 1 } })
// @ts-expect-error
await start({ dispatch: 'random' })
// @ts-expect-error
await start({ ready: { signal: AbortSignal.abort() } })
// @ts-expect-error
await start({ signal: 'SIGTERM' })

const address: string = deck.adminUrl
const link: string = deck.signInLink()
const token: string = deck.token
// @ts-expect-error
const opened: URL = deck.signInLink()

const status: Status = deck.snapshot()
const phase: 'starting' | 'running' | 'stopping' = status.state
const release: Release = status.release
const worker: Worker | undefined = status.workers[0]
const pid: number | null | undefined = worker?.pid
const rss: number | null | undefined = worker?.vitals?.rssBytes
const [url]: string[] = status.app.addresses
// @ts-expect-error
void status.workers.at(0).pid
// @ts-expect-error
if (status.state === 'stopped') console.log(address, link, token, opened, phase, release.id, pid, rss, url)

const strategy: Strategy = { surge: 2, minReadyMs: 1000, canary: { workers: 2, durationMs: 60_000 } }
const rollouts: Rollout[] = [await deck.restart(), await deck.restart({ note: 'why' }), await deck.deploy({ path: 'v2', strategy }), await deck.rollback({ release: 'r1', strategy })]
const step: RolloutStep | undefined = rollouts[0]?.steps[0]
if (rollouts[0]?.state === 'rolled-back') console.log(rollouts[0].reason, step?.isCanary, rollouts[0].progress.replaced)
// @ts-expect-error
await deck.restart({ strategy })
// @ts-expect-error
await deck.deploy({ release: 'r1' })
// @ts-expect-error
await deck.deploy({ strategy: { guardMs: 0 } })
// @ts-expect-error
await deck.rollback('r1')

const ready: number = (await deck.scale(4)).readyWorkers
// @ts-expect-error
await deck.scale('4')
// @ts-expect-error
await deck.scale()

const reached: number[] = (await deck.send('reload')).workers
await deck.send('reload', { caches: ['prices'] }, { worker: reached[0] ?? 1 })
// @ts-expect-error
await deck.send()
// @ts-expect-error
await deck.send('reload', null, { slot: 1 })

const events: DeckEvents = deck.events
const type: EventType = 'worker.exited'
events.on(type, (event: DeckEvent) => console.log(event.id, event.slot?.toFixed(), event.detail?.['crash'], ready))
events.once('rollout.succeeded', ({ rollout }) => console.log(rollout?.toFixed()))
// @ts-expect-error
events.on('worker.exited', ({ exitCode }) => console.log(exitCode))
// @ts-expect-error
const mistyped: EventType = 'worker.exitd'
await once(events, 'worker.ready')
for await (const [event] of on(events, 'event') as AsyncIterable<[DeckEvent]>) console.log(event.at, mistyped)

try {
  await deck.deploy()
} catch (error) {
  if (!(error instanceof DeckError)) throw error
  const code: ErrorCode = error.code
  console.log(code, error.message, error.details['rollout'], error.cause)
  // @ts-expect-error
  if (error.code === 'no-such-code') console.log(error.status)
}

const stopped: void = await deck.stop()
await deck.stopped.then(() => stopped)
