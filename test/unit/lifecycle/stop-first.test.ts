import { stories } from '../../support/stories.ts'
import { orphan } from '../../support/simulation.ts'

const rollout = (more: object) => ({ options: { rollout: { order: 'stop-first' as const, ...more } } })
const starts = { 'a surge of 2': rollout({ surge: 2 }), 'a hold': rollout({ onFailure: 'hold' }),
  'two left': { orphans: [orphan({ id: 1 }), orphan({ id: 2 })] } }

stories('rollout.order stop-first', ['restart', 'deploy', 'rollback r2'].map((order) => {
  const own = order === 'restart' ? '' : ' r2'
  return `
a ${order.split(' ')[0]} ends the old worker of a slot before it starts the new one, slot by slot
  2 workers with stop-first; ${order}  | [1 draining] [2 ready]; steps = stopping pending
    | rollout.steps.0.oldWorker = 1; rollout.steps.1.oldWorker = none
  1 ends          | [3 starting${own}] [2 ready]
  3 ready         | [3 ready${own}] [2 draining]
  2 ends; 4 ready  | [3 ready${own}] [4 ready${own}]
    | rollout.succeeded detail.steps.0.oldWorker=1 detail.steps.0.newWorker=3 detail.steps.1.oldWorker=2 detail.steps.1.newWorker=4`
}).join(''))

stories('rollout.order stop-first', `
the drain deadline holds, and then SIGTERM's and SIGKILL's
  1 worker with stop-first; restart; until kill 1  | after 35 s; [1 stopping]
  1 exits SIGKILL  | [2 starting]
with a larger surge as many slots are without a worker at a time
  4 workers with a surge of 2; deploy  | [1 draining] [2 draining] [3 ready] [4 ready]; ready = 2
a new worker that fails gives its slot back to the old release, once it has gone
  2 workers with stop-first; deploy; 1 ends; until rollout.failed  | [3 draining r2] [2 ready]
  3 ends          | [4 starting] [2 ready]
what was replaced goes back old release by old release, stop first too
  2 workers with stop-first; deploy; 1 ends; 3 ready; 2 ends; 4 exits 1  | [3 draining r2] [5 starting]
  settle          | rollout.rolled-back; [6 ready] [5 ready]
an abort while the old worker drains starts its own release again
  1 worker with stop-first; deploy; abort; 1 ends; 2 ready  | [2 ready]
a pause while the old worker drains leaves no slot without a worker
  1 worker with stop-first; deploy; pause; 1 ends; 2 ready  | [2 ready r2]
held after a failure, the slot serves its old release until it is retried
  1 worker with a hold; deploy; 1 ends; 2 exits 1; settle  | [3 ready]; rollout = held
  retry; 3 ends   | [4 starting r2]
one that is ending by an exception is replaced when it has gone
  1 worker with stop-first; 1 crashing  | [1 draining]
  1 exits 1       | [2 starting]
one that hangs is replaced when it has gone
  1 worker with stop-first; 1 silent    | [1 unresponsive]
  1 exits 1       | [2 starting]
one that is killed by an operator is replaced when it has gone
  1 worker with stop-first; 1 killed    | [1 stopping]
  1 exits 1       | [2 starting]
one that is recycled is replaced when it has gone, and the recycling is over with that
  1 worker with stop-first; 1 due       | [1 draining]
  1 exits 1       | [2 starting]
  settle          | [2 ready]; recycling = none
one that hung and answers again has its slot back, as nobody else was started
  1 worker with stop-first; 1 silent; 1 answered  | [1 ready]; serving = 1; worker.responsive 1 "…it keeps its slot"
recycling goes on with the next one only when the first is replaced
  2 workers with stop-first; 1,2 due; 1 ends  | [3 starting] [2 ready]
  3 ready         | [3 ready] [2 draining]
the workers of a dead master make way one after the other
  2 workers starting with stop-first, two left  | [1 draining orphan] [2 ready orphan]
  1 ends          | [3 starting] [2 ready orphan]
  3 ready         | [3 ready] [2 draining orphan]
  2 ends; 4 ready  | [3 ready] [4 ready]; phase = running
canaries and upgrades, which have two live side by side, are refused
  2 workers with stop-first; deploy canary  | refused not-possible "canary: expected none with rollout.order …"
  upgrade         | refused not-possible "…rollout.order is …: restart the master instead"
  deploy canary start-first  | rollout = canary
a new worker that soaks serves, though it has the slot only afterwards
  1 worker with stop-first; deploy soak; 1 ends; 2 ready  | [2 ready r2]; steps = soaking; ready = 1
one deploy alone can be stop-first
  1 worker; deploy stop-first  | [1 draining]
  settle          | [2 ready r2]; rollout.succeeded
`, { starts, orders: { 'start-first': { strategy: { order: 'start-first' } } } })
