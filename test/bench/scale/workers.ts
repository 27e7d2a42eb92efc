import { toCheckpoint } from '../../../server/cluster/succession.ts'
import { snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { createVitals } from '../../../server/vitals/vitals.ts'
import { startAdmin } from '../../support/admin.ts'
import { fake } from '../../support/fake.ts'
import { NEW_RELEASE, simulate } from '../../support/simulation.ts'
import { report } from '../../support/vitals.ts'
import { visitPage } from './page.ts'
import type { OrphanIdentity } from '../../../server/cluster/orphan-handle.ts'
import type { Job, Part } from './measure.ts'
import type { TestOwner } from '../../support/deck.ts'

const LATENCIES = Array.from({ length: 40 }, (_, index) => 2 ** (index / 4))
const TIMES = 20
const SECONDS = 60
const START_S = Date.UTC(2026, 0, 1) / 1000

/** What a master does for its workers. Nothing is forked: what a process costs is measured with real ones. */
export const WORKER_PARTS: Readonly<Record<string, Part>> = Object.freeze({
  rollout: { title: 'one decision in a rolling deploy', unit: 'worker', open: (n) =>
    decisions(n, (pool) => {
      pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
      pool.settle()
    }) },
  deaths: { title: 'one decision after all workers have died at once', unit: 'worker', open: (n) =>
    decisions(n, (pool) => {
      for (const id of [...pool.processes.keys()])
        pool.exit(id, { signal: 'SIGKILL' })
      while (pool.ready() < n && pool.passNextDeadline())
        pool.settle()
    }) },
  vitals: { title: 'a second of vitals', unit: 'worker', open (n) {
    let second = START_S
    const vitals = createVitals({ now: () => second * 1000 })
    const told = JSON.stringify(report({ latenciesMs: LATENCIES }))
    return { times: SECONDS, bytes: () => told.length * n, run () {
      for (let passed = 0; passed < SECONDS; passed++, second++) {
        for (let worker = 1; worker <= n; worker++) vitals.accept(worker, worker, JSON.parse(told))
        vitals.turn(second)
      }
    } }
  } },
  status: { title: 'the state, as API and page read it', unit: 'worker', open (n) {
    const { state } = readyPool(n)
    return repeated(() => JSON.stringify(snapshotOf(state)))
  } },
  checkpoint: { title: 'the checkpoint for the next master', unit: 'worker', open (n) {
    const { state } = readyPool(n)
    const identityOf = (id: number) => fake<OrphanIdentity>({ pid: 1000 + id, startTime: '123456789' })
    return repeated(() => JSON.stringify(toCheckpoint(state, { identityOf, sockets: ['tcp:3000'] })))
  } },
  page: { title: 'the overview', unit: 'worker', open: async (n, owner) => visitPage(await adminOf(n, owner), '/') },
  metrics: { title: '`/metrics`', unit: 'worker', async open (n, owner) {
    const admin = await adminOf(n, owner)
    const { vitals } = admin.deck
    for (let worker = 1; worker <= n; worker++) vitals.accept(worker, worker, report({ latenciesMs: LATENCIES }))
    vitals.turn(Math.floor(admin.clock.now() / 1000))
    return visitPage(admin, '/metrics')
  } }
})

function readyPool (n: number) {
  const pool = simulate({ workers: n, isChecked: false })
  for (const id of pool.processes.keys()) pool.feed({ type: 'worker-forked', worker: id, pid: 1000 + id })
  pool.settle()
  if (pool.ready() !== n) throw new Error(`expected ${n} ready workers, received ${pool.ready()}`)
  return pool
}

function decisions (n: number, act: (pool: ReturnType<typeof readyPool>) => void): Job {
  const pool = readyPool(n)
  let before = 0
  return { get times () {
    return pool.count - before
  }, run () {
    before = pool.count
    act(pool)
  } }
}

async function adminOf (n: number, owner: TestOwner) {
  const admin = await startAdmin(owner)
  const [worker] = admin.deck.snapshot().workers
  const workers = Array.from({ length: n },
    (_, index) => ({ ...worker, id: index + 1, slot: index + 1, logSlot: index + 1, pid: 4001 + index }))
  admin.deck.set({ workers, desiredWorkers: n, readyWorkers: n })
  return admin
}

function repeated (write: () => string): Job {
  return { times: TIMES, bytes: () => write().length, run () {
    for (let time = 0; time < TIMES; time++) write()
  } }
}
