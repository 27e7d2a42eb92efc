import { stories } from '../../support/stories.ts'

stories('a rolling deploy', `
replaces one slot at a time, new before old
  2 workers; deploy  | [1 ready, 3 starting r2] [2 ready]; no drain
  3 ready            | [1 draining, 3 ready r2] [2 ready, 4 starting r2]; drain 1; worker.draining 1 cause=deploy
  settle             | [3 ready r2] [4 ready r2]; release = r2; rollout = none
    | rollout.succeeded detail.progress={"total":2,"replaced":2}
ends only when the last old worker is gone
  1 worker; deploy; 2 ready  | rollout = rolling
  1 exits 0                  | rollout.succeeded detail.steps.0.state=done detail.progress={"total":1,"replaced":1}
fails when the new worker dies: the old ones serve on, untouched
  2 workers; deploy; 3 exits 1  | [1 ready] [2 ready]; no drain; release = r1; rollout = none
    | rollout.failed detail.steps.0.state=failed "worker 3 (slot 1) exited with code 1 before it was ready"
fails when the new worker is not ready in time, and says which option that is
  1 worker; deploy; until rollout.failed  | [1 ready, 2 draining r2]
    | rollout.failed "worker 2 (slot 1) was not ready within 30 s (option ready.timeoutMs)"
takes back what was already replaced, new before old again
  3 workers; deploy; 4,5 ready; 6 exits 1
    | [1 draining, 4 ready r2, 7 starting] [2 draining, 5 ready r2] [3 ready]; rollout = rolling-back
  settle  | slots = r1 r1 r1; rollout.rolled-back detail.progress.replaced=0; worker.draining cause=rollback
    | rollout.rolled-back detail.steps.0.state=reverted detail.steps.1.state=reverted detail.steps.2.state=failed
brings a slot that waits to go back onto the old release, should its worker die meanwhile
  3 workers; deploy; 4,5 ready; 6 exits 1; 5 exits SIGKILL  | fork slot=2 release.id=r1
leaves a slot on the new release where the old one will not come back
  2 workers; deploy; 3 ready; 4 exits 1; 5 exits 1  | [1 draining, 3 ready r2] [2 ready]; slots = r2 r1; rollout = none
is rolled back when a worker that it has already put into service crashes
  2 workers; deploy; 3 ready; 3 exits 1; settle  | rollout.rolled-back; slots = r1 r1; ready = 2
but not when somebody kills it
  2 workers; deploy; 3 ready; 3 exits SIGKILL; settle  | rollout.succeeded; slots = r2 r2; ready = 2
replaces a worker that dies meanwhile on its own slot's release
  2 workers; deploy; 2 exits SIGKILL; 1 exits SIGKILL  | [3 starting r2, 5 starting] [4 starting]
  settle                                               | rollout.succeeded; [3 ready r2] [6 ready r2]
brings a slot in a backoff onto the new release without waiting for it
  1 worker; 1 exits 1; 2 exits 1  | [backoff]; retry:1
  deploy; settle                  | [3 ready r2]; no retry:1
`)

stories('a restart of all', `
has every new worker ready before any old one drains
  3 workers; restart  | [1 ready, 4 starting] [2 ready, 5 starting] [3 ready, 6 starting]
  4,5 ready           | no drain
  6 ready             | serving = 4 5 6; drain 1; drain 2; drain 3
  settle              | [4 ready] [5 ready] [6 ready]; rollout.succeeded detail.from=r1
changes nothing when one of them dies: the others go again
  2 workers; restart; 3 ready; 4 exits 1; settle  | [1 ready] [2 ready]; rollout.failed
of one worker replaces that one alone, and is refused of one that is gone
  2 workers; 2 restarted; settle  | [1 ready] [3 ready]
  2 restarted                     | refused not-found
`)

stories('one at a time', `
a second rollout and a single restart are refused, naming the one that runs
  2 workers; deploy  | rollout = rolling
  deploy             | refused rollout-running "rollout 1 (deploy) is running"
  restart            | refused rollout-running "rollout 1 (deploy) is running"
  1 restarted        | refused rollout-running "rollout 1 (deploy) is running"; 1 x rollout.started
a stop ends a rollout as failed, and everything drains
  2 workers; deploy; stop  | rollout.failed "the master is stopping"
  settle                   | isFinished = true
a release that never works leaves every slot on the old one
  4 workers; deploy; settle r1; deploy; settle r1; deploy; settle r1  | [1 ready] [2 ready] [3 ready] [4 ready]
    | slots = r1 r1 r1 r1; 3 x rollout.failed
`)
