import { stories } from '../../support/stories.ts'
import { orphan } from '../../support/simulation.ts'
import type { Orphan } from '../../../server/lifecycle/state.ts'

const GONE = { code: null, signal: null }
const ERROR = { errorName: 'Error', errorMessage: 'boom', stack: null }
const INTENT = { cause: 'deploy', actor: 'api', rollout: 7 }

/** how an orphan has ended between two masters, the cause that is told of it */
const ENDS: [string, Partial<Orphan>, string][] = [['nobody saw', { exit: GONE }, 'master-lost'], ['a signal brought', {
  exit: { code: null, signal: 'SIGKILL' }
}, 'killed'], ['an error brought', { exit: { code: 1, signal: null, error: ERROR } }, 'crash'], [
  'of its own accord, with nobody to serve for',
  { exit: { code: 0, signal: null } },
  'master-lost'
], ['that left only a crash note', { exit: { ...GONE, error: ERROR } }, 'crash'], ['before it was ready', {
  state: 'starting',
  readyAt: null,
  exit: { code: 1, signal: null }
}, 'master-lost'], ['that was meant', { state: 'stopping', intent: { cause: 'scale-down', actor: 'api', rollout: null },
  exit: { code: 0, signal: null } }, 'scale-down']]

const left = (...orphans: Partial<Orphan>[]) => ({
  orphans: orphans.map((fields, index) => orphan({ id: index + 1, ...fields }))
})
const starts = { 'one left': left({}), 'two left': left({}, {}), 'three left': left({}, {}, {}),
  'one left that starts': left({ state: 'starting', readyAt: null }),
  'one left that drains': left({ state: 'draining', intent: INTENT }),
  'one left that stops': left({ state: 'stopping', intent: INTENT }),
  'two left of which one drains': left({}, { state: 'draining', intent: INTENT }),
  'two left of slot 1': left({}, { slot: 1, release: 'r2' }, { slot: 2 }),
  'one left from before': left({ startedAt: new Date(-59_000).toISOString() }),
  'one left from the future': left({ startedAt: new Date(3_600_000).toISOString() }),
  ...Object.fromEntries(ENDS.map(([how, fields]) => [`an end ${how.replaceAll(',', '')}`, left(fields)])) }

stories('the end of an orphan between two masters', ENDS.map(([how, , cause]) => `
${how}, is told once, with cause ${cause}
  1 worker starting with an end ${
  how.replaceAll(',', '')
}  | [2 starting]; worker.exited 1 cause=${cause}; no worker.orphaned
    | 1 x worker.exited; state.slots.0.restarts = 0`).join(''), { starts })

stories('an orphan', `
that serves goes on until its slot has a ready worker, and counts as ready until then
  2 workers starting with two left  | [1 ready orphan, 3 starting] [2 ready orphan, 4 starting]; ready = 2; phase = starting
    | worker.orphaned 1 cause=master-lost slot=1 pid=1001
  3 ready     | [1 draining orphan, 3 ready] [2 ready orphan, 4 starting]; ready = 2; worker.draining 1; no worker.exited
  settle      | [3 ready] [4 ready]; worker.exited 1 cause=master-lost; phase = running; 2 x worker.orphaned
that does not drain is terminated and killed after the usual times
  1 worker starting with one left; 2 ready  | drain 1
  next        | terminate 1; after 30 s
  next        | kill 1; after 5 s
that was starting is on its way out from the first moment, and ends with its master
  1 worker starting with one left that starts  | [1 draining orphan, 2 starting]; drain 1; drain:1; ready = 0
  1 exits 1   | worker.exited 1 cause=master-lost
that was starting ends with its master also where nobody sees how
  1 worker starting with one left that starts; 1 exits unseen  | worker.exited 1 cause=master-lost
that was draining is told once more, watched, and ends for the reason that the dead master had
  1 worker starting with one left that drains  | drain 1; drain:1
  settle      | worker.exited 1 cause=deploy actor=api rollout=7
that was stopping is told once more, watched, and ends for the reason that the dead master had
  1 worker starting with one left that stops   | drain 1; drain:1
  settle      | worker.exited 1 cause=deploy actor=api rollout=7
that dies before its replacement is ready leaves the slot unserved, and counts against nobody
  2 workers starting with two left; 1 exits SIGKILL  | [3 starting] [2 ready orphan, 4 starting]; ready = 1
    | worker.exited 1 cause=killed; no worker.restarted; state.slots.0.record.attempt = 0
goes on while its replacement never gets ready; the slot shows both, and the retries
  1 worker starting with one left; 2 exits 1  | [1 ready orphan, 3 starting]; ready = 1; phase = starting
  3 exits 1   | [1 ready orphan, backoff]; ready = 1; phase = starting
  next; 4 exits 1; next; 5 exits 1; next; 6 exits 1; next; 7 exits 1  | [1 ready orphan, backoff]; ready = 1
    | 1 x worker.crash-looping; no worker.draining
  next; settle  | [8 ready]
goes on where its replacement is not ready in time and is replaced itself
  1 worker starting with one left; next  | [1 ready orphan, 2 draining, 3 starting]; worker.draining 2 cause=boot-failure
goes, as all of its slot do, once that has one ready worker, and none of another slot
  2 workers starting with two left of slot 1  | ready = 2
  4 ready     | [1 draining orphan, 2 draining r2 orphan, 4 ready] [3 ready orphan, 5 starting]
helps until every slot has its worker where its own is no longer wanted
  1 worker starting with three left  | [1 ready orphan, 4 starting] [2 ready orphan] [3 ready orphan]; ready = 1
  settle      | [4 ready]; worker.exited 2 cause=master-lost; worker.exited 3 cause=master-lost
is left by a scale-down until the smaller cluster is whole
  2 workers starting with two left; scale 1  | [1 ready orphan, 3 starting] [2 ready orphan, 4 draining]
  settle      | [3 ready]; worker.exited 2 cause=master-lost; worker.exited 4 cause=scale-down
is left by a scale-up until the larger cluster is whole
  1 worker starting with two left; scale 2; 3 ready  | [1 draining orphan, 3 ready] [2 ready orphan, 4 starting]
goes in a deploy as soon as the new release serves in its slot, whatever the other slots do
  2 workers starting with two left; deploy; 5 ready  | [1 draining orphan, 3 draining, 5 ready r2] [2 ready orphan, 4 starting, 6 starting r2]
    | serving = 5 4; phase = starting
  settle      | rollout.succeeded release=r2; slots = r2 r2; ready = 2
is left by a deploy of a release that does not start until the old release is back
  2 workers starting with two left; deploy; 5 exits 1  | rollout.failed; ready = 2
  settle      | [3 ready] [4 ready]; slots = r1 r1
cannot be restarted by itself, and what is asked in vain changes nothing
  1 worker starting with one left; 1 restarted  | refused not-found; [1 ready orphan, 2 starting]
is drained by a stop too, keeps its reason where it is on its way, and the stop ends with the last of them
  1 worker starting with two left of which one drains; stop  | drain 1
  3,2 exits 0  | worker.exited 3 cause=shutdown; worker.exited 2 cause=deploy; isFinished = false
  1 exits 0   | worker.exited 1 cause=shutdown; isFinished = true
was up since its own start
  1 worker starting with one left from before; 1 exits 0      | worker.exited 1 uptimeMs=60000
was up for no time where the clock was set back
  1 worker starting with one left from the future; 1 exits 0  | worker.exited 1 uptimeMs=0
`, { starts })
