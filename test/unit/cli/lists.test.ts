import { test } from 'node:test'
import { answerJson, deckFolder, serveMaster } from '../../support/deck-folder.ts'
import { play } from '../../support/transcript.ts'

const AT = '2026-01-01T00:00:00.000Z'
const LATER = new Date(Date.now() + (125 * 60 + 30) * 1000).toISOString()
const RUN = { id: 7, job: 'nightly', command: 'npm run report', state: 'failed', cause: 'exit-code', startedAt: AT,
  dueAt: AT, durationMs: 1500, actor: 'ada', release: 'r2', reason: 'it has ended with 3', code: 3, signal: null,
  output: 'one\n\u001b[2Jtwo\n' }
const JOB = { name: 'nightly', cron: '0 3 * * *', timeZone: 'UTC', nextAt: LATER, paused: null, last: RUN,
  isWaiting: true }
const GROUP = { id: 12, state: 'open', hasReturned: true, isNewInRelease: false, count: 3, firstSeenAt: AT,
  lastSeenAt: AT, lastRelease: 'r2', cause: 'crash', kind: 'exception', errorName: 'TypeError',
  message: 'x is not a function', culprit: 'shop.js:7',
  releases: [{ release: 'r1', count: 1 }, { release: 'r2', count: 2 }],
  latest: { at: AT, worker: 5, slot: 1, uptimeMs: 61_000, code: null, signal: 'SIGABRT',
    stack: 'TypeError: x is not a function\n    at shop.js:7',
    causes: [{ errorName: 'Error', errorMessage: 'no db', stack: 'Error: no db\n    at db.js:1' }],
    requests: [{ method: 'GET', path: '/cart', ageMs: 20 }], stderr: ['bye'] } }
const ROUTE = { route: 'GET /cart', requests: 40, errors: 1, p50Ms: 2, p99Ms: 8, before: null }
const ALERT = { id: '3', kind: 'mail', name: 'ops', isPaused: true, waiting: 1, isDefault: true, events: ['*'],
  apps: ['shop'], mail: { to: ['a@example.com', 'b@example.com'], host: 'smtp.example.com', port: 25 },
  deliveries: [{ id: 1, at: AT, event: { type: 'worker.exited' }, state: 'pending', attempt: 2, status: 451,
    durationMs: 12, error: 'try later', nextAttemptAt: LATER }] }
const PROFILE = { isOn: true, slices: 2, since: AT, until: AT, busyMs: 800, idleMs: 9200,
  functions: [{ function: 'total', place: 'shop.js:7', line: 9, selfMs: 400, totalMs: 600 }, { function: '(program)',
    place: '', line: null, selfMs: 8, totalMs: 8 }] }

/** What the master answers, by the path that it is asked for; what is typed, asked and printed. */
const LISTS: Record<string, [answers: Record<string, unknown>, transcript: string]> = {
  'jobs, with when they run and how the last run ended': [{
    '/jobs': { items: [JOB, { ...JOB, name: 'reindex', cron: null, paused: { actor: 'ada' }, last: null }] }
  }, `
    $ jobs
    JOB      NEXT           TIMES                               LAST                   STARTED                   TOOK   WHY
    nightly  in 2 h 05 min  every day at 03:00 UTC (0 3 * * *)  failed, another waits  2026-01-01T00:00:00.000Z  1.5 s  it has ended with 3
    reindex  paused by ada  by hand                             -                      -                         -      -
    > GET /jobs`],
  'runs of all jobs, of one, and one with its output': [{ '/jobs/runs?limit=20': { items: [RUN] },
    '/jobs/nightly/runs?limit=5': { items: [] }, '/jobs/runs/7': RUN }, `
    $ jobs runs
    RUN  JOB      STATE   STARTED                   TOOK   BY   RELEASE  WHY
      7  nightly  failed  2026-01-01T00:00:00.000Z  1.5 s  ada  r2       it has ended with 3
    > GET /jobs/runs?limit=20
    $ jobs runs nightly --limit 5
    no runs yet
    > GET /jobs/nightly/runs?limit=5
    $ jobs runs 7
    run      7 of nightly
    state    failed (exit-code)
    started  2026-01-01T00:00:00.000Z by ada, due at 2026-01-01T00:00:00.000Z
    took     1.5 s
    exit     3
    release  r2
    why      it has ended with 3

    one
    …two
    > GET /jobs/runs/7`],
  'what becomes of a job': [{ '/jobs/a%2Fb/pause': { ...JOB, name: 'a/b' }, '/jobs/nightly/resume': JOB,
    '/jobs/nightly/acknowledge': JOB, '/jobs/runs/7/end': RUN, '/jobs/nightly/runs': RUN }, `
    $ jobs pause a/b
    a/b is paused
    > POST /jobs/a%2Fb/pause
    $ jobs resume nightly
    nightly is resumed; it runs next in 2 h 05 min
    > POST /jobs/nightly/resume
    $ jobs acknowledge nightly
    the failure of nightly is acknowledged
    > POST /jobs/nightly/acknowledge
    $ jobs end 7
    run 7 is told to end
    > POST /jobs/runs/7/end
    $ jobs run nightly
    run 7 of nightly has started in release r2
    > POST /jobs/nightly/runs`],
  'crash groups, and one with its newest crash': [{ '/crashes?limit=100&state=open&since=24h': { items: [GROUP] },
    '/crashes/12': GROUP }, `
    $ crashes --state open --since 24h
    ID  STATE            COUNT  LAST SEEN                 RELEASE  CAUSE  WHAT                            WHERE
    12  open (returned)      3  2026-01-01T00:00:00.000Z  r2       crash  TypeError: x is not a function  shop.js:7
    > GET /crashes?limit=100&state=open&since=24h
    $ crashes 12
    group     12, open (returned)
    what      TypeError: x is not a function
    where     shop.js:7
    cause     crash (exception)
    seen      3 times, first 2026-01-01T00:00:00.000Z, last 2026-01-01T00:00:00.000Z
    releases  r1 (1), r2 (2)

    newest: 2026-01-01T00:00:00.000Z, worker 5 (slot 1), up 1 min 01 s, SIGABRT
      TypeError: x is not a function
          at shop.js:7

    caused by Error: no db
          at db.js:1

    requests in flight
      GET /cart for 20 ms

    last lines of stderr
      bye
    > GET /crashes/12`],
  'routes, beside the figures of another release': [{
    '/routes?since=15m': { items: [ROUTE, { ...ROUTE, route: 'GET /', p99Ms: 90, requests: 4 }], compare: null },
    '/routes?release=r2&compare=r1': { items: [{ ...ROUTE, before: ROUTE }], compare: 'r1' }
  }, `
    $ routes --since 15m --sort p99
    REQUESTS  ERRORS  ERROR RATE   P50    P99  ROUTE
           4       1       25.0%  2 ms  90 ms  GET /
          40       1        2.5%  2 ms   8 ms  GET /cart
    > GET /routes?since=15m
    $ routes --release r2 --compare r1
    REQUESTS  ERRORS  ERROR RATE   P50   P99  P99 OF r1  ERROR RATE OF r1  ROUTE
          40       1        2.5%  2 ms  8 ms       8 ms              2.5%  GET /cart
    > GET /routes?release=r2&compare=r1
    $ routes --sort size
    !! --sort: expected one of requests, errors, p50, p99, received "size"`],
  'alerts with their deliveries': [{ '/alerts': { items: [ALERT] } }, `
    $ alerts
    ALERT  KIND  NAME  STATE   WAITING  TO                                                   EVENTS
    3      mail  ops   paused        1  a@example.com, b@example.com by smtp.example.com:25  problems of shop

    ALERT  DELIVERY  TIME                      EVENT          STATE    TRIES  STATUS   TOOK  ERROR
    3             1  2026-01-01T00:00:00.000Z  worker.exited  pending      2     451  12 ms  try later, next try in 2 h 05 min
    > GET /alerts`],
  'the busiest functions, and what has changed': [{ '/profiles/functions?since=10m': PROFILE,
    '/profiles/changes?release=r2&beforeRelease=r1': { before: { slices: 1 }, after: { slices: 1 },
      functions: [{ function: 'total', place: 'shop.js', beforePercent: 1, afterPercent: 20 }] },
    '/profiles/functions': { ...PROFILE, isOn: false, slices: 0 } }, `
    $ profile --since 10m
    2 profiles of 5 s, from 2026-01-01T00:00:00.000Z to 2026-01-01T00:00:00.000Z: busy for 800 ms, idle for 9.2 s

     SELF  TOTAL  FUNCTION   WHERE
    50.0%  75.0%  total      shop.js:9
     1.0%   1.0%  (program)  -
    > GET /profiles/functions?since=10m
    $ profile --release r2 --before-release r1
    BEFORE  AFTER  FUNCTION  WHERE
      1.0%  20.0%  total     shop.js
    > GET /profiles/changes?release=r2&beforeRelease=r1
    $ profile
    continuous profiling is off: clusterdeck config set diagnostics.profiling=on
    > GET /profiles/functions`]
}

for (const [title, [answers, transcript]] of Object.entries(LISTS)) {
  test(`a master is asked for, and tells: ${title}`, async (t) => {
    const asked: string[] = []
    const adminUrl = await serveMaster(t, ({ method, url }, res) => {
      const path = String(url).replace('/api/v1', '')
      asked.push(`${method} ${path}`)
      answerJson(res, 200, answers[path])
    })
    await play(transcript, deckFolder({ adminUrl }), () => asked.splice(0))
  })
}
