import { stories } from '../../support/stories.ts'

const ERROR = '{"errorName":"Error","errorMessage":"boom","stack":null}'
const DONE = JSON.stringify({
  1: { at: '2026-01-01T00:00:00.000Z', worker: 1, release: 'r1', cause: 'finished', code: 0, succeeded: true }
})
/** policy, how the worker ends, its cause, what its slot is then */
const ENDS = `
always     | 0                | crash    | 2 starting
on-failure | 0                | finished | finished
on-failure | 1                | crash    | 2 starting
on-failure | SIGTERM          | killed   | 2 starting
never      | 0                | finished | finished
never      | 3                | finished | finished
never      | SIGKILL          | killed   | finished
never      | SIGSEGV          | crash    | finished
never      | 1 error=${ERROR} | crash    | finished`.trim().split('\n').map((row) =>
  row.split('|').map((cell) => cell.trim())
)

stories('restart.policy', ENDS.map(([policy, end, cause, slot]) => `
${policy}: a worker that ends by ${end} has the cause ${cause}, and its slot is ${slot}
  1 worker with policy ${policy}; 1 exits ${end}  | worker.exited 1 cause=${cause}; [${slot}]`).join(''), {
  starts: { 'policy always': {} }
})

stories('a program that may come to its end', `
is finished, which is said once, with how it has ended, and is no restart
  2 workers with policy on-failure; 2 exits 0  | [1 ready] [finished]; 1 x slot.finished; no worker.restarted
    | slot.finished 2 detail.succeeded=true "slot 2 is finished: worker 2 exited with code 0 (option restart.policy: on-failure); a restart or a deploy starts it again"
    | ready = 1; finished = 1; restarts = 0 0; view.workers.1.finished.succeeded = true
is finished too before it is ready, and the start is over with the last one
  2 workers starting with policy on-failure    | phase = starting
  1 exits 0; 2 exits 0  | phase = running; worker.exited 2 "worker 2 (slot 2) exited with code 0"; isFinished = false
counts as done only where it has succeeded
  2 workers with policy never; 1 exits 0; 2 exits 3  | [finished] [finished]; finished = 1
counts as ready after its time where it had no time to answer, and is not ended
  1 worker starting with policy on-failure; next  | [1 ready]
starts again by a restart, which has succeeded when all are done or ready
  2 workers starting with policy on-failure; 1 exits 0; 2 exits 0; restart  | [3 starting] [4 starting]
  3 exits 0; 4 ready; settle  | rollout.succeeded; [finished] [4 ready]
starts again by a deploy, which has succeeded when all are done or ready
  2 workers starting with policy on-failure; 1 exits 0; 2 exits 0; deploy   | [3 starting r2] [finished]
  3 exits 0; 4 ready; settle  | rollout.succeeded; [finished r2] [4 ready r2]; slots = r2 r2
fails the deploy where it fails on the new release, and its slot stays finished on the old one
  1 worker starting with policy on-failure; 1 exits 0; deploy; 2 exits 1  | rollout.failed; [finished]; slots = r1
passes as a canary that has done its work
  2 workers with policy on-failure; deploy canary; 3 exits 0  | rollout = canary
  promote; settle             | rollout.succeeded; [finished r2] [4 ready r2]
has its slot back where it hangs and answers again before it is killed, with policy never
  1 worker with policy never; 1 silent  | serving = 0
  1 answered                  | serving = 1; [1 ready]
ends its recycling where it finishes while its replacement starts
  1 worker with policy on-failure; 1 due; 1 exits 0; settle   | [finished]; recycling = none
is started by no later master where it was done
  0 workers starting with policy on-failure, ids from 2; start workers=2 finished=${DONE} actor=system
    | [finished] [2 starting]
is started by the next master unless its end would bring no other one now
  0 workers starting with ids from 2; start workers=2 finished=${DONE} actor=system
    | [2 starting] [3 starting]
`, { starts: { 'ids from 2': { start: { nextWorker: 2 } } } })
