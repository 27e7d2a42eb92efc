import { stories } from '../../support/stories.ts'
import { OPTIONS, type Simulation } from '../../support/simulation.ts'

const cost = (cpus: number, cpuMs: number, activeMs: number) => ({ start: { cpus, bootCost: { cpuMs, activeMs } } })
const FIRST = { start: { hasBeenReady: false } }
const ready = (more: object) => ({ options: { ready: { ...OPTIONS.ready, ...more } } })
const starts = { 'a heavy start': cost(2, 9000, 9000), 'no known start': { start: { cpus: 1 } },
  'a short start': cost(1, 999, 999), 'a start that waits for a third': cost(2, 2000, 3000),
  'a start on two CPUs': cost(2, 8000, 4000), 'a surge of 4': { options: { rollout: { surge: 4 } } },
  'little time for progress': { options: { rollout: { progressDeadlineMs: 35_000 } } }, 'no past': FIRST,
  'all first': { options: { start: { first: 'all' as const } } }, 'a message': ready({ signal: 'message' }),
  'a path': ready({ path: '/health' }), 'a hook': { hasHook: true },
  'others first': { awaitsTurn: 'others start first' } }
const APP = 'http://localhost:3000'

stories('the time to get ready', `
is longer by what a worker has spent waiting for a CPU, and by that alone
  1 worker starting; next starvedMs=20000; next starvedMs=5000  | [1 starting]; after 50 s
  next        | after 5 s; worker.draining 1 "worker 1 (slot 1) was not ready within 30 s (option ready.timeoutMs) and another 25 s, in which it waited for a CPU"
is ten times the limit at most
  1 worker starting; starve 9  | [1 starting]; after 270 s
  starve 1    | [1 draining, 2 starting]; after 30 s
is as long for the new workers of a rollout, which does not fail for want of progress meanwhile
  1 worker with little time for progress; deploy; starve 3  | [1 ready, 2 starting r2]
  settle      | rollout.succeeded
begins anew for a worker that was on standby
  1 worker with 1 standby; 1 exits 1; starve 10  | worker.draining 2 "…another 270 s…"
`, { starts,
  acts: { 'starve 1': (pool) => starve(pool, 1), 'starve 3': (pool) => starve(pool, 3),
    'starve 9': (pool) => starve(pool, 9), 'starve 10': (pool) => starve(pool, 10) } })

stories('a worker that was never ready', `
is not waited for as one that drains: it has no connections
  1 worker starting; next                               | drain:1 in 1 s
is waited for where it listens, as somebody may be served
  2 workers starting with a message; 1 listens ${APP}; stop  | drain:1 in 30 s; drain:2 in 1 s
is waited for where that was on its way when it was told to go
  2 workers starting with a message; stop; 1 listens ${APP}  | drain:1 in 30 s; drain:2 in 1 s
is not waited for where it listens but is held back until its app has answered
  1 worker starting with a path; 1 listens ${APP}; stop      | drain:1 in 1 s
`, { starts })

stories('workers that take much CPU to start', `
start as many at a time as there are CPUs for them, and are shown as queued until then
  4 workers starting with a heavy start  | [1 starting] [2 starting] [queued] [queued]
  2 ready     | [1 starting] [2 ready] [3 starting] [queued]
  settle      | ready = 4; phase = running
start all at once where that is not known
  4 workers starting with no known start  | [1 starting] [2 starting] [3 starting] [4 starting]
start all at once where that is short
  4 workers starting with a short start   | [1 starting] [2 starting] [3 starting] [4 starting]
start three on two CPUs where a third of it is spent waiting for something else
  4 workers starting with a start that waits for a third  | [1 starting] [2 starting] [3 starting] [queued]
start alone where each keeps two CPUs busy
  4 workers starting with a start on two CPUs             | [1 starting] [queued] [queued] [queued]
are known by the one that was ready last, without what it has waited for a CPU
  1 worker starting with no known start; wait 10 s; 1 ready boot={"cpuMs":4000,"starvedMs":6000}
    | worker.ready 1 detail={"boot":{"cpuMs":4000,"activeMs":4000}}
  scale 4     | [1 ready] [2 starting] [queued] [queued]
take turns in a restart too
  4 workers with a heavy start, a surge of 4; restart  | [1 ready, 5 starting] [2 ready, 6 starting] [3 ready] [4 ready]
  5 ready     | [1 ready, 5 ready] [2 ready, 6 starting] [3 ready, 7 starting] [4 ready]
  settle      | rollout.succeeded
take turns in a deploy too
  4 workers with a heavy start, a surge of 4; deploy   | [1 ready, 5 starting r2] [2 ready, 6 starting r2] [3 ready] [4 ready]
  5 ready     | [1 draining, 5 ready r2] [2 ready, 6 starting r2] [3 ready, 7 starting r2] [4 ready]
  settle      | rollout.succeeded
`, { starts })

stories('where no worker has ever been ready', `
the first one starts alone, and the others once it is ready
  3 workers starting with no past  | [1 starting] [queued] [queued]
  1 ready     | [1 ready] [2 starting] [3 starting]
  settle      | phase = running
one that fails is tried again alone, by the usual backoff
  3 workers starting with no past; 1 exits 1; 2 exits 1  | [backoff] [queued] [queued]
  next        | [3 starting] [queued] [queued]
  settle      | ready = 3
all start at once with start.first all
  3 workers starting with no past, all first     | [1 starting] [2 starting] [3 starting]
all start at once where programs end by themselves
  3 workers starting with no past, policy never  | [1 starting] [2 starting] [3 starting]
`, { starts })

stories('hooks.beforeStart', `
comes before the first worker, with which the start goes on; until then nothing is rolled out
  2 workers starting with a hook  | [queued] [queued]; run-start-hook release.id=r1
  restart     | refused starting
  scale 3     | [queued] [queued] [queued]
  start-hook-passed  | [1 starting] [2 starting] [3 starting]
is ended by a stop, and so is the start
  2 workers starting with a hook; stop           | isFinished = true
  start-hook-passed                              | no fork
`, { starts })

stories('the turn of an app among those of its host', `
comes before its first worker, and nothing is rolled out until then
  2 workers starting with others first  | [queued] [queued]
  restart     | refused starting "others start first"
  scale 3     | [queued] [queued] [queued]
  turn-came   | [1 starting] [2 starting] [3 starting]
is waited for by no stop, which ends the start
  2 workers starting with others first; stop     | isFinished = true
  turn-came                                      | no fork
brings what is known of the release by then, and the hook that has waited for it
  1 worker starting with others first; turn-came release={"id":"r1","environmentChanged":true} hasHook=true
    | state.release.environmentChanged = true; state.releases.r1.environmentChanged = true; [queued]; run-start-hook
  start-hook-passed                              | [1 starting]
`, { starts })

/** A worker that starts has waited for a CPU for all of its time, so often. */
function starve (pool: Simulation, times: number) {
  for (let time = 0; time < times;) {
    const [next] = [...pool.deadlines.values()].sort((a, b) => a.dueAt - b.dueAt)
    const isReady = next.deadline === 'ready'
    pool.passNextDeadline(isReady ? { starvedMs: 30_000 } : {})
    if (isReady) time++
  }
}
