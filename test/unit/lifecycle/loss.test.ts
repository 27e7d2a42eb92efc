import { stories } from '../../support/stories.ts'
import { OPTIONS } from '../../support/simulation.ts'

/** A rollout has replaced worker 1, which drains. */
const DRAINING = '1 worker; restart; 2 boots'
const OPEN = 'unfinished={"requests":3,"connections":1,"isReported":false}'
const REPORTED = 'unfinished={"requests":3,"connections":1,"isReported":true}'
const LEFT = JSON.stringify(
  Array.from({ length: 7 }, (_, index) => ({ name: 'helper', pid: index + 1, startTime: 'boot:1' }))
)

stories('what the end of a worker has ended with it', `
is told of one whose drain deadline was over, in its exit and as a warning of the rollout
  ${DRAINING}; next; 1 exits 0 ${OPEN}
    | worker.exited 1 detail={"endedRequests":3,"endedConnections":1} "worker 1 (slot 1) ended, as another worker replaces it, with 3 requests and 1 connection still open"
    | rollout.succeeded detail.warnings="worker 1 (slot 1) ended with 3 requests and 1 connection still open, as it had not drained within 30 s (option drain.deadlineMs)"
is nothing that is known of a program that has ended by the signal that it was told by
  ${DRAINING}; 1 exits SIGTERM isAsTold=true
    | worker.exited 1 cause=restart detail=none "worker 1 (slot 1) ended, as another worker replaces it"
is told with the signal that it was to end by, where it had to be killed
  1 worker with SIGQUIT; restart; 2 boots; next; next; 1 exits SIGKILL
    | worker.exited 1 "worker 1 (slot 1) was killed, as it had not ended 5 s after SIGQUIT (option stop.termGraceMs)…"
is nothing once it has drained, whatever its last report was
  ${DRAINING}; 1 drained; 1 exits SIGKILL ${REPORTED}        | worker.exited 1 detail=none; rollout.succeeded detail.warnings.length=0
is nothing once it has drained after the deadline, whatever its last report was
  ${DRAINING}; next; 1 drained; 1 exits SIGKILL ${REPORTED}  | worker.exited 1 detail=none; rollout.succeeded detail.warnings.length=0
is told of SIGKILL while it serves, by its last report; a crash tells of its error
  2 workers; 1 exits SIGKILL unfinished={"requests":0,"connections":2,"isReported":true}
    | worker.exited 1 "worker 1 (slot 1) was ended by SIGKILL, with 2 connections still open, by its last report"
  2 exits SIGABRT ${REPORTED}  | worker.exited 2 "worker 2 (slot 2) was ended by SIGABRT (it aborted itself)"
names five of the processes that live on, and all of them in its detail
  1 worker; 1 exits 1 left=${LEFT}
    | worker.exited 1 "…; processes that it started still run: helper (pid 1), …helper (pid 5) …"
    | worker.exited 1 detail.leftProcesses.6={"name":"helper","pid":7} detail.leftProcesses.7=none
`, { starts: { SIGQUIT: { options: { stop: { ...OPTIONS.stop, signal: 'SIGQUIT' } } } } })
