import { after } from 'node:test'
import { openHistory } from '../../../db/history.ts'
import { createEventStream } from '../../../server/events/stream.ts'
import { followOverview } from '../../../server/dashboard/overview.ts'
import { createViews } from '../../../server/dashboard/views.ts'
import { createVitals } from '../../../server/vitals/vitals.ts'
import { describeHealth } from '../../../server/words/health.ts'
import { fake } from '../../support/fake.ts'
import { testStates } from '../../support/golden.ts'
import { present } from '../../support/present.ts'
import { seen } from '../../support/seen.ts'
import { aRollout, aStatus, aWorker } from '../../support/snapshots.ts'
import { report } from '../../support/vitals.ts'
import type { Deck, WorkerRow } from '../../../server/deck.ts'
import type { NewEvent } from '../../../server/events/stream.ts'
import type { Parts } from '../../support/fake.ts'

/** Times are seconds after noon. The time from 60 to 120 is chosen, and it is an hour later by now. */
type State = { events?: [second: number, type: string, worker: number, more?: Partial<NewEvent>][],
  workers?: Parts<WorkerRow>[], measured?: Record<number, { from: number, to: number, cpuPercent: number }> }

const NOON = Date.parse('2026-01-02T12:00:00.000Z')
const iso = (second: number) => new Date(NOON + second * 1000).toISOString()
const views = createViews()
const live = (id: number, slot: number, second: number) =>
  aWorker({ id, slot, pid: 4000 + id, startedAt: iso(second - 0.5), readyAt: iso(second) })
const ready = (second: number, worker: number, slot: number, release = 'r1') =>
  [second, 'worker.ready', worker, { slot, pid: 4000 + worker, release, uptimeMs: 500 }] as [number, string, number,
    Partial<NewEvent>]
const exited = (second: number, worker: number, slot: number, cause: string, more: Partial<NewEvent> = {}) =>
  [second, 'worker.exited', worker, { slot, pid: 4000 + worker, release: 'r1', cause, uptimeMs: 1, ...more }] as [
    number,
    string,
    number,
    Partial<NewEvent>
  ]
const restarted = (second: number, slot: number, cause: string) =>
  [second, 'worker.restarted', 0, { slot, cause, worker: null }] as [number, string, number, Partial<NewEvent>]
const rollout = (second: number, state: 'rolling' | 'succeeded') => {
  const detail = {
    ...aRollout({ id: 3, state, done: state === 'succeeded', startedAt: iso(50),
      finishedAt: state === 'succeeded' ? iso(second) : null })
  }
  return [second, state === 'rolling' ? 'rollout.started' : 'rollout.succeeded', 0, { worker: null, rollout: 3,
    detail }] as [number, string, number, Partial<NewEvent>]
}

const STATES: Record<string, State> = {
  'all is well: nobody has ended since, and their beginning is too old to be kept': {
    workers: [live(1, 1, -5000), live(2, 2, -5000)],
    measured: { 1: { from: 40, to: 140, cpuPercent: 30 }, 2: { from: 40, to: 140, cpuPercent: 10 } }
  },
  'a worker hung, and the next one of its slot ended later by a deploy': {
    events: [ready(-100, 1, 1), ready(-100, 2, 2),
      exited(80, 2, 2, 'hung', { signal: 'SIGKILL', detail: { crash: 1, crashGroup: 4 },
        message: 'worker 2 (slot 2) was ended by SIGKILL: hung <b>' }), restarted(80, 2, 'hung'), ready(85, 3, 2),
      exited(600, 3, 2, 'deploy')],
    workers: [live(1, 1, -100), live(4, 2, 601)],
    measured: { 1: { from: 40, to: 140, cpuPercent: 30 }, 2: { from: 40, to: 80, cpuPercent: 80 },
      3: { from: 90, to: 140, cpuPercent: 10 } }
  },
  'a deploy began before it, and replaced a worker in it': {
    events: [ready(-100, 1, 1), ready(-100, 2, 2), rollout(50, 'rolling'), ready(70, 3, 1, 'r2'),
      exited(71, 1, 1, 'deploy'), ready(130, 4, 2, 'r2'), exited(131, 2, 2, 'deploy'), rollout(132, 'succeeded')],
    workers: [live(3, 1, 70), live(4, 2, 130)]
  },
  'a deploy ended in it': { events: [ready(-100, 1, 1), rollout(50, 'rolling'), rollout(90, 'succeeded')],
    workers: [live(1, 1, -100)] },
  'a slot waited for its next worker all the time, and one was no longer wanted': {
    events: [ready(-100, 1, 1), ready(-100, 2, 2), ready(-100, 3, 3), exited(-50, 3, 3, 'scale-down'),
      exited(55, 2, 2, 'crash'), ready(125, 4, 2)],
    workers: [live(1, 1, -100), live(4, 2, 125)]
  },
  'the machine died later, and nobody has seen the end of a worker': { events: [ready(-100, 1, 1), ready(300, 5, 1)],
    workers: [live(5, 1, 300)] },
  'the machine had died before it': { events: [ready(-900, 7, 1), ready(-100, 1, 1)], workers: [live(1, 1, -100)] },
  'the app was stopped': { events: [ready(-100, 1, 1), exited(-50, 1, 1, 'shutdown'), ready(500, 2, 1)],
    workers: [live(2, 1, 500)] },
  'nothing is kept of it': { events: [ready(500, 1, 1)], workers: [live(1, 1, 500)] }
}

testStates(import.meta, 'overview-then', STATES, ({ events = [], workers = [], measured = {} }) => {
  let now = NOON - 6_000_000
  const history = openHistory({ file: ':memory:', clock: () => 0 })
  after(() => history.close())
  const stream = createEventStream({ now: () => now })
  stream.subscribe((event) => history.record(event))
  const vitals = createVitals({ store: history.vitals, now: () => now })
  for (const [second, type, worker, more] of events) {
    now = NOON + second * 1000
    stream.publish({ type, worker, ...more } as NewEvent)
  }
  for (let second = 0; second < 200; second++) {
    now = NOON + second * 1000
    for (const [worker, { from, to, cpuPercent }] of Object.entries(measured)) {
      if (second >= from && second < to)
        vitals.accept(Number(worker), Math.min(2, Number(worker)), report({ latenciesMs: [5], cpuPercent }))
      if (second === to) vitals.left(Number(worker))
    }
    vitals.turn(now / 1000)
  }
  now = NOON + 3_600_000
  const status = aStatus({ workers, desiredWorkers: 2 })
  const deck = fake<Deck>({ snapshot: () => status, health: (of) => describeHealth(of), notices: { list: () => [] },
    jobs: { building: () => null }, vitals })
  const render = followOverview({ params: new URLSearchParams({ since: iso(60), until: iso(120) }), deck, history,
    now: () => now, can: { ...fake<object>({}), operate: true, role: 'operator' } as never })
  const model = present(render())
  const show = (name: string) => seen(views.render(`partials/${name}`, model)).split('\n').join(' | ')
  return [...['health', 'facts', 'workers', 'recent'].map(show),
    ...['actions', 'rollout', 'notices'].map(show).filter((text) => text !== ''),
    render() === null ? '' : 'It is rendered anew'].filter(Boolean).join('\n')
})
