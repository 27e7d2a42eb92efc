import assert from 'node:assert/strict'
import { test } from 'node:test'
import { releasesInUse, snapshotOf } from '../../../server/lifecycle/snapshot.ts'
import { NEW_RELEASE, OPTIONS, simulate, type Simulation } from '../../support/simulation.ts'
import { stories } from '../../support/stories.ts'
import type { Refusal } from '../../../server/lifecycle/state.ts'

const want = (standby: number) => ({ state, feed }: Simulation): Refusal | null =>
  feed({ type: 'configure', options: { ...state.options, standby } })
const words = { acts: { 'want 1 standby': want(1) }, starts: { '3 standbys': { options: { standby: 3 } } },
  orders: { patient: { strategy: { limits: { crashes: 9 } } } } }

stories('workers on standby', `
are forked one after the other, once every slot is served
  2 workers starting with 2 standbys; 1 ready  | [1 ready] [2 starting]
  2 ready           | [1 ready] [2 ready] {3 starting}
  3 held            | [1 ready] [2 ready] {3 standby, 4 starting}
  4 held            | [1 ready] [2 ready] {3 standby, 4 standby}; ready = 2; no ready:3; no ready:4
are none unless they are wanted
  2 workers         | [1 ready] [2 ready]
take over the slot of a worker that dies, and the next one is forked once that is ready
  2 workers with 1 standby; 2 exits SIGKILL  | [1 ready] [3 starting]; promote 3 slot=2; ready:3
    | worker.promoted 3 slot=2 "standby worker 3 took over slot 2"
  3 ready           | [1 ready] [3 ready] {4 starting}; restarts = 0 1
take over from who hangs
  2 workers with 1 standby; 1 silent    | serving = 3 2
take over from who is ended by an exception
  2 workers with 1 standby; 1 crashing  | serving = 3 2
take over from who is killed by an operator
  2 workers with 1 standby; 1 killed    | serving = 3 2
are not waited for where they still load
  2 workers; want 1 standby  | [1 ready] [2 ready] {3 starting}
  1 exits 1         | [4 starting] [2 ready] {3 starting}; no worker.promoted
count as young once they have a slot: a crash loop has its backoff
  1 worker with 3 standbys; wait 10 min; 1 exits 1; 2 exits 1  | [backoff] {3 standby, 4 standby, 5 starting}; 1 x worker.promoted
that are not ready in their slot in time are replaced as any worker
  1 worker with 1 standby; 1 exits 1; until worker.draining 2  | worker.draining 2 "worker 2 (slot 1) was not ready within 30 s…"
are fewer as soon as fewer are wanted
  2 workers with 3 standbys; want 1 standby; settle  | [1 ready] [2 ready] {3 standby}
do not load files that have changed where they are not to; the one that stands by is what was deployed
  2 workers with hold on drift, 1 standby; drift r1; 1 exits 1; settle  | [3 ready] [2 ready]
  restore; next; settle  | [3 ready] [2 ready] {4 standby}
`, words)

stories('a worker on standby that dies', `
is replaced with the usual backoff, and ends no worker of a slot
  2 workers with 1 standby; 3 exits 1  | [1 ready] [2 ready] {4 starting}; worker.exited 3 "standby worker 3 exited with code 1…"
  4 exits 1         | [1 ready] [2 ready]; standby:0 in 100 ms
  next              | [1 ready] [2 ready] {5 starting}
leaves a deploy alone
  2 workers with 1 standby; deploy; 3 exits 1; settle  | rollout.succeeded
because it hangs is killed, and may be killed by an operator
  2 workers with 1 standby; 3 silent  | kill 3
  3 exits SIGKILL; settle             | worker.exited 3 cause=hung
  4 killed          | [1 ready] [2 ready] {4 stopping, 5 starting}
because it has grown too large is replaced
  2 workers with 1 standby; 3 due; settle  | [1 ready] [2 ready] {4 standby}; worker.exited 3 cause=memory-limit
`)

stories('an app that cannot stand by', `
as it does not listen is tried once with each release
  2 workers; want 1 standby; until standby.useless
    | standby.useless 3 "standby worker 3 did not listen within 30 s (option ready.timeoutMs)…"
  settle            | [1 ready] [2 ready]; no standby:0; problem = standby worker 3 did not listen within 30 s (option ready.timeoutMs), and standby workers need an app that does
  1 exits 1; settle  | [4 ready] [2 ready]
  deploy; settle     | [5 ready r2] [6 ready r2] {7 standby r2}; problem = none
as it asks for its slot while it loads has none; whoever has a slot may ask for it
  2 workers with 1 standby; 3 read-slot name=NODE_APP_INSTANCE place=/srv/r1/app.js:3:7; settle  | [1 ready] [2 ready]
    | standby.useless 3 "standby worker 3 has read NODE_APP_INSTANCE while it loaded (/srv/r1/app.js:3:7), and a standby worker has no slot yet: none is kept until the next release"
  1 read-slot name=NODE_APP_INSTANCE  | [1 ready] [2 ready]; 1 x standby.useless
`, words)

stories('workers on standby in a rollout', `
are only for slots of their release
  2 workers with 1 standby; deploy patient; 4 ready; 1 exits 0; 4 exits 1  | no worker.promoted; slots = r2 r1
  2 exits 1          | worker.promoted 3 slot=2
of the old release are ended once it has succeeded, and new ones forked
  2 workers with 2 standbys; deploy  | [1 ready, 5 starting r2] [2 ready] {3 standby, 4 standby}
  settle             | rollout.succeeded; worker.exited 3 cause=deploy; worker.exited 4 cause=deploy
    | [5 ready r2] [6 ready r2] {7 standby r2, 8 standby r2}
stay as they are where it fails
  2 workers with 1 standby; deploy; settle r1  | rollout.failed; [1 ready] [2 ready] {3 standby}
to the same release are not used if they were loaded before, and all are renewed
  2 workers with 1 standby; restart; 1 exits 1  | no worker.promoted
  settle             | rollout.succeeded; worker.exited 3 cause=restart; [4 ready] [5 ready] {7 standby}
`, words)

stories('a master that leaves', `
ends those on standby at once when it stops
  2 workers with 1 standby; stop     | drain 3; drain:3 in 1 s
  settle             | isFinished = true
has none while the next one starts, and has them again where that fails
  2 workers with 1 standby; upgrade; settle  | [1 ready] [2 ready]; worker.exited 3 cause=upgrade
  next-gone reason=lost lastWorker=0 orphans=[]; settle  | [1 ready] [2 ready] {4 standby}
`)

test('a worker on standby that crashes never loops hot, and the loop is told once', () => {
  const pool = simulate({ workers: 2, options: { ...OPTIONS, standby: 2 } })
  pool.settle()
  const standing = () => snapshotOf(pool.state).standby.workers
  const begunAt = pool.at
  for (let deaths = 0; deaths < 12; deaths++) {
    const [worker] = standing()
    if (worker) {
      pool.feed({ type: 'worker-crashing', worker: worker.id, errorName: 'Error', errorMessage: 'boom' })
      pool.exit(worker.id, { code: 1 })
    }
    while (standing().length === 0) assert.ok(pool.passNextDeadline())
  }
  assert.ok(pool.at - begunAt > 60_000)
  const told = pool.events.filter(({ type }) => type === 'worker.crash-looping')
  assert.deepEqual(told.map(({ message, slot }) => [message, slot]), [[
    'the standby workers crash-loop: more than 5 restarts within a minute; the next ones wait longer',
    undefined
  ]])
})

test('releases in use are those of all workers and of the rollout; a worker that stood by writes to the log of those', () => {
  const pool = simulate({ workers: 2, options: { ...OPTIONS, standby: 2 } })
  pool.settle()
  pool.exit(2, { signal: 'SIGKILL' })
  assert.deepEqual(snapshotOf(pool.state).workers.map(({ id, logSlot }) => [id, logSlot]), [[1, 1], [3, 0]])
  pool.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
  assert.deepEqual(releasesInUse(pool.state), ['r1', 'r2'])
  const { wanted, ready, problem } = snapshotOf(pool.state).standby
  assert.deepEqual([wanted, ready, problem], [2, 1, null])
})
