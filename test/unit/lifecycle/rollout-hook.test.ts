import { stories } from '../../support/stories.ts'

const HOOKED = '2 workers; deploy unprepared; prepared r2 hasHook=true'

stories('the hook of a deploy', `
runs once the release is prepared, and nothing is replaced before it has passed
  ${HOOKED}    | run-hook rollout=1 release.id=r2 from=r1; rollout.step "running beforeDeploy"
    | [1 ready] [2 ready]; rollout = preparing; rollout.to = r2; rollout.hook.state = running
  hook passed  | [1 ready, 3 starting r2] [2 ready]; rollout = rolling; rollout.hook.state = passed
  settle       | release = r2; 1 x rollout.succeeded
fails it with its reason and its output, and every worker serves on
  ${HOOKED}; hook failed reason="it exited with code 3: no table" output="migrating, no table"
    | rollout.failed detail.to=r2 detail.steps.length=0 detail.hook.state=failed "it exited with code 3: no table"
    | rollout.failed detail.hook.output="migrating, no table"; [1 ready] [2 ready]; no drain; release = r1
  deploy       | rollout = rolling
runs for no rollback
  2 workers; rollback r2 source={"release":"r2"} unprepared; prepared r2 hasHook=true  | no run-hook; rollout = rolling
runs for no restart
  2 workers; restart; prepared r2 hasHook=true  | no run-hook; rollout = rolling
begins after a pause, not during it
  2 workers; deploy unprepared; pause; prepared r2 hasHook=true  | no run-hook; rollout.hook.state = due; rollout = paused
  resume       | run-hook rollout=1 release.id=r2 from=r1; rollout = preparing
goes on during a pause, and the workers wait for its end
  ${HOOKED}; pause; hook passed  | [1 ready] [2 ready]; rollout = paused; rollout.pausedIn = rolling
  resume       | [1 ready, 3 starting r2] [2 ready]
is ended by an abort, and only then the next deploy may begin
  ${HOOKED}; abort  | end-hook rollout=1; rollout = rolling-back
  deploy       | refused rollout-running
  hook failed reason="beforeDeploy was ended" output="half"  | rollout.rolled-back "aborted by api"
    | rollout.rolled-back detail.hook.state=ended detail.hook.output=none; [1 ready] [2 ready]
  deploy       | rollout = rolling
that passes although it was to end changes nothing
  ${HOOKED}; abort; hook passed  | rollout.rolled-back; [1 ready] [2 ready]
is ended by a stop, and nobody waits for it
  ${HOOKED}; stop; settle  | end-hook rollout=1; rollout.failed detail.hook.state=ended; isFinished = true
  hook failed reason="beforeDeploy was ended"  | 1 x rollout.failed
keeps no worker from being replaced or added, and what is new joins the deploy
  ${HOOKED}; 2 exits SIGKILL; settle; scale 3; settle  | [1 ready] [3 ready] [4 ready]
  hook passed; settle  | [5 ready r2] [6 ready r2] [7 ready r2]
`)
