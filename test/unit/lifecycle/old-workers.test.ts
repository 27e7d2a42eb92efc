import { OPTIONS, orphan, simulate, type Simulation } from '../../support/simulation.ts'
import { stories } from '../../support/stories.ts'

const KEPT = { webSockets: 2, requests: 0, transfers: 0, eventStreams: 0, connections: 0, sessions: 0 }
const drain = (more: object) => ({ options: { drain: { ...OPTIONS.drain, ...more } } })
const starts = { 'ten minutes for old workers': drain({ longLivedMs: 600_000 }),
  'no old workers': drain({ maxOldWorkers: 0 }), 'an old worker of a dead master': leftBehind() }
/** A restart has replaced the worker, which keeps two WebSockets. */
const replaced = (old: number) => `restart; ${old + 1} boots; wait 5 s; ${old} holds webSockets=2`
const RUNNING = '1 worker with ten minutes for old workers'
const CLOSED = { requests: 0, connections: 0, isReported: false,
  closed: { webSockets: 2, eventStreams: 0, connections: 0 } }

stories('an old worker', `
is kept for its WebSockets while the rollout is over, until drain.longLivedMs; then it closes them, and is told to end
  ${RUNNING}; ${replaced(1)}  | rollout.succeeded; [2 ready, 1 draining]; held = 2; keptFor = 595 s
    | worker.kept 1 "…worker 1 (slot 1) is kept for 2 WebSockets, for 10 minutes at most"
  keep on 9.5 min     | no end-connections
  keep on 0.5 min     | end-connections 1 isLast=false
    | worker.closing 1 "…closes 2 WebSockets within 30 s, as it was kept for 10 minutes…"
  keep on 1 min       | terminate 1
  1 exits 0 unfinished=${JSON.stringify(CLOSED)}
    | worker.exited 1 cause=restart detail.closed.webSockets=2 detail.endedRequests=none "…another worker replaces it; it has closed 2 WebSockets"
is waited for while a request is open, and until its idle connections are closed, as a client may still send its next request
  ${RUNNING}; restart; 2 boots; 1 holds webSockets=1  | rollout = rolling
  wait 5 s; 1 holds webSockets=1 requests=1           | rollout = rolling
  1 holds transfers=1  | rollout.succeeded
that has only requests is told to end at drain.deadlineMs
  ${RUNNING}; restart; 2 boots; 1 holds requests=1 webSockets=1; wait 29 s; 1 holds requests=3; until terminate 1  | after 30 s
that says nothing any more is told to end at drain.deadlineMs
  ${RUNNING}; restart; 2 boots; 1 holds requests=1 webSockets=1; until terminate 1  | after 31 s
stays at drain.deadlineMs with a request that is cut, as long as it reports what else it has
  ${RUNNING}; restart; 2 boots; wait 29 s; 1 holds requests=1 webSockets=1; until rollout.succeeded
    | [2 ready, 1 draining]; no terminate; worker.kept 1
is kept for hours by default, for what it has when it is replaced
  1 worker; restart; 2 boots                                  | drain 1 limits.longLivedMs=14400000
is not kept for what it did wrong
  1 worker; 1 due; 2 boots                                    | drain 1 limits.longLivedMs=0
is not kept in a rollback
  1 worker; rollback r2; 2 boots                              | drain 1 limits.longLivedMs=0
is not kept where no two workers of a slot may run
  1 worker with stop-first; restart                           | drain 1 limits.longLivedMs=0
is not kept if nothing is to be kept
  1 worker with no old workers; restart; 2 boots              | drain 1 limits.longLivedMs=0
is not kept by a stop, which is the last thing that its connections hear
  1 worker; stop  | drain 1 limits={"idleGraceMs":5000,"deadlineMs":30000,"stalledMs":10000,"longLivedMs":0,"spreadMs":0,"isLast":true}
makes way for newer ones: of more than drain.maxOldWorkers the oldest closes its connections
  ${RUNNING}; ${replaced(1)}; ${replaced(2)}          | no end-connections
  ${replaced(3)}      | end-connections 1; no end-connections 2; no end-connections 3
    | worker.closing 1 "…more than 2 old workers …drain.maxOldWorkers…"
closes its connections when an operator says so, and once more when all workers stop
  ${RUNNING}; end-connections worker=1 actor=ada      | refused not-possible
  end-connections worker=9 actor=ada                  | refused not-found
  ${replaced(1)}; end-connections worker=1 actor=ada  | end-connections 1 isLast=false; worker.closing 1 actor=ada
  stop                | end-connections 1 isLast=true; drain:1 in 30 s
closes its connections when it uses too much memory
  ${RUNNING}; ${replaced(1)}; 1 due                   | end-connections 1
goes on as before where it uses too much memory and is recycled for that
  ${RUNNING}; 1 due; 2 boots; 1 due                   | drain 1; no end-connections
that hangs is killed, and its slot notices nothing
  ${RUNNING}; ${replaced(1)}; 1 silent                | kill 1
  settle              | worker.exited 1 cause=hung; [2 ready]; no worker.restarted
is neither in the way of a scale-down, a recycling or the next deploy, nor takes it a slot
  2 workers with ten minutes for old workers; scale 1; wait 5 s; 2 holds webSockets=2
  1 due cause=max-requests; 3 boots; wait 5 s; 1 holds webSockets=2  | recycling = none
  deploy; 4 boots; 3 ends  | rollout = none; [4 ready r2, 1 draining] [2 draining]; ready = 1
of a master that has died is told to go on as before, counts for the next one, and ends at the same time
  1 worker starting with an old worker of a dead master  | drain 1; [3 starting, 1 draining orphan]; held = 2; keptFor = 600 s
  3 boots             | [3 ready, 1 draining orphan]
  keep on 10 min      | end-connections 1
`, { starts,
  acts: { 'keep on 9.5 min': keepOn(9.5), 'keep on 0.5 min': keepOn(0.5), 'keep on 1 min': keepOn(1),
    'keep on 10 min': keepOn(10) } })

/** What a master leaves of a worker that it has replaced, and that keeps two WebSockets. */
function leftBehind () {
  const before = simulate({ workers: 1, options: { ...OPTIONS, drain: { ...OPTIONS.drain, longLivedMs: 600_000 } } })
  before.settle()
  before.feed({ type: 'rollout', kind: 'restart', actor: 'api' })
  before.becomeReady(2)
  before.wait(5000)
  before.feed({ type: 'worker-holds', worker: 1, holds: KEPT })
  const { forkedAt: _, ...saved } = before.state.workers[1]
  return { orphans: [orphan({ ...saved, id: 1, state: 'draining', orphan: 'master-lost' })], start: { nextWorker: 3 } }
}

/** Time goes on, with a report of what worker 1 holds before each deadline. */
function keepOn (minutes: number) {
  return (pool: Simulation) => {
    const until = pool.at + minutes * 60_000
    while (pool.at < until) {
      const [next] = [...pool.deadlines.values()].sort((a, b) => a.dueAt - b.dueAt)
      if (!next || next.dueAt > until) return
      pool.wait(Math.max(0, next.dueAt - pool.at - 1))
      if (pool.state.workers[1]?.state === 'draining') pool.feed({ type: 'worker-holds', worker: 1, holds: KEPT })
      pool.passNextDeadline()
    }
  }
}
