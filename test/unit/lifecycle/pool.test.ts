import { stories } from '../../support/stories.ts'
import { OPTIONS } from '../../support/simulation.ts'

stories('pool', `
runs once every slot has a ready worker
  2 workers starting; 1 ready  | [1 ready] [2 starting]; phase = starting
  2 ready                      | phase = running; ready = 2; expire-unused-sockets
replaces a killed worker at once, and the next death in a row after 100 ms, 200 ms, 400 ms
  1 worker; 1 exits SIGKILL    | worker.restarted detail.delayMs=0; worker.exited 1 cause=killed
  settle; 2 exits SIGKILL      | worker.restarted detail.delayMs=100; [backoff]; retry:1 in 100 ms; retryIn = 0.1 s
  next; settle; 3 exits SIGKILL  | worker.restarted detail.delayMs=200
  next; settle; 4 exits SIGKILL  | worker.restarted detail.delayMs=400; restarts = 4
says crash-looping when the intensity is exceeded, goes on trying, and forgives after a minute up
  1 worker starting; crash-loop 6  | 1 x worker.crash-looping; crashLooping = true
  next; settle                 | ready = 1; crashLooping = true
  next                         | worker.recovered; crashLooping = false
  7 exits 1                    | worker.restarted detail.delayMs=0
tells a death before readiness from a crash, and an unexpected exit 0 from a wanted one
  1 worker starting; 1 exits 1  | worker.exited 1 cause=boot-failure
  settle; 2 exits 0            | worker.exited 2 cause=crash code=0
replaces a worker that is not ready in time; the message names worker, slot, time and option
  1 worker starting; next      | [1 draining, 2 starting]
    | worker.draining 1 "worker 1 (slot 1) was not ready within 30 s (option ready.timeoutMs)"
  settle                       | worker.exited 1 cause=boot-failure; [2 ready]
has a worker whose app is asked say with its end what it last answered, or that nobody could be asked
  2 workers starting with a path
  1 probed text="GET /health answered 500"; 1 probed text="GET /health answered 503 (no cache)"
  next  | worker.draining 1 "worker 1 (slot 1) was not ready within 500 ms (option ready.timeoutMs): GET /health answered 503 (no cache)"
  next  | worker.draining 2 "worker 2 (slot 2) was not ready within 500 ms (option ready.timeoutMs): nobody could be asked for /health, as no HTTP server of the app has listened"
  1 exits 0  | worker.exited 1 "…exited with code 0 (worker 1 … GET /health answered 503 (no cache))"
tells what a worker says of itself that has to say that it is ready, and has not done so in time
  1 worker starting with a notification; 1 status-text text="loading 3 of 9"
    | view.workers.0.statusText = loading 3 of 9
  next  | worker.draining 1 "worker 1 (slot 1) was not ready within 500 ms (option ready.timeoutMs): it has not said READY=1 (option ready.signal: notify): its status is …loading 3 of 9…"
replaces a worker that says that it stops at once, as no failure
  1 worker; wait 2 s; 1 stopping  | [1 draining, 2 starting]; worker.draining 1 cause=app-request
    | worker.restarted detail.delayMs=0
  1 exits 0  | worker.exited 1 cause=app-request "worker 1 (slot 1) ended, as it has said that it stops"
does not replace a worker that says that it stops where it may end by itself
  1 worker with policy never; 1 stopping; 1 exits 0  | worker.exited 1 cause=finished; [finished]
tells of a worker that was warmed up, and what failed then, without any other effect
  2 workers starting
  1 ready probe="GET /health answered 200" warmupFailed="1 of 2 warm-up requests failed: GET /a answered 500"
    | worker.ready 1 "GET /health answered 200"; [1 ready] [2 starting]
    | worker.warm-up-failed 1 "1 of 2 warm-up requests failed: GET /a answered 500"
  2 ready    | worker.ready 2; 1 x worker.warm-up-failed; ready = 2
drains, then terminates, then kills: 30 s and 5 s by default
  1 worker; stop   | drain 1; no terminate 1
  next             | terminate 1; no kill 1; no drain:1; after 30 s
  next             | kill 1; after 5 s; isFinished = false
  1 exits SIGKILL  | isFinished = true; worker.exited 1 cause=shutdown actor=api
scales up and down from the highest slot, and tells from and to
  1 worker; scale 3; settle  | [1 ready] [2 ready] [3 ready]
  scale 2; settle  | [1 ready] [2 ready]; scale.changed detail={"from":3,"to":2}; worker.exited 3 cause=scale-down
  scale 2          | 2 x scale.changed
forks nothing any more once it is stopping, and refuses what is asked of it
  2 workers; stop  | close-sockets
  scale 5          | refused stopping
  1 exits SIGKILL  | [2 draining]
  settle           | isFinished = true
makes an unexpected event of what fits no transition
  1 worker; 99 ready  | unexpected "worker-ready of worker 99…"
`, {
  starts: { 'a path': { options: { ready: { signal: 'listening', timeoutMs: 500, path: '/health', warmup: ['/'] } } },
    'a notification': { options: { ready: { ...OPTIONS.ready, signal: 'notify', timeoutMs: 500 } } } }
})
