import { stories } from '../../support/stories.ts'

const gone = (reason: string, lastWorker: number = 0) =>
  `next-gone reason="${reason}" lastWorker=${lastWorker} orphans=[]`

stories('an upgrade', `
is announced before it is begun, and nothing else begins while it runs
  2 workers; upgrade note=why actor=ada  | start-next; state.upgrade.actor = ada
    | master.upgrading actor=ada detail={"execPath":null} "the next master starts: why"
  upgrade      | refused upgrade-running
  scale 3      | refused upgrade-running
  restart      | refused upgrade-running
  1 restarted  | refused upgrade-running
is refused while a rollout runs, while the first workers start and when everything ends
  2 workers starting; upgrade  | refused starting
  settle; restart      | rollout = rolling
  upgrade              | refused rollout-running
  stop                 | rollout.failed
  upgrade              | refused stopping
replaces a worker that dies meanwhile under an id that the next master cannot have given, and gives none twice
  2 workers; upgrade; 1 exits SIGKILL; settle  | [1003 ready] [2 ready]
  ${gone('exit code 1', 4)}; 2 exits SIGKILL   | [1003 ready] [1004 starting]
whose next master comes to nothing leaves all as before, and ids go on without a gap
  2 workers; upgrade; ${gone('exit code 1', 4)}  | [1 ready] [2 ready]; state.upgrade = none
    | master.upgrade-failed "the next master ended before it was ready (exit code 1)"
  1 exits SIGKILL      | [5 starting] [2 ready]
fails for what the next master said before it ended
  2 workers; upgrade; next-failing reason="worker 3 was not ready"; next-failing reason="and then this"
  ${gone('exit code 1')}  | master.upgrade-failed "worker 3 was not ready"
ends a next master that does not get ready in time
  2 workers; upgrade   | upgrade:0 in 60 s
  until cancel-next; ${
  gone('SIGKILL')
}  | master.upgrade-failed "the next master was not ready within a minute"; no upgrade:0
has the time that workers may take which wait for a CPU, once they have begun to start
  2 workers; upgrade; next-forks         | upgrade:0 in 330 s
  until cancel-next; ${gone('SIGKILL')}  | master.upgrade-failed "the next master was not ready within 330 s"
that is told to stop ends only when the next master has gone
  2 workers; upgrade; stop; settle       | cancel-next; isFinished = false
  ${gone('SIGKILL')}   | master.upgrade-failed "the master was told to stop"; isFinished = true
that is handed over starts nothing here any more, and the next master goes on with its own ids
  2 workers; upgrade; hand-over          | state.nextWorker = 3
  1 exits 0            | [2 ready]
is not failed by a next master that nobody has asked for
  2 workers; ${gone('the keeper is gone')}; next-failing reason=x  | no master.upgrade-failed; [1 ready] [2 ready]
`)
