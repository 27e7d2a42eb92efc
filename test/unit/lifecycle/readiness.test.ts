import { stories } from '../../support/stories.ts'
import { OPTIONS } from '../../support/simulation.ts'

const APP = 'http://localhost:3000'
/** The only worker has been taken for no server. */
const BOT = '1 worker starting; wait 5 s; 1 idle'

stories('an app that listens on nothing', `
counts as ready once it has only waited for a while; that is said once, with the option
  2 workers starting; 1,2 active  | ready = 0
  wait 5 s; 1,2 idle              | ready = 2; 1 x worker.no-server
    | worker.no-server 1 "worker 1 (slot 1) does not listen after 5 s and counts as ready. …ready.signal: online …ready.signal: listening…"
is not judged so soon where it listens meanwhile
  2 workers starting; 1 listens ${APP}; 1 idle  | ready = 0
is not judged so soon where another worker listens
  2 workers starting; 2 listens ${APP}; 1 idle  | ready = 0
is not judged so soon where an earlier app of the data folder has listened, but at the end of its time
  1 worker starting with a past; 1 idle         | ready = 0
  next                            | ready = 1; after 30 s
is waited for to its end with ready.signal: listening, and has failed then
  1 worker starting with a signal; wait 5 s; 1 idle  | ready = 0
  next                            | worker.draining 1 cause=boot-failure
has its successors be alive for 5 seconds before the old one goes, busy or not
  ${BOT}; restart; 2 active       | [1 ready, 2 starting]
  next                            | [1 draining, 2 ready]; after 5 s; 1 x worker.no-server
whose successor dies within these has failed, and the old one stays
  ${BOT}; restart; 2 active; 2 exits 1  | [1 ready]; rollout.failed
is a server once it listens after all: its successors are waited for
  ${BOT}; 1 listens ${APP}; 1 ready
    | worker.listens-late 1 "worker 1 (slot 1) listens after 5 s, but counted as ready before. …ready.signal: listening…"
  restart; 2 idle; wait 20 s; 2 idle  | [1 ready, 2 starting]
  2 listens ${APP}; 2 ready       | [1 draining, 2 ready]
is waited for there too where it listens late while its successor starts already
  ${BOT}; restart; 2 active; 1 listens ${APP}; next  | [1 ready, 2 starting]
is judged at the end of its time where one slot alone listens, and its next one after 5 seconds
  2 workers starting; 1 listens ${APP}; 1 ready; 2 idle  | ready = 1
  until worker.ready 2            | ready = 2
  2 exits SIGKILL; 3 active; next  | ready = 2
`, {
  starts: { 'a past': { start: { hasListened: true } },
    'a signal': { options: { ready: { ...OPTIONS.ready, signal: 'listening' } } } }
})
