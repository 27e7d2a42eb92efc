import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { appendFileSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { checkedDuration } from '../../../server/cli/usage.ts'
import { formatTable } from '../../../server/cli/output.ts'
import { runCommandLine } from '../../../server/command-line.ts'
import { TOKEN, type Admin } from '../../support/admin.ts'
import { answerJson, deckFolder, openDeck, serveMaster } from '../../support/deck-folder.ts'
import { fake } from '../../support/fake.ts'

/** What somebody types in the data folder of a deck of two workers, and what comes of it. */
const TRANSCRIPTS: Record<string, string> = { 'status prints the cluster and its workers': `
    $ status
    health   All 2 workers are ready
    state    running
    master   pid 4000, up …, clusterdeck 0.1.0, node v…
    app      /srv/app/app.js
             http://localhost:3000
    …
    workers  2 of 2 ready
    …
    SLOT  WORKER   PID  STATE  RELEASE  UPTIME …RESTARTS   MEMORY    CPU
       1       1  4001  ready  r1 …
       2       2  4002  ready  r1 …`, 'send hands a message to all workers or to one, and names those that get it': `
    $ send reload
    sent to workers 1, 2
    > message {"type":"reload"}
    $ send reload {"keys":["a",null]} --worker 2
    sent to worker 2
    > message {"type":"reload","data":{"keys":["a",null]},"worker":2}
    $ send reload null
    sent to workers 1, 2
    > message {"type":"reload","data":null}`,
  'send refuses what is no JSON and shows where, a reserved type, and a worker that is none': `
    $ send reload {"keys":[1,],"more":"and-more-and-more-and-more"}
    !! send: expected JSON, received …Unexpected token …]…
    $ send reload {now:true}
    !! send: expected JSON, received "now:true}" at position 1: …
    $ send reload {"now":
    !! send: expected JSON, received "{\\"now\\":": Unexpected end of JSON input
    $ send reload word
    !! send: expected JSON, received "word": …"word" is not valid JSON
    $ send shutdown
    !! type: expected … not a reserved one: shutdown, NODE_…, received "shutdown"
    $ send reload --worker first
    !! --worker: expected the id of a worker, received "first"
    $ send reload --worker 9
    ! clusterdeck: No worker 9 is alive
    = 1`, 'config set says how to ask another host itself, which lets nobody else change its settings': `
    $ config set drain.deadlineMs=1000 --member web-2
    ! clusterdeck: settings, alerts and files of web-2 are changed there alone: name it by --url, with a token of its own, in place of --member
    = 3`, 'restart starts a rollout by the command line and returns; another one is a conflict that names it': `
    $ restart --note because
    rollout 1 (restart) rolling: 0 of 2 workers replaced
    > rollout {"kind":"restart","note":"because","client":"cli"}
    $ deploy
    ! clusterdeck: rollout 1 (restart) is running
    = 4`, 'deploy says how it is to be done only where a flag does': `
    $ deploy --path v2 --surge 50% --min-ready 5s --canary 1 --canary-time 2m --on-failure hold
    rollout 1 (deploy) rolling: 0 of 2 workers replaced
    > rollout {"kind":"deploy","path":"v2","strategy":{"surge":"50%","minReadyMs":5000,"canary":{"workers":1,"durationMs":120000},"onFailure":"hold"},"client":"cli"}`,
  'deploy says what is wrong with a flag': `
    $ deploy --surge 0
    !! strategy.surge: expected an integer from 1 to 256 or a share such as "25%", received 0
    $ deploy --canary many
    !! strategy.canary.workers: expected …received "many"
    $ deploy --min-ready long
    !! --min-ready: expected a duration such as 500ms, 30s, 5m or 1h, received "long"
    $ deploy --on-failure cry
    !! strategy.onFailure: expected …received "cry"`,
  'releases lists what can be gone back to, and tells one of them': `
    $ releases
    RELEASE  OUTCOME    IN USE  CREATED                   BY      VERSION  COMMIT                MODE  NOTE
    r1       succeeded  yes     2026-01-01T00:00:00.000Z  system  1.2.3    0123456789 (changed)  live  -
    $ releases r1
    release    r1 (in use)
    …
    commit     0123456789abcdef0123456789abcdef01234567 on main (changed)
    …
    changed    since r0: package.json, variables LEVEL
    $ releases r1 --json
    {
      "id": "r1",
    …
    $ releases 1
    !! releases: expected an id such as r12, received "1"
    $ releases r9
    ! clusterdeck: Release r9 does not exist
    = 1`, '--timeout ends the wait with 124': `
    $ deploy --wait --timeout 300ms
    …
    ! clusterdeck: not done within 300 ms (--timeout)
    …
    = 124`, 'scale refuses what is no count': `
    $ scale 0
    !! scale: expected an integer from 1 to 256, received "0"
    $ scale 257
    !! scale: expected an integer from 1 to 256, received "257"
    $ scale 1.5
    !! scale: expected an integer from 1 to 256, received "1.5"
    $ scale 1e2
    !! scale: expected an integer from 1 to 256, received "1e2"`, 'config prints where each value comes from': `
    $ config
    OPTION …VALUE …CHANGES …SOURCE …FROM
    …
    dispatch … shared …at a start …default … -
    …
    alerts … (hidden) … now … default … -
    …`, 'config set changes all that is named': `
    $ config set drain.deadlineMs=10000 rollout.surge=25%
    OPTION            VALUE  CHANGES  SOURCE    FROM
    drain.deadlineMs  10000  now      operator  -
    rollout.surge     25%    now      operator  -
    > configure {"wanted":{"drain.deadlineMs":10000,"rollout.surge":"25%"}}
    $ config set drain.deadlineMs=5min
    …
    drain.deadlineMs  300000  now      operator  -
    …
    $ config --json
    …
          "name": "rollout.surge",
          "value": "25%",
    …`, 'config set changes nothing where anything is wrong': `
    $ config get
    !! config: expected "set" or nothing, received "get"
    $ config set
    !! config set: expected a change such as drain.deadlineMs=10000, received nothing
    $ config set drain.deadlineMs
    !! config set: expected a change such as drain.deadlineMs=10000, received "drain.deadlineMs"
    $ config set drain.deadlineMs=1 drain.deadlineMs=2
    !! config set: expected drain.deadlineMs once, received it twice
    $ config set drain.idleGraceMs=1 drain.deadlineMs=soon
    !! drain.deadlineMs: expected an integer from 0 to 2147483647, or one with its unit such as "30 s", received "soon"
    $ config set dispatch=sticky
    ! clusterdeck: dispatch can only be set at a start
    = 1`, 'logs says what is wrong with its options, and where there are none': `
    $ logs --lines 0
    !! --lines: expected an integer from 1 to 1000, received "0"
    $ logs --stream stdin
    !! stream: expected "stdout" or "stderr", received "stdin"
    $ logs --slot 9
    ! clusterdeck: Slot 9 has no logs
    = 1
    $ logs -f --slot 9
    ! clusterdeck: Slot 9 has no logs
    = 1
    $ logs --q one -f
    !! --q: expected without --follow, received both
    $ logs --q four
    ! no line matches`, 'kill and diagnose are of one worker': `
    $ kill 2
    worker 2 killed; its replacement starts
    > kill-worker {"worker":2}
    $ kill two
    !! kill: expected the id of a worker, received "two"
    $ diagnose 9 --kind report
    ! clusterdeck: No worker 9 is alive
    = 1`, 'crashes and jobs say so where there are none, and what names one': `
    $ crashes
    no crashes
    $ crashes r1
    !! crashes: expected the id of a group, received "r1"
    $ jobs end nightly
    !! jobs end: expected the id of a run, received "nightly"
    $ jobs run
    !! jobs run: expected a job, received none
    $ jobs ls more
    !! jobs ls: expected nothing more, received "more"`,
  'tokens are created and revoked, and are lists of who may do what': `
    $ tokens create ci --role operator --ttl 30d
    …
    ! token 1 of ci (operator), valid until …; copy it now, it is not shown again
    $ tokens
    ID  NAME  ROLE      CREATED …BY …WITH         EXPIRES …LAST USED
    1   ci    operator  …  admin.token  …  never
    $ tokens revoke 1
    token 1 of ci is revoked
    $ tokens create
    !! tokens create: expected a name, received none
    $ tokens create ci
    !! --role: expected viewer, operator or admin, received none
    $ tokens revoke x
    !! tokens revoke: expected the id of a token, received "x"
    $ tokens remove 1
    !! tokens: expected one of create, revoke, received "remove" (did you mean "revoke"?)`,
  'alerts test says what was delivered; an action that is none, or lacks a word, is refused': `
    $ alerts test file-2
    alert file-2: alert.tested delivered in … (204)
    $ alerts test mine
    !! alerts test: expected the id of an alert such as 3 or file-1, received "mine"
    $ alerts retry file-1
    !! alerts retry: expected the id of a delivery, received nothing
    $ alerts change file-1
    !! alerts change: expected a receiver or an option such as --events, received none
    $ alerts remove file-1
    !! alerts: expected one of add, change, pause, resume, delete, test, retry, received "remove"` }

for (const [title, transcript] of Object.entries(TRANSCRIPTS)) {
  test(title, async (t) => {
    const { says } = await openDeck(t)
    await says(transcript)
  })
}

/** Ends the running rollout once somebody has asked to wait for it. */
function endRollout (deck: Admin['deck'], state: 'succeeded' | 'failed', reason: string | null = null) {
  const rollout = deck.snapshot().rollout!
  const finishedAt = new Date(Date.parse(rollout.startedAt) + 1234).toISOString()
  const steps = rollout.steps.map((step) => ({ ...step, state: 'done', newWorker: Number(step.oldWorker) + 2,
    startedAt: rollout.startedAt, finishedAt })
  )
  const ended = { ...rollout, state, reason, done: true, finishedAt,
    ...(state === 'succeeded' ? { steps, progress: { total: 2, replaced: 2 } } : {}) }
  deck.set({ rollout: null })
  deck.events.publish({ type: `rollout.${state}`, rollout: rollout.id, detail: ended })
}

/** `react`: to the start of each rollout */
function onRollout (deck: Admin['deck'], react: () => void) {
  deck.events.subscribe(({ type }) => {
    if (type === 'rollout.started') react()
  })
}

test('deploy --wait ends with the rollout: progress on stderr, the result on stdout', async (t) => {
  const { says, deck } = await openDeck(t)
  const verdicts = [{ passed: null, message: 'too few requests' }]
  onRollout(deck, () => setImmediate(endRollout, deck, 'succeeded'))
  onRollout(deck, () => deck.set({ rollout: { ...deck.snapshot().rollout, verdicts } }))
  await says(`
    $ deploy --wait
    rollout 1 (deploy) succeeded in 1.2 s: 2 of 2 workers replaced
    ! rollout 1 (deploy) started
    ! slot 1: worker 1 replaced by worker 3 (1.2 s)
    ! slot 2: worker 2 replaced by worker 4 (1.2 s)
    ! not judged: too few requests
    > rollout {"kind":"deploy","client":"cli"}`)
})

test('deploy --wait-for-turn begins once the rollout that runs has ended; without it, it is refused', async (t) => {
  const { says, deck } = await openDeck(t)
  await says(`
    $ restart
    rollout 1 (restart) rolling: 0 of 2 workers replaced
    > rollout {"kind":"restart","client":"cli"}
    $ deploy
    ! clusterdeck: rollout 1 (restart) is running
    = 4`)
  // Long after whoever waits has asked for what.
  setTimeout(endRollout, 1500, deck, 'succeeded')
  await says(`
    $ deploy --wait-for-turn
    rollout 1 (deploy) rolling: 0 of 2 workers replaced
    ! waits for the end of rollout 1 (restart)
    > rollout {"kind":"deploy","client":"cli"}`)
})

test('deploy --wait fails with the reason when the rollout fails', async (t) => {
  const { says, deck } = await openDeck(t)
  onRollout(deck, () => setImmediate(endRollout, deck, 'failed', 'worker 3 (slot 1) was not ready within 30 s'))
  await says(`
    $ deploy --wait --json
    {
    …
      "state": "failed",
    …
    ! rollout 1 (deploy) started
    ! clusterdeck: rollout 1 (deploy) failed: worker 3 (slot 1) was not ready within 30 s
    > rollout {"kind":"deploy","client":"cli"}
    = 1`)
})

test('deploy --wait does not wait for a person: a rollout that is held is a failure that says what to do', async (t) => {
  const { says, deck } = await openDeck(t)
  onRollout(deck,
    () => deck.set({ rollout: { ...deck.snapshot().rollout, state: 'held', reason: 'worker 3 (slot 1) crashed' } }))
  await says(`
    $ deploy --wait
    ! rollout 1 (deploy) started
    ! clusterdeck: rollout 1 (deploy) is held: worker 3 (slot 1) crashed; continue with "clusterdeck retry" or "resume", or roll back with "abort"
    > rollout {"kind":"deploy","client":"cli"}
    = 1`)
})

test('abort --wait succeeds once the rollout has gone back', async (t) => {
  for (const [state, expected] of [['rolled-back', 0], ['failed', 0], ['succeeded', 1]] as const) {
    const rollout = { id: 7, kind: 'deploy', state, reason: 'aborted by cli', done: true, startedAt: null,
      finishedAt: null, progress: { total: 2, replaced: 0 }, steps: [] }
    const adminUrl = await serveMaster(t, (req, res) =>
      answerJson(res, 200,
        req.method === 'POST' ? { ...rollout, state: 'rolling-back', done: false } : { rollout, ...rollout }))
    assert.equal((await deckFolder({ adminUrl })('abort --wait')).code, expected, state)
  }
})

test('status shows a slot that waits out a backoff', async (t) => {
  const { says, deck } = await openDeck(t)
  const [first] = deck.snapshot().workers
  deck.set({ readyWorkers: 1,
    workers: [first, { ...first, slot: 2, id: null, pid: null, state: 'backoff', crashLooping: true, vitals: null }] })
  await says(`
    $ status
    …
       2       - …-  backoff (crash-looping)  r1 …-  …`)
})

test('status says how soon all workers restart next', async (t) => {
  const { says, deck } = await openDeck(t)
  deck.set({ nextRestartAt: new Date(Date.now() + (125 * 60 + 30) * 1000).toISOString() })
  await says(`
    $ status
    …
    restart  in 2 h 05 min (restart.cron)
    …`)
})

test('the status begins with what nobody has acknowledged, and with who serves', async (t) => {
  const { says, deck } = await openDeck(t)
  const { id, at } = deck.events.publish({ type: 'keeper.lost', message: 'the keeper \u001b[31mis gone' })
  await says(`
    $ status
    notice   ${id}: The keeper …is gone (${at})
    health   All 2 workers are ready; the keeper is gone
    state    running
    …
    $ acknowledge ${id}
    notice ${id} acknowledged: The keeper …
    $ status
    health   All 2 workers are ready
    …
    $ acknowledge x
    !! acknowledge: expected the id of a notice, received "x"`)
})

test('--json prints what the API says, and nothing else', async (t) => {
  const { cli, deck } = await openDeck(t)
  const { stdout } = await cli('status --json')
  assert.deepEqual(JSON.parse(stdout), deck.status())
  assert.deepEqual(JSON.parse((await cli('send reload null --json')).stdout), { workers: [1, 2] })
})

test('where no worker is ready, send fails', async (t) => {
  const { says, deck } = await openDeck(t)
  deck.send = () => ({ workers: [] })
  await says(`
    $ send reload
    ! clusterdeck: send: no worker is ready
    = 1`)
})

test('scale --wait returns once so many workers are ready', async (t) => {
  const { says, deck } = await openDeck(t)
  const [first] = deck.snapshot().workers
  deck.events.subscribe(({ type }) => {
    if (type === 'scale.changed') setImmediate(() => deck.set({ readyWorkers: 1, workers: [first] }))
  })
  await says(`
    $ scale 1 --wait
    1 worker is ready
    …
    > scale {"workers":1}`)
})

test('scale --wait asks again until no worker too many is left', async (t) => {
  const answers = [{ desiredWorkers: 2 }, { readyWorkers: 1, workers: [1, 2] }, { readyWorkers: 2, workers: [1, 2, 3] },
    { readyWorkers: 2, workers: [1, 2] }]
  let asked = 0
  const adminUrl = await serveMaster(t, (_req, res) => answerJson(res, 200, answers[asked++]))
  assert.deepEqual(await deckFolder({ adminUrl })('scale 2 --wait'), { code: 0, stdout: '2 workers are ready\n',
    stderr: '1 of 2 workers ready, 2 alive\n2 of 2 workers ready, 3 alive\n2 of 2 workers ready, 2 alive\n' })
  assert.equal(asked, 4)
})

test('an old worker is shown with what it is kept for and until when, is not waited for by a scale, and is told to close its connections', async (t) => {
  const { says, deck } = await openDeck(t)
  const { workers: [first, second] } = deck.snapshot()
  const holds = { requests: 0, transfers: 0, webSockets: 120, eventStreams: 3, connections: 0 }
  deck.set({
    workers: [first, { ...first, id: 9, state: 'draining', holds,
      keptUntil: new Date(Date.now() + 3_600_000).toISOString() }, second]
  })
  await says(`
    $ status
    …
       1       9 …draining (120 WebSockets and 3 event streams, closed in …) …
    …
    $ scale 2 --wait --timeout 20s
    2 workers are ready
    ! 2 of 2 workers ready, 2 alive
    > scale {"workers":2}
    $ end-connections 9
    worker 9 closes 120 WebSockets and 3 event streams, and ends then
    > end-connections {"worker":9}`)
})

test('history prints events that match, newest first', async (t) => {
  const { says, deck } = await openDeck(t)
  for (let slot = 1; slot <= 3; slot++)
    deck.events.publish({ type: 'worker.exited', cause: 'crash', slot, worker: slot, code: 1,
      message: `worker ${slot} died\u001b[2J\nof old age` })
  deck.events.publish({ type: 'worker.ready', slot: 1, worker: 4 })
  await says(`
    $ history --type worker.exited --limit 2
    ID  TIME …TYPE           SLOT  WORKER  RELEASE  WHAT
     3  …Z  worker.exited     3       3  …worker 3 died of old age (crash, code 1)
     2  …Z  worker.exited     2       2  …worker 2 died of old age (crash, code 1)
    $ history --json --limit 1
    {
      "items": [
        {
          "id": 4,
    …
    $ history --slot 9
    no events
    $ history --slot first
    !! slot: expected …received "first"
    $ history --csv --json
    !! --csv: expected without --json, received both
    $ history --csv --slot 9x
    !! slot: expected …`)
})

test('history --csv prints all that match as the API exports it, without formulas; a limit holds', async (t) => {
  const { cli, deck, api } = await openDeck(t)
  for (let slot = 1; slot <= 300; slot++)
    deck.events.publish({ type: 'worker.ready', slot, worker: slot, message: '=cmd,"x"\u001b[2J' })
  deck.events.publish({ type: 'worker.exited', slot: 1, worker: 1 })
  const { code, stdout, stderr } = await cli('history --csv --type worker.ready')
  assert.deepEqual([code, stderr], [0, ''])
  assert.equal(stdout, (await api('get', '/api/v1/events?type=worker.ready').set('Accept', 'text/csv')).text)
  assert.equal(stdout.split('\r\n').length, 302)
  assert.ok(stdout.includes(',"\'=cmd,""x""\u001b[2J",'))
  assert.equal((await cli('history --csv --limit 2')).stdout.split('\r\n').length, 4)
})

/** What a terminal is shown of a command. */
async function shownBy (words: string[], url: string) {
  let shown = ''
  const terminal = fake<NodeJS.WriteStream>({ isTTY: true, write: (text: string) => {
    shown += text
  } })
  await runCommandLine(words, { stdout: terminal, stderr: terminal,
    env: { CLUSTERDECK_URL: url, CLUSTERDECK_TOKEN: TOKEN }, cwd: tmpdir() })
  return shown
}

test('history --csv moves no cursor of a terminal', async (t) => {
  const { deck, url } = await openDeck(t)
  deck.events.publish({ type: 'worker.exited', message: 'a\u001b[2J\r\nb\u0007' })
  assert.match(await shownBy(['history', '--csv'], url), /^id,at,.*\n1,.*,"a\nb ",\n$/)
})

test('a CSV that breaks off is a failure', async (t) => {
  const adminUrl = await serveMaster(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/csv' }).write('id,at\r\n1,', () => {
      res.socket?.end()
    })
  })
  assert.deepEqual(await deckFolder({ adminUrl })('history --csv'), { code: 5, stdout: 'id,at\r\n1,',
    stderr: `clusterdeck: ${adminUrl} closed the connection in the middle of its answer\n` })
})

test('history --csv is read no faster than it is written', async (t) => {
  const { deck, url } = await openDeck(t)
  for (let slot = 1; slot <= 400; slot++)
    deck.events.publish({ type: 'worker.ready', slot, worker: slot, message: 'x'.repeat(1000) })
  let [isFull, most] = [false, 0]
  const stdout = Object.assign(new EventEmitter(), { isTTY: false, write (text: string) {
    assert.ok(!isFull, 'written before it was drained')
    isFull = true
    most = Math.max(most, text.length)
    setImmediate(() => {
      isFull = false
      stdout.emit('drain')
    })
    return false
  } })
  const terminal = stdout as unknown as NodeJS.WriteStream
  const code = await runCommandLine(['history', '--csv'], { stdout: terminal, stderr: terminal,
    env: { CLUSTERDECK_URL: url, CLUSTERDECK_TOKEN: TOKEN }, cwd: tmpdir() })
  assert.equal(code, 0)
  assert.ok(most < 200_000)
})

test('history follows the pages of a search that finds little', async (t) => {
  const pages = [{ items: [], next: 'a' }, { items: [], next: 'b' }, {
    items: [{ id: 1, at: 'x', type: 'worker.ready', message: 'found' }],
    next: null
  }]
  const asked: string[] = []
  const adminUrl = await serveMaster(t, (req, res) => answerJson(res, 200, pages[asked.push(String(req.url)) - 1]))
  assert.match((await deckFolder({ adminUrl })('history --q found --limit 5')).stdout, /found/)
  assert.deepEqual(asked, ['', '&cursor=a', '&cursor=b'].map((cursor) => `/api/v1/events?limit=5${cursor}&q=found`))
})

test('open prints a sign-in link that works', async (t) => {
  const { cli, url } = await openDeck(t)
  const { code, stdout } = await cli('open')
  assert.equal(code, 0)
  assert.ok(stdout.startsWith(`${url}/sign-in?code=`))
  const visit = await fetch(stdout.trim(), { redirect: 'manual' })
  assert.match(String(visit.headers.get('set-cookie')), /^clusterdeck_\d+=/)
})

test('logs prints the last lines, by text and by time; on a terminal nothing in them moves its cursor', async (t) => {
  const { cli, says, deck, url } = await openDeck(t)
  const file = join(deck.logs.folder, 'slot-2.stderr.log')
  appendFileSync(file, 'one\n\u001b[2J\u001b]0;title\u0007two\rthree\n')
  assert.equal((await cli('logs --lines 1')).stdout, '2 stderr | \u001b[2J\u001b]0;title\u0007two\rthree\n')
  assert.equal(await shownBy(['logs'], url), '2 stderr | one\n2 stderr | two three\n')
  appendFileSync(file, 'four\nfive\n')
  await says(`
    $ logs --slot 2 --stream stderr --q one
    one
    $ logs --json --slot 2 --lines 2
    {"slot":2,"stream":"stderr","text":"four","place":"2e28"}
    {"slot":2,"stream":"stderr","text":"five","place":"2e33"}
    $ logs --q FOUR
    2 stderr | four
    $ logs --since 2001-01-01 --lines 2
    2 stderr | four
    2 stderr | five`)
})

test('logs --timestamps says when each line was written, as the master has seen it', async (t) => {
  const { says, deck } = await openDeck(t)
  const file = join(deck.logs.folder, 'slot-2.stderr.log')
  appendFileSync(file, 'one\n')
  utimesSync(file, 1e9, 1e9)
  await says(`
    $ logs --timestamps
    2001-09-09T01:46:40.000Z 2 stderr | one
    $ logs --timestamps --json
    {"arrivedAt":"2001-09-09T01:46:40.000Z","slot":2,"stream":"stderr","text":"one","place":"2e0"}`)
})

test('logs --follow --timestamps says when each line has arrived, and of those that were there before nothing', async (t) => {
  const line = (text: string) => `data: ${JSON.stringify({ slot: 1, stream: 'stdout', text })}\n`
  // It tells two lines that were there, one that comes, and then asks for a token.
  const cli = deckFolder({ adminUrl: await serveMaster(t, (req, res) => {
    if (req.headers['last-event-id'] === '1o3')
      return answerJson(res, 401, { code: 'unauthenticated', detail: 'enough' }, 'application/problem+json')
    res.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' }).end(
      `retry: 3000\n\n${line('one')}\nid: 1o2\n${line('two')}\nid: 1o3\n${line('three')}\n`
    )
  }) })
  const before = new Date().toISOString()
  const { code, stdout } = await cli('logs --follow --timestamps')
  assert.equal(code, 3)
  const lines = stdout.split('\n')
  assert.deepEqual(lines.slice(0, 2), ['one', 'two'].map((text) => `-                        1 stdout | ${text}`))
  const [, time] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) 1 stdout \| three$/.exec(lines[2]) ?? []
  assert.ok(before <= time && time <= new Date().toISOString(), time)

  const entries = (await cli('logs -f --timestamps --json')).stdout.trim().split('\n').map((each) => JSON.parse(each))
  assert.deepEqual(entries.map(({ arrivedAt, ...entry }) => [arrivedAt === null, entry]),
    ['one', 'two', 'three'].map((text) => [text !== 'three', { slot: 1, stream: 'stdout', text }]))
  assert.deepEqual(Object.keys(JSON.parse((await cli('logs -f --json')).stdout.split('\n')[0])), ['slot', 'stream',
    'text'])
})

test('a duration that is none, or too long for a timer, is a wrong usage', () => {
  assert.equal(checkedDuration('--timeout', '1.5m'), 90_000)
  for (const text of ['', '30', '0s', '30d'])
    assert.throws(() => checkedDuration('--timeout', text), { code: 'usage', exitCode: 2,
      message: /^--timeout: expected a duration such as / }, text)
})

test('tables line up', () => {
  assert.equal(formatTable(['A', 'N', 'B'], [['long one', 5, null], ['x', 12345, 'y']], { right: [1] }),
    'A             N  B\nlong one      5  -\nx         12345  y')
})
