import { stories } from '../../support/stories.ts'

const MB = 1024 ** 2
/** Worker 1 was recycled for its memory, and has drained with a heap of so many MB. */
const drained = (mb: number) => `2 workers; 1 due; 3 boots; 1 drained heapBytes=${mb * MB}`

stories('a worker that was recycled for its memory', `
has a minute at least to write its heap once it has drained
  ${drained(10)}      | write-heap 1; no terminate 1; drain:1 in 60 s
has more for a larger heap
  ${drained(100)}     | drain:1 in 300 s
has ten minutes at most
  ${drained(1000)}    | drain:1 in 600 s
has ten minutes, however large its heap is
  ${drained(10_000)}  | drain:1 in 600 s
ends as usual with its heap written
  ${drained(100)}; 1 drained heapBytes=0  | terminate 1; no kill 1
  1 exits 0           | worker.exited 1 cause=memory-limit
is killed if its heap is never written
  ${drained(100)}; until kill 1; 1 exits SIGKILL  | worker.exited 1 "…was killed, as it was still writing its heap…"
writes nothing where it is not to
  ${drained(0)}       | no write-heap; terminate 1
writes nothing where its size is not known
  2 workers; 1 due; 3 boots; 1 drained heapBytes=none                | no write-heap; terminate 1
writes nothing where it was recycled for something else
  2 workers; 1 due cause=max-requests; 3 boots; 1 drained heapBytes=${100 * MB}  | no write-heap; terminate 1
holds up neither the next recycling, nor a deploy, nor a stop
  ${drained(1000)}    | recycling = none
  2 due; 4 boots; 2 ends; restart; 5,6 boots; 3,4 ends  | rollout.succeeded; no terminate 1
  stop                | terminate 1; term:1 in 1 s
  next                | kill 1
does not begin to write during a stop
  1 worker; 1 due; 2 boots; stop; 1 drained heapBytes=${MB}   | no write-heap; terminate 1
does not begin to write where its successor waits for its end
  1 worker with stop-first; 1 due; 1 drained heapBytes=${MB}  | no write-heap; terminate 1
keeps its time while it writes, whatever it reports of its memory
  ${drained(1000)}; wait 10 s; 1 due      | drain:1 in 590 s
is killed if its heap takes too much memory, and is no fault of the app; one that serves is not
  ${drained(100)}; heap-too-large worker=2  | no kill
  heap-too-large worker=1; 1 exits SIGKILL
    | kill 1; worker.exited 1 cause=memory-limit "…was killed, as writing its heap took half of the free memory…"
is no fault of the app where it lacks memory while it writes
  ${drained(100)}; 1 exits SIGKILL isOutOfMemory=true  | worker.exited 1 cause=memory-limit
is no fault of the app where it aborts while it writes
  ${drained(100)}; 1 exits SIGABRT                     | worker.exited 1 cause=memory-limit
`)
