import assert from 'node:assert/strict'
import { test } from 'node:test'
import { strategyOf } from '../../../server/lifecycle/rollout/strategy.ts'
import { OPTIONS, NEW_RELEASE, simulate, type Simulation } from '../../support/simulation.ts'
import { stories } from '../../support/stories.ts'
import type { Guard } from '../../../server/lifecycle/rollout/guard.ts'

const orders = {
  'long-canary': { strategy: { canary: { workers: 1, durationMs: 900_000 }, progressDeadlineMs: 10_000 } },
  'short-canary': { strategy: { canary: { workers: 1, durationMs: 1000 }, minReadyMs: 60_000 } },
  hasty: { strategy: { minReadyMs: 60_000, progressDeadlineMs: 30_000 } },
  quick: { strategy: { progressDeadlineMs: 20_000 } }
}
const WARNING = 'warning="failed at first"'

stories('a trial', `
that was held begins anew when it is resumed, and is judged
  3 workers; deploy canary hold; 4 ready; wait 10 s; judged bad early
    | rollout = held; no canary:0; rollout.held "passed: false; retry or abort it…"
  wait 90 s; resume  | canary:0 in 60 s; endsIn = 60 s; judge:0
  until canary:0    | judge isFinal=true
that passes with a flaw has one warning of it, however often that is seen
  3 workers; deploy canary; 4 ready; judged good early ${WARNING}; judged good early ${WARNING}; judged good ${WARNING}
    | rollout.warnings = failed at first; rollout.verdicts.length = 1; rollout.verdicts.0.message = passed: true
that is held stands still, and says how both sides did until then, also the canary that crashed
  3 workers; deploy canary hold; 4 ready; wait 2 s; 4 exits 1
    | judge isFinal=false canary="4" baseline="1 2 3"; rollout = held; pausedFor = 0 s
  judged good early; wait 10 min  | pausedFor = 600 s; rollout = held; rollout.verdicts.length = 0
    | rollout.comparison.canary.requests = 100; rollout.comparison.baseline.requests = 100
  retry             | rollout.pausedAt = none; rollout.comparison = none
of a canary that was killed while it was paused begins anew
  3 workers; deploy canary; 4 ready; pause; 4 exits SIGKILL; wait 2 min; resume  | steps = starting pending pending; no judge
  5 ready           | endsIn = 60 s
may last longer than a rollout may stand still, also when a canary was killed in it
  3 workers; deploy long-canary; 4 ready; 4 exits SIGKILL; 5 ready; until canary:0  | judge isFinal=true; rollout = canary
is no soak: what is left of that comes after it
  3 workers; deploy short-canary; 4 ready; until canary:0; judged good  | steps = soaking pending pending; no drain
    | soak:4 in 59 s
`, { orders })

test('a canary is meant by whoever names its duration', () => {
  const canaryOf = (configured: object, asked?: object) =>
    strategyOf('deploy', 4, { canary: { workers: 0, durationMs: 30_000, ...configured } }, asked && { canary: asked })
      .canary
  assert.deepEqual(canaryOf({}, { durationMs: 1000 }), { workers: 1, durationMs: 1000 })
  assert.equal(canaryOf({ workers: 2 }, { workers: 0 }), null)
  assert.equal(canaryOf({}), null)
})

stories('a rollout that comes no further', `
does not count the time that it waits on purpose
  3 workers; deploy hasty; 4 ready; until soak:4  | rollout = rolling; steps = draining starting pending
while it goes back leaves what serves, and nothing behind
  3 workers; deploy quick; 4 ready; 5 exits 1  | rollout = rolling-back; [1 draining, 4 ready r2, 6 starting] [2 ready] [3 ready]
  until rollout.failed  | rollout.failed "…exited with code 1…"; drain 6; slots = r2 r1 r1
  settle            | [4 ready r2] [2 ready] [3 ready]
  stop; settle      | isFinished = true
`, { orders })

stories('files of the old release that have changed, where that is to hold', `
are not gone back to: what serves goes on
  3 workers with hold on drift; deploy; 4 ready; drift r1; 5 exits 1  | rollout = none; slots = r2 r1 r1
    | no worker.drifted; rollout.failed detail.steps.0.state=failed
end a rollback to them, and say which
  3 workers with hold on drift; deploy; settle; drift r1; rollback r1 source={"release":"r1"} unprepared; prepared r1
    | rollout.failed rollout=2 "r1 cannot come back: files of r1 changed after its deploy: /srv/r1/app.js"
    | rollout = none; [4 ready r2] [5 ready r2] [6 ready r2]
end a rollback to them that is prepared already, and say which
  3 workers with hold on drift; deploy; settle; drift r1; rollback r1
    | rollout.failed rollout=2 "r1 cannot come back: files of r1 changed after its deploy: /srv/r1/app.js"
    | rollout = none; [4 ready r2] [5 ready r2] [6 ready r2]
stop a deploy on the way, if they are its own
  3 workers with hold on drift; deploy hold; drift r2; 4 ready  | rollout = held; steps = draining pending pending
  restore; retry; settle  | rollout.succeeded release=r2
end its trial, as no canary that died may come back on them
  3 workers with hold on drift; deploy canary; 4 ready; pause; 4 exits SIGKILL  | steps = pending pending pending
  drift r2; resume  | rollout.failed "files of r2 changed…"; [1 ready] [2 ready] [3 ready]
`)

const GUARDED = '2 workers with a guard; deploy; settle'
/** what may happen between a deploy and its crash loop */
const MEANWHILE = { 'nothing else': 'settle', 'a restart': 'restart; settle',
  'the restart of one worker': 'first restarted', 'a deploy that fails': 'deploy; newest dies; settle' }

/** Counts of answers: after the deploy, before it, and in the last seconds before it. */
const heard = (after: string, before = '400/2', last = '4/0') =>
  'answers-counted release=r2 ' + Object.entries({ after, before, last }).map(([name, count]) => {
    const [requests, failed] = count.split('/').map(Number)
    return `${name}=${JSON.stringify({ requests, failed })}`
  }).join(' ')
/** The release before serves beside the others: so many of 20 requests fail in it, and in the one after. */
const tried = (before: number, after: number) => {
  const figures = (failed: number) => JSON.stringify({ workers: 1, requests: 20, errorRate: failed / 20, p99Ms: 1 })
  return `prepared r1; settle; judged good early canary=${figures(before)} baseline=${figures(after)}; settle`
}
const guard = (more: object = {}): { guard: Guard } => ({
  guard: { release: 'r1', from: 'r7', rollout: 4, isTripped: false, endsAt: new Date(61_000).toISOString(), ...more }
})
const LATE = new Date(0).toISOString()
const starts = { 'its guard': guard(), 'a tripped guard': guard({ isTripped: true }),
  'a tripped guard that is late': guard({ isTripped: true, endsAt: LATE }), 'the guard of r2': guard({ release: 'r2' }),
  'a guard that is over': guard({ endsAt: LATE }), 'no guard': { options: { rollout: { guardMs: 0 } } } }

stories('the guard of a deploy', `${
  Object.entries(MEANWHILE).map(([name, inputs]) => `
goes back from a crash loop, after ${name}
  ${GUARDED}; ${inputs}; crash-loop 50  | rollout.started actor=guard detail.kind=rollback; prepared.release = r1; guard = tripped
  prepared r1; settle  | release = r1; rollout = none; guard = none`).join('')
}
goes back from a release that answers hardly anything but 5xx, once the one before does better
  ${GUARDED}; ${
  heard('60/60')
}  | rollout.started "r2 answered 60 of 60 requests by 5xx after rollout 1, r1 2 of 400 requests before"
  prepared r1; settle  | rollout = canary; steps = ready pending
  ${tried(0, 20)}   | rollout.judged "r1 answers 0 of 20 requests by 5xx, r2 20 of 20 requests in the same time"
    | slots = r1 r1; rollout.succeeded actor=guard; guard = none
stays where both fail once the one before serves beside it: what both need is to blame
  ${GUARDED}; ${heard('60/60')}; ${tried(20, 20)}  | slots = r2 r2; rollout.failed actor=guard; guard = none; ready = 2
stays where both are well again once the one before serves beside it
  ${GUARDED}; ${heard('60/60')}; ${tried(0, 2)}    | slots = r2 r2; rollout.failed actor=guard; guard = none; ready = 2
stays with too few requests
  ${GUARDED}; ${heard('10/10')}                    | rollout = none
stays with one answer in ten good
  ${GUARDED}; ${heard('100/90')}                   | rollout = none
stays with a release before that failed as well
  ${GUARDED}; ${heard('60/60', '400/20')}          | rollout = none
stays with too few requests before
  ${GUARDED}; ${heard('60/60', '19/0')}            | rollout = none
stays with a release before that failed in its last seconds
  ${GUARDED}; ${heard('60/60', '400/2', '3/1')}    | rollout = none
asks only until it knows
  ${GUARDED}; ${heard('30/30')}  | answers:0; count-answers release=r2 from=r1
  ${heard('30/0')}               | no answers:0; guard:0
asks not at all where it is off
  2 workers with no guard; deploy; settle; ${heard('60/60')}  | rollout = none; no answers:0; no count-answers
goes back once: where that fails too, it is over
  ${GUARDED}; crash-loop 50; release-not-prepared rollout=2 reason=gone  | rollout = none; guard = none
  crash-loop 50     | 2 x rollout.started
whose rollback was cut short by the end of its master goes on with it under the next one, while that starts
  2 workers starting with a tripped guard  | phase = starting; rollout.actor = guard; prepared.release = r7
  prepared r7; settle  | phase = running; release = r7; guard = none
whose rollback was cut short goes on with it under the next master also late
  2 workers starting with a tripped guard that is late  | phase = starting; rollout.actor = guard; prepared.release = r7
  prepared r7; settle  | phase = running; release = r7; guard = none
goes on under the next master for what is left of its time
  1 worker starting with its guard  | guard:0 in 60 s
  settle; crash-loop 50  | rollout.started actor=guard; prepared.release = r7
does not go on under the next master of another release
  1 worker with the guard of r2                    | guard = none
does not go on under the next master once its time is over
  1 worker with a guard that is over               | guard = none
goes on under a master that takes over
  2 workers; take-over orphans=[] nextWorker=9 guard=${
  JSON.stringify(guard().guard)
}  | guard = watching; guard:0 in 60 s
that has seen a crash loop during another rollout waits for its end
  ${GUARDED}; deploy unprepared; crash-loop 8; until guard:0  | guard = tripped; rollout = preparing
  release-not-prepared rollout=2 reason=full       | rollout.started actor=guard detail.kind=rollback; prepared.release = r1
has nothing more to say once another release has been rolled out
  ${GUARDED}; rollback r1; settle                  | slots = r1 r1; guard = none; no guard:0
`, { starts, acts: { 'first restarted': (pool) => {
  pool.feed({ type: 'restart-worker', worker: pool.serving()[0], actor: 'api' })
  pool.settle()
}, 'newest dies': (pool) => {
  pool.exit(Math.max(...pool.processes.keys()), { code: 1 })
} } })

test('the guard adds to what the master before has counted, and tries the return anew if that ended meanwhile', () => {
  const count = (requests: number, failed: number = 0) => ({ requests, failed })
  const deployed = simulate({ workers: 2, options: { ...OPTIONS, rollout: { guardMs: 300_000 } } })
  deployed.settle()
  deployed.feed({ type: 'rollout', kind: 'deploy', release: NEW_RELEASE, actor: 'api' })
  deployed.settle()
  deployed.feed({ type: 'answers-counted', release: 'r2', after: count(30, 30), before: count(400, 2), last: count(4) })
  const next = nextOf(deployed)
  next.feed({ type: 'answers-counted', release: 'r2', after: count(25, 25), before: count(0), last: count(0) })
  assert.match(String(next.state.rollout?.note), /^r2 answered 55 of 55 .* 2 of 400 requests before$/)
  const last = nextOf(next)
  last.feed({ type: 'release-prepared', rollout: 1, release: { ...NEW_RELEASE, id: 'r1' } })
  last.settle()
  assert.equal(last.rollout?.state, 'canary')
})

/** The next master, whose workers serve. */
function nextOf ({ state: { guard } }: Simulation) {
  const next = simulate({ guard, start: { release: { ...NEW_RELEASE, id: 'r2', createdAt: '' } } })
  next.settle()
  return next
}
