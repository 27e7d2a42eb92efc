import { stories } from '../../support/stories.ts'

stories('a worker that is about to crash', `
is replaced before it ends, drains by itself, and is counted once
  2 workers; 1 crashing  | [1 draining, 3 starting] [2 ready]; no drain 1; worker.draining 1 cause=crash actor=none
  1 exits 1              | worker.exited cause=crash code=1; state.slots.0.restarts = 1; 1 x worker.restarted
waits out the backoff where it dies again and again, also when it says so before
  1 worker; 1 crashing; 2 ready; 2 crashing  | [1 draining, 2 draining, backoff]; retry:1
is killed in the end if it does not end
  1 worker; 1 crashing                | drain:1 in 3 s
  deadline-passed deadline=drain id=1; deadline-passed deadline=term id=1  | kill 1
  1 exits SIGKILL                     | worker.exited cause=crash
ends the release that it belongs to in a rollout; said on the way out, or twice, it changes nothing
  2 workers; deploy; 3 crashing errorName=TypeError errorMessage="no shop"
    | rollout.failed "…TypeError: no shop…"; worker.draining 3 cause=boot-failure
  3 crashing                          | no worker.restarted; 1 x rollout.failed; 1 x worker.draining
`)

stories('a lack of memory', `
is the cause, unless the master meant the worker to end
  2 workers; 1 exits SIGKILL isOutOfMemory=true        | worker.exited 1 cause=out-of-memory
  stop; 2 drained; 2 exits SIGKILL isOutOfMemory=true  | worker.exited 2 cause=shutdown
`)
