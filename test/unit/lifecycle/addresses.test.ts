import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listAddresses } from '../../../server/lifecycle/addresses.ts'
import { OPTIONS, simulate } from '../../support/simulation.ts'
import { stories } from '../../support/stories.ts'

const APP = 'http://localhost:3000'
const ELSEWHERE = 'http://localhost:4000'
const LATE = 'http://localhost:9090'

const ready = (more: object) => ({ options: { ready: { ...OPTIONS.ready, ...more } } })
const starts = {
  'another language': {
    start: { release: { id: 'r1', createdAt: '', entry: '/srv/r1/app', path: '/srv/r1', runtime: 'other' as const } }
  },
  'little time': ready({ signal: 'listening', timeoutMs: 1000 }),
  'any addresses': ready({ addresses: 'any' }),
  'a path': ready({ path: '/health' }),
  'a message': ready({ signal: 'message' })
}
/** The only worker serves on the app's address. */
const running = (more = '') => `1 worker starting${more}; ${on(1, APP)}`
const on = (worker: number, url: string) => `${worker} listens ${url}; ${worker} ready`

test('an address that all workers share is listed once, and stays while one of them listens; then the last ones stand', () => {
  const pool = simulate({ workers: 2 })
  const listen = (worker: number, url: string) => pool.feed({ type: 'worker-listening', worker, url, isFixed: true })
  for (const worker of [1, 2]) {
    listen(worker, APP)
    pool.feed({ type: 'worker-ready', worker })
  }
  listen(1, 'tcp://127.0.0.1:4001')
  assert.deepEqual(listAddresses(pool.state), [APP, 'tcp://127.0.0.1:4001'])
  pool.feed({ type: 'worker-closed', worker: 1, url: 'tcp://127.0.0.1:4001' })
  assert.deepEqual(listAddresses(pool.state), [APP])
  for (const worker of [1, 2, 3, 4]) {
    pool.exit(worker, { code: 1 })
    assert.deepEqual(listAddresses(pool.state), [APP], 'also while the next ones start')
  }
})

test('a worker that listens without end fills nothing, and each address is told once', () => {
  const pool = simulate({ workers: 1 })
  for (let call = 0; call < 2000; call++)
    pool.feed({ type: 'worker-listening', worker: 1, url: `tcp://127.0.0.1:${call >> 1}`, isFixed: true })
  assert.equal(listAddresses(pool.state).length, 32)
  assert.equal(pool.types().filter((type) => type === 'worker.listening').length, 32)
})

stories('addresses', `
a new worker of a restart is ready once it listens where its predecessor does, with TLS or without
  ${running()}; restart; 2 ready  | [1 ready, 2 starting]
  2 listens https://localhost:3000  | [1 draining, 2 ready]; no addresses:2
a program of another language may take its time for the next port, also for one that came after it was ready
  ${running(' with another language')}; 1 listens http://localhost:3001; restart; ${
  on(2, APP)
}  | [1 ready, 2 starting]; no addresses:2
  2 listens http://localhost:3001  | [1 draining, 2 ready]
one that was opened late is waited for as long as its predecessor has it
  ${running()}; 1 listens ${LATE}; restart; ${on(2, APP)}  | [1 ready, 2 starting]
  2 listens ${LATE}   | [1 draining, 2 ready]
one that was opened late is given up in the end without a failure
  ${running()}; 1 listens ${LATE}; restart; ${on(2, APP)}; next
    | [1 draining, 2 ready]; worker.ready 2 "nobody listens on ${LATE} yet, as the worker before it did…"
one that was opened late is not waited for once nobody serves there any more
  ${running()}; 1 listens ${LATE}; 1 exits SIGKILL; ${on(2, APP)}  | [2 ready]
one elsewhere fails the restart three seconds later, and the old worker stays
  ${running()}; restart; ${on(2, ELSEWHERE)}  | addresses:2 in 3 s
  next                | [1 ready, 2 draining]; after 3 s
    | rollout.failed "worker 2 (slot 1) listens on ${ELSEWHERE}, but the worker before it on ${APP} (option ready.addresses: same)"
one elsewhere is the reason too where the time to get ready is shorter than that
  ${running(' with little time')}; restart; ${on(2, ELSEWHERE)}; next  | rollout.failed "…listens on ${ELSEWHERE}, but…"
one that the worker was given, or has for itself, binds nobody
  1 worker starting; 1 listens http://localhost:34567 isFixed=false; 1 ready; restart; 2 ready  | [1 draining, 2 ready]
none binds anybody with "any"
  ${running(' with any addresses')}; restart; ${on(2, ELSEWHERE)}      | [1 draining, 2 ready]
the last worker of an address makes it free; whoever does not take it then has moved
  ${running()}; 1 exits SIGKILL; ${on(2, ELSEWHERE)}  | ready = 0
  until fork 3; ${on(3, ELSEWHERE)}                   | ready = 0
  until fork 4; ${on(4, ELSEWHERE)}                   | serving = 4; ready = 1
one that another worker still has is never given up
  2 workers starting; ${on(1, APP)}; ${on(2, APP)}; 1 exits SIGKILL
  ${on(3, ELSEWHERE)}; until fork 4; ${on(4, ELSEWHERE)}; until fork 5  | ready = 1
  ${on(5, ELSEWHERE)}; until fork 6; ${on(6, ELSEWHERE)}; until fork 7  | ready = 1
`, { starts })

const own = (worker: number) =>
  `${worker} forked pid=${4000 + worker}; ${on(worker, `unix:/tmp/runtimes/${4000 + worker}/socket`)}`

stories('a path that is named after its process', `
is not expected of the next worker once its own has ended
  1 worker starting; ${own(1)}; 1 exits SIGKILL; ${own(2)}  | [2 ready]
nor where the old worker ends first
  1 worker starting with stop-first; ${own(1)}; restart; 1 exits 0; ${own(2)}  | [2 ready]; rollout.succeeded
keeps the old worker while it serves, and the reason says what to set
  1 worker starting; ${own(1)}; restart; ${
  own(2)
}; next    | [1 ready, 2 draining]; rollout.failed "…rollout.order: stop-first…"
`)

const ACTIVE = 'active resources=["PipeWrap","Timeout"]'

stories('an app that does not listen', `
counts as ready when its time is over if it has something to do, which is said of the first worker alone
  2 workers starting; 1,2 ${ACTIVE}; next; next            | ready = 2; 1 x worker.no-server
is not ready where it has nothing but its channel
  1 worker starting; 1 active resources=["PipeWrap","TTYWrap"]; next  | worker.draining 1 cause=boot-failure
is not ready where it is to be asked over HTTP
  1 worker starting with a path; 1 ${ACTIVE}; next         | worker.draining 1 cause=boot-failure
is not ready where it is to say that it is
  1 worker starting with a message; 1 ${ACTIVE}; next      | worker.draining 1 cause=boot-failure
is not ready where it listens on something
  1 worker starting; 1 ${ACTIVE}; 1 listens ${APP}; next   | worker.draining 1 cause=boot-failure
never replaces a release that listened
  ${running()}; restart; 2 ${ACTIVE}; next                 | [1 ready, 2 draining]; rollout.failed
`, { starts })
