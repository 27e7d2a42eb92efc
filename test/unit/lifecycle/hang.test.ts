import { stories } from '../../support/stories.ts'

stories('a worker whose loop does not answer', `
is unresponsive, replaced at once, and killed when its stack is known
  2 workers; 1 silent  | [1 unresponsive, 3 starting] [2 ready]; ready = 1; capture-stack 1; no kill 1
  1 captured           | kill 1
  1 exits SIGKILL      | worker.exited 1 cause=hung actor=system signal=SIGKILL
is killed in the end although its stack never comes
  2 workers; 1 silent; until kill 1  | after 5 s
counts as a death for the restart policy, but its replacement never waits
  1 worker; 1 silent; settle; 2 silent; settle; 3 silent; settle  | [4 ready]
  4 silent; settle; 5 silent; settle; 6 silent; settle            | [7 ready]; state.slots.0.restarts = 6; no retry:1
    | 1 x worker.crash-looping
that answers again serves on until its replacement is ready, and is drained then
  2 workers; 1 silent; 1 answered  | [1 ready, 3 starting] [2 ready]; ready = 2
  1 captured           | no kill 1
  3 ready              | [1 draining, 3 ready] [2 ready]
  settle               | [3 ready] [2 ready]; worker.exited 1 cause=hung
that answers again goes on serving if its replacement comes to nothing
  1 worker; 1 silent; 1 answered; 2 exits 1  | [1 ready, backoff]; ready = 1
that answers again and then ends by itself did not end by its hang
  2 workers; 1 silent; 1 answered; 1 exits 1  | worker.exited 1 cause=crash
that answers again while the master stops is drained like the others
  2 workers; 1 silent; stop; 1 answered  | drain 1
  settle               | isFinished = true
while it starts or drains has another deadline, and is left to that
  2 workers starting; 1 silent           | [1 starting] [2 starting]
  settle; 1 restarted; 3 ready; 1 silent  | [1 draining, 3 ready] [2 ready]; no worker.unresponsive
on a new release fails the deploy that brought it
  2 workers; deploy; 3 ready; 3 silent; settle  | rollout.rolled-back "…silent…"; slots = r1 r1
`)

stories('an operator who kills a worker', `
ends it at once, whatever runs, and the next one starts in the same moment without a backoff
  1 worker; 1 killed        | kill 1; [1 stopping, 2 starting]
  settle                    | worker.exited 1 cause=operator actor=api
  2 killed; settle; 3 killed; settle; 4 killed actor=ada; settle  | [5 ready]; worker.exited 4 actor=ada; no worker.restarted
does not fail a deploy by it, and may during one
  2 workers; deploy; 3 ready; 3 killed; settle  | rollout.succeeded
is told of a worker that is gone
  2 workers; 99 killed      | refused not-found
`)
