import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { appendFileSync, chmodSync, chownSync, mkdirSync, existsSync, mkdtempSync, rmSync, symlinkSync, utimesSync,
  writeFileSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { checkedDuration } from '../../../server/cli/usage.ts'
import { commandsOf } from '../../../server/cli/help.ts'
import { formatTable } from '../../../server/cli/output.ts'
import { createProgram } from '../../../server/cli/program.ts'
import { runCommandLine } from '../../../server/command-line.ts'
import { OWNER } from '../../../server/config/actor-names.ts'
import { fallbackFolders } from '../../../server/system/fallback-folder.ts'
import { startAdmin, TOKEN, type Admin } from '../../support/admin.ts'
import { CLI } from '../../support/deck.ts'
import { wordsOf } from '../../support/examples.ts'
import { tempFolder } from '../../support/folder.ts'
import { ownVariables } from '../../support/place.ts'
import { lacksStrangers, OTHER_UID, startStranger } from '../../support/stranger.ts'
import { until } from '../../support/until.ts'
import { fake } from '../../support/fake.ts'
import type { TestContext } from 'node:test'
import type { AddressInfo } from 'node:net'

/** A data folder, and command lines that are run in it. `master`: what the folder says is running. */
function dataFolder (t: TestContext,
  { adminUrl, token = TOKEN, pid = process.pid }: { adminUrl?: string, token?: string, pid?: number } = {})
{
  const cwd = mkdtempSync(join(tmpdir(), 'clusterdeck-cli-'))
  t.after(() => rmSync(cwd, { recursive: true }))
  if (adminUrl) {
    writeFileSync(join(cwd, 'master.json'), JSON.stringify({ pid, adminUrl, startedAt: '2026-01-01T00:00:00.000Z' }))
    writeFileSync(join(cwd, 'admin.token'), `${token}\n`)
  }
  /** `line`: words, separated by spaces; `folder`: where it is run */
  return async (line: string, env: Record<string, string> = {}, folder: string = cwd) => {
    const output = { stdout: '', stderr: '' }
    const stream = (name: 'stdout' | 'stderr') =>
      fake<NodeJS.WriteStream>({ isTTY: false, write: (text: string) => {
        output[name] += text
      } })
    const code = await runCommandLine(line.split(' ').filter(Boolean), { stdout: stream('stdout'),
      stderr: stream('stderr'), env: { ...ownVariables(), CLUSTERDECK_DATA_DIR: cwd, ...env }, cwd: folder })
    return { code, ...output }
  }
}

/** A real admin port over a deck without processes. */
async function setUp (t: TestContext) {
  const admin = await startAdmin(t)
  return { ...admin, cli: dataFolder(t, { adminUrl: admin.url }) }
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

test('status prints the cluster and its workers', async (t) => {
  const { cli } = await setUp(t)
  const { code, stdout, stderr } = await cli('status')
  assert.equal(code, 0)
  assert.equal(stderr, '')
  assert.match(stdout, /^state {4}running$/m)
  assert.match(stdout, /^app {6}\/srv\/app\/app\.js$/m)
  assert.match(stdout, /^ +http:\/\/localhost:3000$/m)
  assert.match(stdout, /2 of 2 ready/)
  assert.match(stdout, /^SLOT {2}WORKER {3}PID {2}STATE {2}RELEASE {2}UPTIME +.*MEMORY {2,}CPU$/m)
  assert.match(stdout, /^ {3}2 {7}2 {2}4002 {2}ready {2}r1 /m)
})

test('status shows a slot that waits out a backoff', async (t) => {
  const { cli, deck } = await setUp(t)
  const [first] = deck.snapshot().workers
  deck.set({ readyWorkers: 1,
    workers: [first, { ...first, slot: 2, id: null, pid: null, state: 'backoff', crashLooping: true, vitals: null }] })
  const { stdout } = await cli('status')
  assert.match(stdout, /^ {3}2 {7}- +- {2}backoff \(crash-looping\) {2}r1 +- /m)
})

test('send hands a message to all workers or to one, and names those that get it', async (t) => {
  const { cli, deck } = await setUp(t)
  assert.deepEqual(await cli('send reload'), { code: 0, stdout: 'sent to workers 1, 2\n', stderr: '' })
  assert.deepEqual(await cli('send reload {"keys":["a",null]} --worker 2'), { code: 0, stdout: 'sent to worker 2\n',
    stderr: '' })
  assert.deepEqual(JSON.parse((await cli('send reload null --json')).stdout), { workers: [1, 2] })
  assert.deepEqual(deck.dispatched.map(({ order }) => order), [{ type: 'reload', actor: OWNER }, { type: 'reload',
    data: { keys: ['a', null] }, worker: 2, actor: OWNER }, { type: 'reload', data: null, actor: OWNER }])
  deck.send = () => ({ workers: [] })
  assert.deepEqual(await cli('send reload'), { code: 1, stdout: '', stderr: 'clusterdeck: send: no worker is ready\n' })
})

test('send refuses what is no JSON and shows where, a reserved type, and a worker that is none', async (t) => {
  const { cli, deck } = await setUp(t)
  for (const [line, message] of [['send reload {"keys":[1,],"more":"and-more-and-more-and-more"}',
    /^clusterdeck: send: expected JSON, received .*Unexpected token '?\]/], ['send reload {now:true}',
    /^clusterdeck: send: expected JSON, received "now:true}" at position 1: /], ['send reload {"now":',
    /^clusterdeck: send: expected JSON, received "{\\"now\\":": Unexpected end of JSON input/], ['send reload word',
    /^clusterdeck: send: expected JSON, received "word": .*"word" is not valid JSON/], ['send shutdown',
    /^clusterdeck: type: expected .* not a reserved one: shutdown, NODE_…, received "shutdown"/], [
    'send reload --worker first',
    /^clusterdeck: --worker: expected the id of a worker, received "first"/
  ]] as [string, RegExp][]) {
    const { code, stdout, stderr } = await cli(line)
    assert.deepEqual([code, stdout], [2, ''], line)
    assert.match(stderr, message)
  }
  assert.deepEqual(deck.dispatched, [])
  assert.deepEqual(await cli('send reload --worker 9'), { code: 1, stdout: '',
    stderr: 'clusterdeck: No worker 9 is alive\n' })
})

test('the status begins with what nobody has acknowledged, and with who serves', async (t) => {
  const { cli, deck } = await setUp(t)
  const { id, at } = deck.events.publish({ type: 'keeper.lost', message: 'the keeper \u001b[31mis gone' })
  assert.match((await cli('status')).stdout,
    new RegExp(
      `^notice   ${id}: The keeper .{0,8}is gone \\(${at}\\)\nhealth   All 2 workers are ready; the keeper is gone\nstate    running\n`
    ))
  assert.match((await cli(`acknowledge ${id}`)).stdout, new RegExp(`^notice ${id} acknowledged: The keeper`))
  assert.match((await cli('status')).stdout, /^health {3}All 2 workers are ready\n/)
  assert.deepEqual(await cli('acknowledge x'), { code: 2, stdout: '',
    stderr: 'clusterdeck: acknowledge: expected the id of a notice, received "x"\n' })
})

test('--json prints what the API says, and nothing else', async (t) => {
  const { cli, deck } = await setUp(t)
  const { stdout } = await cli('status --json')
  assert.deepEqual(JSON.parse(stdout), deck.status())
})

test('restart starts a rollout by the command line and returns', async (t) => {
  const { cli, deck } = await setUp(t)
  const { code, stdout } = await cli('restart --note because')
  assert.equal(code, 0)
  assert.deepEqual(deck.dispatched, [{ type: 'rollout', kind: 'restart', note: 'because', actor: OWNER,
    client: 'cli' }])
  assert.match(stdout, /^rollout 1 \(restart\) rolling: 0 of 2 workers replaced$/m)
})

test('deploy --wait ends with the rollout: progress on stderr, the result on stdout', async (t) => {
  const { cli, deck } = await setUp(t)
  deck.events.subscribe(({ type }) => {
    if (type === 'rollout.started') setImmediate(endRollout, deck, 'succeeded')
  })
  const verdicts = [{ passed: null, message: 'too few requests' }]
  deck.events.subscribe(({ type, rollout }) => {
    if (type === 'rollout.started') deck.set({ rollout: { ...deck.snapshot().rollout, id: Number(rollout), verdicts } })
  })
  const { code, stdout, stderr } = await cli('deploy --wait')
  assert.equal(code, 0)
  assert.equal(stdout, 'rollout 1 (deploy) succeeded in 1.2 s: 2 of 2 workers replaced\n')
  assert.equal(stderr,
    'rollout 1 (deploy) started\nslot 1: worker 1 replaced by worker 3 (1.2 s)\nslot 2: worker 2 replaced by worker 4 (1.2 s)\nnot judged: too few requests\n')
})

test('deploy --wait-for-turn begins once the rollout that runs has ended; without it, it is refused', async (t) => {
  const { cli, deck } = await setUp(t)
  deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'bob' })
  assert.match((await cli('deploy')).stderr, /^clusterdeck: .*rollout 1 \(restart\) is running/)
  // Long after whoever waits has asked for what.
  setTimeout(endRollout, 1500, deck, 'succeeded')
  const { code, stdout, stderr } = await cli('deploy --wait-for-turn')
  assert.deepEqual([code, stdout, stderr], [0, 'rollout 1 (deploy) rolling: 0 of 2 workers replaced\n',
    'waits for the end of rollout 1 (restart)\n'])
})

test('deploy --wait fails with the reason when the rollout fails', async (t) => {
  const { cli, deck } = await setUp(t)
  deck.events.subscribe(({ type }) => {
    if (type === 'rollout.started')
      setImmediate(endRollout, deck, 'failed', 'worker 3 (slot 1) was not ready within 30 s')
  })
  const { code, stdout, stderr } = await cli('deploy --wait --json')
  assert.equal(code, 1)
  assert.equal(JSON.parse(stdout).state, 'failed')
  assert.match(stderr, /^clusterdeck: rollout 1 \(deploy\) failed: worker 3 \(slot 1\) was not ready within 30 s$/m)
})

test('deploy --wait does not wait for a person: a rollout that is held is a failure that says what to do', async (t) => {
  const { cli, deck } = await setUp(t)
  deck.events.subscribe(({ type }) => {
    if (type === 'rollout.started')
      deck.set({ rollout: { ...deck.snapshot().rollout, state: 'held', reason: 'worker 3 (slot 1) crashed' } })
  })
  const { code, stderr } = await cli('deploy --wait')
  assert.equal(code, 1)
  assert.match(stderr,
    /^clusterdeck: rollout 1 \(deploy\) is held: worker 3 \(slot 1\) crashed; continue with "clusterdeck retry"/m)
})

test('abort --wait succeeds once the rollout has gone back', async (t) => {
  for (const [state, expected] of [['rolled-back', 0], ['failed', 0], ['succeeded', 1]] as [string, number][]) {
    const rollout = { id: 7, kind: 'deploy', state, reason: 'aborted by cli', done: true, startedAt: null,
      finishedAt: null, progress: { total: 2, replaced: 0 }, steps: [] }
    const url = await serve(t, (req, res) =>
      json(res, 200,
        req.method === 'POST' ? { ...rollout, state: 'rolling-back', done: false } : { rollout, ...rollout }))
    const { code } = await dataFolder(t, { adminUrl: url })('abort --wait')
    assert.equal(code, expected, state)
  }
})

test('deploy says how it is to be done only where a flag does, and what is wrong with one', async (t) => {
  const { cli, deck } = await setUp(t)
  await cli('deploy --path v2 --surge 50% --min-ready 5s --canary 1 --canary-time 2m --on-failure hold')
  const strategy = { surge: '50%', minReadyMs: 5000, canary: { workers: 1, durationMs: 120_000 }, onFailure: 'hold' }
  assert.deepEqual(deck.dispatched, [{ type: 'rollout', kind: 'deploy', path: 'v2', strategy, actor: OWNER,
    client: 'cli' }])
  for (const [flag, message] of [['--surge 0',
    /strategy\.surge: expected an integer from 1 to 256 or a share such as "25%", received 0/], ['--canary many',
    /strategy\.canary\.workers: expected .*received "many"/], ['--min-ready long', /--min-ready: expected a duration/],
    ['--on-failure cry', /strategy\.onFailure: expected .*received "cry"/]] as [string, RegExp][])
  {
    const { code, stderr } = await cli(`deploy ${flag}`)
    assert.equal(code, 2, flag)
    assert.match(stderr, message)
  }
  assert.equal(deck.dispatched.length, 1)
})

test('releases lists what can be gone back to, and tells one of them', async (t) => {
  const { cli } = await setUp(t)
  assert.equal((await cli('releases')).stdout,
    ['RELEASE  OUTCOME    IN USE  CREATED                   BY      VERSION  COMMIT                MODE  NOTE',
      'r1       succeeded  yes     2026-01-01T00:00:00.000Z  system  1.2.3    0123456789 (changed)  live  -\n'].join(
        '\n'
      ))
  const { stdout } = await cli('releases r1')
  assert.match(stdout, /^commit {5}0123456789abcdef0123456789abcdef01234567 on main \(changed\)$/m)
  assert.match(stdout, /^changed {4}since r0: package.json, variables LEVEL$/m)
  assert.equal(JSON.parse((await cli('releases r1 --json')).stdout).id, 'r1')
  assert.deepEqual([(await cli('releases 1')).code, (await cli('releases r9')).stderr], [2,
    'clusterdeck: Release r9 does not exist\n'])
})

test('a rollout while another one runs is a conflict that names it', async (t) => {
  const { cli } = await setUp(t)
  await cli('deploy')
  const { code, stdout, stderr } = await cli('restart')
  assert.deepEqual([code, stdout, stderr], [4, '', 'clusterdeck: rollout 1 (deploy) is running\n'])
})

test('--timeout ends the wait with 124', async (t) => {
  const { cli } = await setUp(t)
  const { code, stderr } = await cli('deploy --wait --timeout 300ms')
  assert.equal(code, 124)
  assert.match(stderr, /^clusterdeck: not done within 300 ms \(--timeout\)$/m)
  assert.equal((await cli('status', { CLUSTERDECK_TIMEOUT: 'soon' })).stderr,
    'clusterdeck: CLUSTERDECK_TIMEOUT: expected a duration such as 500ms, 30s, 5m or 1h, received "soon"\n')
})

test('scale --wait returns once so many workers are ready', async (t) => {
  const { cli, deck } = await setUp(t)
  const [first] = deck.snapshot().workers
  deck.events.subscribe(({ type }) => {
    if (type === 'scale.changed') setImmediate(() => deck.set({ readyWorkers: 1, workers: [first] }))
  })
  const { code, stdout } = await cli('scale 1 --wait')
  assert.deepEqual([code, stdout], [0, '1 worker is ready\n'])
  assert.deepEqual(deck.dispatched, [{ type: 'scale', workers: 1, actor: OWNER }])
})

test('scale --wait asks again until no worker too many is left', async (t) => {
  const answers = [{ desiredWorkers: 2 }, { readyWorkers: 1, workers: [1, 2] }, { readyWorkers: 2, workers: [1, 2, 3] },
    { readyWorkers: 2, workers: [1, 2] }]
  let asked = 0
  const url = await serve(t, (_req, res) => json(res, 200, answers[asked++]))
  const { code, stdout, stderr } = await dataFolder(t, { adminUrl: url })('scale 2 --wait')
  assert.deepEqual([code, stdout, asked], [0, '2 workers are ready\n', 4])
  assert.equal(stderr, '1 of 2 workers ready, 2 alive\n2 of 2 workers ready, 3 alive\n2 of 2 workers ready, 2 alive\n')
})

test('config prints where each value comes from, and config set changes all that is named or nothing', async (t) => {
  const { cli, deck } = await setUp(t)
  const { code, stdout } = await cli('config')
  assert.equal(code, 0)
  assert.match(stdout, /^OPTION +VALUE +CHANGES +SOURCE +FROM$/m)
  assert.match(stdout, /^dispatch +shared +at a start +default +-$/m)
  assert.match(stdout, /^alerts +\(hidden\) +now +default +-$/m)
  const set = await cli('config set drain.deadlineMs=10000 rollout.surge=25%')
  assert.deepEqual([set.code, set.stdout.split('\n').slice(1, 3).map((line) => line.split(/ +/))], [0, [[
    'drain.deadlineMs',
    '10000',
    'now',
    'operator',
    '-'
  ], ['rollout.surge', '25%', 'now', 'operator', '-']]])
  assert.deepEqual(deck.dispatched, [{ type: 'configure',
    wanted: { 'drain.deadlineMs': 10_000, 'rollout.surge': '25%' }, actor: OWNER }])
  assert.equal(
    JSON.parse((await cli('config --json')).stdout).items.find(({ name }: { name: string }) => name === 'rollout.surge')
      .value,
    '25%'
  )
  for (const [line, exitCode, text] of [['config get', 2, 'config: expected "set" or nothing, received "get"'], [
    'config set',
    2,
    'config set: expected a change such as drain.deadlineMs=10000, received nothing'
  ], ['config set drain.deadlineMs', 2,
    'config set: expected a change such as drain.deadlineMs=10000, received "drain.deadlineMs"'], [
    'config set drain.deadlineMs=1 drain.deadlineMs=2',
    2,
    'config set: expected drain.deadlineMs once, received it twice'
  ], ['config set drain.idleGraceMs=1 drain.deadlineMs=soon', 2,
    'drain.deadlineMs: expected an integer from 0 to 2147483647, received "soon"'], ['config set dispatch=sticky', 1,
    'dispatch can only be set at a start']] as [string, number, string][])
  {
    const { code, stderr } = await cli(line)
    assert.deepEqual([code, stderr], [exitCode, `clusterdeck: ${text}\n`], line)
  }
  assert.equal(deck.dispatched.length, 1)
})

test('scale refuses what is no count', async (t) => {
  const { cli, deck } = await setUp(t)
  for (const count of ['0', '257', 'two', '1.5', '1e2']) {
    const { code, stderr } = await cli(`scale ${count}`)
    assert.deepEqual([code, stderr], [2,
      `clusterdeck: scale: expected an integer from 1 to 256, received "${count}"\n`])
  }
  assert.deepEqual(deck.dispatched, [])
})

test('history prints events that match, newest first', async (t) => {
  const { cli, deck } = await setUp(t)
  for (let slot = 1; slot <= 3; slot++)
    deck.events.publish({ type: 'worker.exited', cause: 'crash', slot, worker: slot, code: 1,
      message: `worker ${slot} died\u001b[2J\nof old age` })
  deck.events.publish({ type: 'worker.ready', slot: 1, worker: 4 })
  const { code, stdout } = await cli('history --type worker.exited --limit 2')
  assert.equal(code, 0)
  const lines = stdout.trimEnd().split('\n')
  assert.equal(lines.length, 3)
  assert.match(lines[1], /^ 3 {2}\S+Z {2}worker\.exited .*worker 3 died of old age \(crash, code 1\)$/)
  assert.match(lines[2], /^ 2 /)
  assert.deepEqual(JSON.parse((await cli('history --json --limit 1')).stdout).items.map(({ id }: { id: number }) => id),
    [4])
  assert.equal((await cli('history --slot 9')).stdout, 'no events\n')
})

test('history --csv prints all that match as the API exports it, without formulas; a limit holds', async (t) => {
  const { cli, deck, api } = await setUp(t)
  for (let slot = 1; slot <= 300; slot++)
    deck.events.publish({ type: 'worker.ready', slot, worker: slot, message: '=cmd,"x"\u001b[2J' })
  deck.events.publish({ type: 'worker.exited', slot: 1, worker: 1 })
  const { code, stdout, stderr } = await cli('history --csv --type worker.ready')
  assert.deepEqual([code, stderr], [0, ''])
  assert.equal(stdout, (await api('get', '/api/v1/events?type=worker.ready').set('Accept', 'text/csv')).text)
  assert.equal(stdout.split('\r\n').length, 302)
  assert.ok(stdout.includes(',"\'=cmd,""x""\u001b[2J",'))
  assert.equal((await cli('history --csv --limit 2')).stdout.split('\r\n').length, 4)
  assert.match((await cli('history --csv --slot 9x')).stderr, /^clusterdeck: slot: expected /)
  assert.deepEqual(await cli('history --csv --json'), { code: 2, stdout: '',
    stderr: 'clusterdeck: --csv: expected without --json, received both\n' })
})

test('history --csv moves no cursor of a terminal', async (t) => {
  const { deck, url } = await setUp(t)
  deck.events.publish({ type: 'worker.exited', message: 'a\u001b[2J\r\nb\u0007' })
  let shown = ''
  const terminal = fake<NodeJS.WriteStream>({ isTTY: true, write: (text: string) => {
    shown += text
  } })
  await runCommandLine(['history', '--csv'], { stdout: terminal, stderr: terminal,
    env: { CLUSTERDECK_URL: url, CLUSTERDECK_TOKEN: TOKEN }, cwd: tmpdir() })
  assert.match(shown, /^id,at,.*\n1,.*,"a\nb ",\n$/)
})

test('a CSV that breaks off is a failure', async (t) => {
  const url = await serve(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/csv' }).write('id,at\r\n1,', () => {
      res.socket?.end()
    })
  })
  const { code, stdout, stderr } = await dataFolder(t, { adminUrl: url })('history --csv')
  assert.deepEqual([code, stdout, stderr], [5, 'id,at\r\n1,',
    `clusterdeck: ${url} closed the connection in the middle of its answer\n`])
})

test('history --csv is read no faster than it is written', async (t) => {
  const { deck, url } = await setUp(t)
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
  const asked = [] as string[]
  const url = await serve(t, (req, res) => {
    asked.push(String(req.url))
    json(res, 200, pages[asked.length - 1])
  })
  const { stdout } = await dataFolder(t, { adminUrl: url })('history --q found --limit 5')
  assert.match(stdout, /found/)
  assert.deepEqual(asked, ['', '&cursor=a', '&cursor=b'].map((cursor) => `/api/v1/events?limit=5${cursor}&q=found`))
})

test('a filter that the master refuses is a usage error', async (t) => {
  const { cli } = await setUp(t)
  const { code, stderr } = await cli('history --slot first')
  assert.equal(code, 2)
  assert.match(stderr, /^clusterdeck: slot: expected .*received "first"$/m)
})

test('open prints a sign-in link that works', async (t) => {
  const { cli, url } = await setUp(t)
  const { code, stdout } = await cli('open')
  assert.equal(code, 0)
  assert.ok(stdout.startsWith(`${url}/sign-in?code=`))
  const visit = await fetch(stdout.trim(), { redirect: 'manual' })
  assert.match(String(visit.headers.get('set-cookie')), /^clusterdeck_\d+=/)
})

test('stop waits until the master is gone', async (t) => {
  const server = http.createServer((req, res) => {
    assert.deepEqual([req.method, req.url], asked++ === 1 ? ['POST', '/api/v1/stop'] : ['GET', '/healthz'])
    json(res, asked === 2 ? 202 : 200, { state: 'stopping' })
    if (asked === 5) server.close()
  })
  let asked = 0
  const url = await listen(t, server)
  const { code, stdout } = await dataFolder(t)(`stop --url ${url} --token any`)
  assert.deepEqual([code, stdout, asked], [0, 'stopped\n', 5])
})

test('stop knows by its pid that a master of this machine is gone', async (t) => {
  const master = spawn('sleep', ['60'])
  const url = await serve(t, (_req, res) => {
    if (master.exitCode === null) master.kill()
    json(res, 202, { state: 'stopping' })
  })
  const { code } = await dataFolder(t, { adminUrl: url, pid: Number(master.pid) })('stop')
  assert.equal(code, 0)
  const alive = await dataFolder(t, { adminUrl: url, pid: process.pid })('stop --timeout 200ms')
  assert.equal(alive.code, 124)
})

test('without a master every command ends with 5', async (t) => {
  const cli = dataFolder(t)
  for (const command of ['status', 'restart', 'deploy', 'scale 2', 'history', 'open', 'stop']) {
    const { code, stdout, stderr } = await cli(command)
    assert.deepEqual([code, stdout], [5, ''], command)
    assert.match(stderr, /^clusterdeck: no master is running on .*\n$/)
  }
})

test('a master that died without cleaning up is no master', async (t) => {
  const gone = http.createServer()
  const { port } = await new Promise<net.AddressInfo>((resolve) =>
    gone.listen(0, '127.0.0.1', () => resolve(gone.address() as net.AddressInfo))
  )
  await new Promise((resolve) => gone.close(resolve))
  const { code, stderr } = await dataFolder(t, { adminUrl: `http://127.0.0.1:${port}` })('status')
  assert.equal(code, 5)
  assert.match(stderr, /no master answers at .* \(ECONNREFUSED\)$/m)
})

test('a wrong token ends with 3', async (t) => {
  const { url } = await startAdmin(t)
  const { code, stderr } = await dataFolder(t, { adminUrl: url, token: 'wrong' })('status')
  assert.equal(code, 3)
  assert.match(stderr, /^clusterdeck: .+\n$/)
})

test('the token of this folder is sent to no other address', async (t) => {
  const seen = [] as (string | undefined)[]
  const url = await serve(t, (req, res) => {
    seen.push(req.headers.authorization)
    json(res, 200, { state: 'running' })
  })
  const cli = dataFolder(t, { adminUrl: 'http://127.0.0.1:1' })
  assert.equal((await cli(`status --json --url ${url}`)).code, 3)
  assert.deepEqual(seen, [])
  assert.equal((await cli(`status --json --url ${url}`, { CLUSTERDECK_TOKEN: 'given' })).code, 0)
  assert.equal((await cli(`status --json --url ${url} --token flag`, { CLUSTERDECK_TOKEN: 'given' })).code, 0)
  assert.deepEqual(seen, ['Bearer given', 'Bearer flag'])
})

test('a token comes from a file, without what is blank around it; a flag comes before the variables', async (t) => {
  const seen = [] as (string | undefined)[]
  const url = await serve(t, (req, res) => {
    seen.push(req.headers.authorization)
    json(res, 200, { state: 'running' })
  })
  const folder = tempFolder()
  writeFileSync(join(folder, 'token'), '\n  from-a-file\r\n')
  writeFileSync(join(folder, 'other'), 'from-another')
  const cli = dataFolder(t)
  const line = `status --json --url ${url}`
  await cli(`${line} --token-file ${folder}/token`, { CLUSTERDECK_TOKEN: 'given' })
  await cli(line, { CLUSTERDECK_TOKEN_FILE: `${folder}/other` })
  await cli(line, { CLUSTERDECK_TOKEN_FILE: `${folder}/other`, CLUSTERDECK_TOKEN: 'given' })
  await cli(`${line} --token flag`, { CLUSTERDECK_TOKEN_FILE: `${folder}/missing` })
  assert.deepEqual(seen, ['Bearer from-a-file', 'Bearer from-another', 'Bearer given', 'Bearer flag'])
})

test('a token that is none is refused by where it comes from, and not repeated', async (t) => {
  const asked = [] as unknown[]
  const url = await serve(t, (req) => asked.push(req.url))
  const folder = tempFolder()
  writeFileSync(join(folder, 'blank'), ' \n')
  writeFileSync(join(folder, 'two'), 'secret\nsecret')
  const cli = dataFolder(t, { adminUrl: url })
  for (const [flags, env, message] of [[`--token-file ${folder}/none`, {},
    `--token-file: expected a file with the token in it, received "${folder}/none" (ENOENT)`], [
    `--token-file ${folder}`,
    {},
    `--token-file: expected a file with the token in it, received "${folder}" (EISDIR)`
  ], ['', { CLUSTERDECK_TOKEN_FILE: `${folder}/none` },
    `CLUSTERDECK_TOKEN_FILE: expected a file with the token in it, received "${folder}/none" (ENOENT)`], [
    `--token-file ${folder}/blank`,
    {},
    `--token-file ${folder}/blank: expected a token, received nothing`
  ], [`--token-file ${folder}/two`, {},
    `--token-file ${folder}/two: expected a token, received blanks, or characters that no token has`], ['', {
    CLUSTERDECK_TOKEN: 'secret\r\nx: y'
  }, 'CLUSTERDECK_TOKEN: expected a token, received blanks, or characters that no token has'], [
    `--token secret --token-file ${folder}/two`,
    {},
    '--token-file: expected without --token, received both'
  ]] as [string, Record<string, string>, string][])
    assert.deepEqual(await cli(`status ${flags}`, env), { code: 2, stdout: '', stderr: `clusterdeck: ${message}\n` })
  assert.deepEqual(asked, [])
})

test('a connection that is closed as soon as it is open leads to no master either', async (t) => {
  for (const end of ['destroy', 'end', 'resetAndDestroy'] as const) {
    const url = await listen(t, net.createServer((socket) => socket.on('error', () => {})[end]()))
    const { code, stdout, stderr } = await dataFolder(t, { adminUrl: url })('status --timeout 5s')
    assert.deepEqual([code, stdout, stderr], [5, '', `clusterdeck: no master answers at ${url} (ECONNRESET)\n`], end)
  }
})

test('a master that somebody else has announced in a folder of the right name is none, and gets no token', async (t) => {
  const runtime = mkdtempSync(join(tmpdir(), 'clusterdeck-cli-'))
  t.after(() => rmSync(runtime, { recursive: true }))
  const seen = [] as (string | undefined)[]
  const url = await serve(t, (req, res) => {
    seen.push(req.headers.authorization)
    json(res, 200, { state: 'running' })
  })
  const cwd = mkdtempSync(join(tmpdir(), 'clusterdeck-cli-'))
  t.after(() => rmSync(cwd, { recursive: true }))
  writeFileSync(join(cwd, 'admin.token'), 'secret')
  const [place] = fallbackFolders(cwd, { XDG_RUNTIME_DIR: runtime })
  mkdirSync(place, { mode: 0o700 })
  writeFileSync(join(place, 'master.json'), JSON.stringify({ pid: process.pid, adminUrl: url }))
  const cli = dataFolder(t)
  const env = { CLUSTERDECK_DATA_DIR: cwd, XDG_RUNTIME_DIR: runtime }
  await cli('status --json', env)
  assert.deepEqual(seen, ['Bearer secret'], 'in a folder of our own it is ours')
  chmodSync(place, 0o777)
  assert.equal((await cli('status --json', env)).code, 5)
  assert.equal(seen.length, 1)
})

test('a dead master that is still told of in its folder does not hide the one that runs elsewhere', async (t) => {
  const runtime = mkdtempSync(join(tmpdir(), 'clusterdeck-cli-'))
  t.after(() => rmSync(runtime, { recursive: true }))
  const url = await serve(t, (_req, res) => json(res, 200, { state: 'running' }))
  const cwd = mkdtempSync(join(tmpdir(), 'clusterdeck-cli-'))
  t.after(() => rmSync(cwd, { recursive: true }))
  writeFileSync(join(cwd, 'admin.token'), 'secret')
  writeFileSync(join(cwd, 'master.json'),
    JSON.stringify({ pid: spawnSync('true').pid, adminUrl: 'http://127.0.0.1:1' }))
  const [place] = fallbackFolders(cwd, { XDG_RUNTIME_DIR: runtime })
  mkdirSync(place, { mode: 0o700 })
  writeFileSync(join(place, 'master.json'), JSON.stringify({ pid: process.pid, adminUrl: url }))
  const { code, stdout } = await dataFolder(t)('status --json', { CLUSTERDECK_DATA_DIR: cwd, XDG_RUNTIME_DIR: runtime })
  assert.deepEqual([code, JSON.parse(stdout).state], [0, 'running'])
})

test('no command says a token to another user, who has the port of a master by now', { skip: lacksStrangers },
  async (t) => {
    const heard = await startStranger(t).listening
    const adminUrl = `http://127.0.0.1:${heard.port}`
    const [alive, dead] = [dataFolder(t, { adminUrl }), dataFolder(t, { adminUrl, pid: spawnSync('true').pid })]
    for (const line of ['status', 'logs --follow', 'stop', 'deploy --wait']) {
      const { code, stderr } = await alive(line)
      assert.deepEqual([code, stderr], [5,
        `clusterdeck: no master answers at ${adminUrl} (a process of another user (uid ${OTHER_UID}) answers there)\n`])
      assert.match((await dead(line)).stderr, /\(its master \(pid \d+\) has ended\)\n$/)
    }
    // He hears what somebody says to him.
    await dataFolder(t)(`status --url ${adminUrl} --token for-him --timeout 5s`)
    await until(() => heard.text.includes('for-him'), 'what is meant for him')
    assert.equal(heard.text.match(/Bearer/g)?.length, 1)
  })

test('"logs --follow" begins each time with the data folder: to whom a port has gone since says nothing', {
  skip: lacksStrangers
}, async (t) => {
  const cwd = tempFolder()
  const master = spawn('sleep', ['60'])
  t.after(() => master.kill())
  const server = http.createServer((_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' }).write(
      'event: message\nid: a\ndata: {"slot":1,"stream":"stdout","text":"hello"}\n\n'
    )
  })
  const adminUrl = await listen(t, server)
  const port = Number(new URL(adminUrl).port)
  writeFileSync(join(cwd, 'master.json'), JSON.stringify({ pid: master.pid, adminUrl }))
  writeFileSync(join(cwd, 'admin.token'), TOKEN, { mode: 0o600 })
  let stdout = ''
  const ended = runCommandLine(['logs', '--follow'], { stdout: fake({ write (text: string) {
    stdout += text
  } }), stderr: fake({ write () {} }), env: { CLUSTERDECK_DATA_DIR: cwd }, cwd })
  await until(() => stdout.includes('hello'), 'the first line')
  // Its port is taken at once, and then its data folder says that it has ended.
  const stranger = startStranger(t, { port })
  master.kill()
  await once(master, 'exit')
  server.closeAllConnections()
  server.close()
  const heard = await stranger.listening
  // The next master, elsewhere.
  const next = http.createServer((req, res) => {
    if (req.headers['last-event-id'] === 'b')
      return json(res, 401, { code: 'unauthenticated', detail: 'enough' }, 'application/problem+json')
    res.writeHead(200, { 'content-type': 'text/event-stream' }).write(
      `event: message\nid: b\ndata: {"slot":1,"stream":"stdout","text":"again ${req.headers['last-event-id']}"}\n\n`
    )
  })
  writeFileSync(join(cwd, 'master.json'), JSON.stringify({ pid: process.pid, adminUrl: await listen(t, next) }))
  await until(() => stdout.includes('again a'), 'what the next master says')
  next.closeAllConnections()
  assert.equal(await ended, 3)
  assert.equal(heard.text, '')
})

test('in the folder of another user no command believes his data folder, nor runs his config file', {
  skip: lacksStrangers
}, async (t) => {
  const heard = await startStranger(t).listening
  const cwd = tempFolder()
  chmodSync(cwd, 0o1777)
  const place = join(cwd, '.clusterdeck')
  mkdirSync(place)
  const secret = join(tempFolder(), 'admin.token')
  writeFileSync(secret, TOKEN, { mode: 0o600 })
  symlinkSync(secret, join(place, 'admin.token'))
  writeFileSync(join(place, 'master.json'),
    JSON.stringify({ pid: process.pid, adminUrl: `http://127.0.0.1:${heard.port}` }))
  for (const file of [place, join(place, 'master.json')]) chownSync(file, OTHER_UID, OTHER_UID)
  const here = (line: string, env = {}) => dataFolder(t)(line, { CLUSTERDECK_DATA_DIR: '', ...env }, cwd)
  for (const line of ['status', 'logs', 'stop']) {
    const { code, stderr } = await here(line)
    assert.deepEqual([code, stderr], [1,
      `clusterdeck: dataDir: expected a folder that only its user can write, but ${place} belongs to another user (uid ${OTHER_UID}, this process has 0); --data-dir names the folder of another deck\n`])
  }
  // Named, it is his deck; the secret behind his link is not.
  assert.match((await here('status --data-dir .clusterdeck')).stderr,
    /admin\.token: expected the admin token, received ELOOP/)
  writeFileSync(join(cwd, 'package.json'), JSON.stringify({ name: 'shop', main: CLI }))
  chownSync(join(cwd, 'package.json'), OTHER_UID, OTHER_UID)
  assert.match((await here('uninstall app.js --dry-run')).stderr,
    /--name: expected the name of the service: .*package\.json belongs to another user/)
  const config = join(cwd, 'clusterdeck.config.mjs')
  writeFileSync(config,
    `import { writeFileSync } from 'node:fs'; writeFileSync(${
      JSON.stringify(join(cwd, 'has-run'))
    }, ''); export default { entry: ${JSON.stringify(CLI)}, workers: 'none' }`)
  chownSync(config, OTHER_UID, OTHER_UID)
  const why = new RegExp(
    `config: expected ${config} to be a file that only root and its user can write, but ${config} belongs to another user \\(uid ${OTHER_UID}, this process has 0\\)`
  )
  for (const line of ['status', 'history', 'up', 'start', 'systemd', 'history --app shop',
    'history --url http://127.0.0.1:1 --token a'])
  {
    const { code, stderr } = await here(line)
    assert.match(stderr, why, line)
    assert.equal(code, 2, line)
  }
  assert.ok(!existsSync(join(cwd, 'has-run')))
  assert.match((await here('start', { CLUSTERDECK_CONFIG: config })).stderr, /workers in .*: expected an integer/,
    'one that is named is run')
  assert.ok(existsSync(join(cwd, 'has-run')))
  const ecosystem = join(cwd, 'ecosystem.config.js')
  writeFileSync(ecosystem, '')
  chownSync(ecosystem, OTHER_UID, OTHER_UID)
  assert.match((await here('import --print')).stderr,
    /import: expected ecosystem\.config\.js to be a file that only root and its user can write, but .* belongs to another user .*; name it if you trust it/)
  assert.equal(heard.text, '')
})

test('root reaches the deck of another user by its data folder, and says its token to that user alone', {
  skip: lacksStrangers
}, async (t) => {
  const [his, theirs] = [await startStranger(t).listening, await startStranger(t, { uid: OTHER_UID + 1 }).listening]
  const place = tempFolder()
  writeFileSync(join(place, 'admin.token'), 'his', { mode: 0o600 })
  const tell = (port: number) =>
    writeFileSync(join(place, 'master.json'),
      JSON.stringify({ pid: process.pid, adminUrl: `http://127.0.0.1:${port}` }))
  tell(theirs.port)
  for (const file of ['', 'admin.token', 'master.json']) chownSync(join(place, file), OTHER_UID, OTHER_UID)
  const cli = dataFolder(t)
  assert.match((await cli(`history --json --data-dir ${place}`)).stderr,
    /a process of another user \(uid 54322\) answers there/)
  tell(his.port)
  await cli(`history --json --data-dir ${place}`)
  await until(() => his.text.includes('Bearer his'), 'his token')
  assert.doesNotMatch(theirs.text, /Bearer/)
})

test('something else on the port is no master', async (t) => {
  const url = await serve(t, (_req, res) => res.writeHead(404, { 'content-type': 'text/html' }).end('<h1>nginx</h1>'))
  const { code, stderr } = await dataFolder(t, { adminUrl: url })('status')
  assert.deepEqual([code, stderr], [5,
    `clusterdeck: ${url} answers, but not as a clusterdeck master does (HTTP 404)\n`])
})

test('an error of a newer master is told with its text', async (t) => {
  const url = await serve(t,
    (_req, res) => json(res, 409, { code: 'from-the-future', detail: 'not now' }, 'application/problem+json'))
  assert.deepEqual(await dataFolder(t, { adminUrl: url })('restart'), { code: 4, stdout: '',
    stderr: 'clusterdeck: not now\n' })
})

for (const [line, message] of [['statsu', /^clusterdeck: unknown command "statsu" \(did you mean status\?\)\n$/], [
  'status --jsn',
  /^clusterdeck: unknown option "--jsn" \(did you mean --json\?\)\n$/
], ['start --wokers 3', /^clusterdeck: unknown option "--wokers" \(did you mean --workers\?\)\n$/], [
  'start app.js extra',
  /^clusterdeck: too many arguments for "start".* Arguments for the app go after --\.\n$/
], ['scale', /^clusterdeck: scale: expected an integer from 1 to 256, received none\n$/], ['history --limit 0',
  /^clusterdeck: --limit: expected an integer from 1 to 1000, received "0"\n$/], ['start --workers none',
  /^clusterdeck: --workers: expected an integer from 1 to 256 or "max", received "none"\n$/], ['start nix.js',
  /^clusterdeck: entry: expected a file, received .*nix\.js, which does not exist\n$/], ['status --url ftp://x',
  /^clusterdeck: --url: expected an address such as http:\/\/127\.0\.0\.1:9777, received "ftp:\/\/x"\n$/], ['',
  /^Usage: clusterdeck/]] as [string, RegExp][])
{
  test(`"clusterdeck ${line}" is a usage error that says what was meant`, async (t) => {
    const { code, stdout, stderr } = await dataFolder(t, { adminUrl: 'http://127.0.0.1:1' })(line)
    assert.equal(stdout, '')
    assert.match(stderr, message)
    assert.equal(code, 2)
    assert.doesNotMatch(stderr, /\n +at .*:\d/)
  })
}

test('help and version go to stdout and succeed', async (t) => {
  const cli = dataFolder(t)
  assert.match((await cli('--version')).stdout, /^\d+\.\d+\.\d+\n$/)
  for (const line of ['--help', 'help start', 'start --help', 'history -h']) {
    const { code, stdout, stderr } = await cli(line)
    assert.deepEqual([code, stderr], [0, ''], line)
    assert.match(stdout, /^Usage: clusterdeck/)
  }
  assert.match((await cli('help start')).stdout,
    /--ready-timeout-ms <ms> +how long .*default: 30000; env: CLUSTERDECK_READY_TIMEOUT_MS/)
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

test('all of a long output comes through a pipe, however slowly it is read', async (t) => {
  const url = await serve(t,
    (_req, res) =>
      json(res, 200, { items: Array.from({ length: 1000 }, (_, id) => ({ id, message: 'm'.repeat(1000) })),
        next: null }))
  const child = spawn(process.execPath, [CLI, 'history', '--json', '--url', url, '--token', TOKEN], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  // The pipe is full long before.
  await once(child.stdout, 'readable')
  assert.equal(JSON.parse(await text(child.stdout)).items.length, 1000)
})

test('whoever does not read the output of a command is no failure, and is told nothing', async () => {
  for (const [words, closed, expected] of [[['help', 'start'], 'stdout', 0], [['nonsense'], 'stderr', 2]] as [string[],
    'stdout' | 'stderr', number][])
  {
    const child = spawn(process.execPath, [CLI, ...words], { stdio: ['ignore', 'pipe', 'pipe'] })
    const other = text(closed === 'stdout' ? child.stderr : child.stdout)
    child[closed].destroy()
    const [code] = await once(child, 'exit')
    assert.deepEqual([code, await other], [expected, ''], words.join(' '))
  }
})

test('what another member answers is told in a line, whatever it is, and reaches no terminal as it is', async (t) => {
  for (const body of [{}, null, { items: null }, { items: [null] }]) {
    const cli = dataFolder(t, { adminUrl: await serve(t, (_req, res) => json(res, 200, body)) })
    for (const command of ['status', 'history', 'crashes', 'releases', 'logs', 'scale 2 --wait', 'restart',
      'restart --wait'])
    {
      const { code, stdout, stderr } = await cli(`${command} --member web-2`)
      assert.doesNotMatch(stderr, /internal error|\n +at /, command)
      if (code !== 0)
        assert.match(stderr, /^(?:rollout .*\n)?clusterdeck: the answer of web-2 cannot be read \(.+\)\n$/, command)
      assert.doesNotMatch(stdout, /internal error/)
    }
  }
  const EVIL = '\u001b]0;x\u0007\u009b2J'
  const evil = { id: 1, kind: EVIL, state: EVIL, progress: { replaced: EVIL, total: 1 }, desiredWorkers: EVIL,
    steps: [], done: true }
  const cli = dataFolder(t, { adminUrl: await serve(t, (_req, res) => json(res, 200, evil)) })
  for (const command of ['restart', 'deploy', 'rollback', 'restart --wait', 'scale 2']) {
    const { stdout, stderr } = await cli(`${command} --member web-2`)
    assert.doesNotMatch(stdout + stderr, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/, command)
  }
})

test('no command shows a terminal what could steer it, whatever apps, commits and members have said', async (t) => {
  const EVIL = ' evil\u001b]0;x\u0007\u009b2J\u202e'
  const { url: real } = await startAdmin(t)
  const poisoned = (value: unknown, key = ''): unknown => {
    if (typeof value === 'string')
      return ['state', 'kind', 'type', 'code', 'stream', 'adminUrl'].includes(key) ? value : value + EVIL
    if (Array.isArray(value)) return value.map((each) => poisoned(each))
    return typeof value !== 'object' || value === null
      ? value
      : Object.fromEntries(Object.entries(value).map(([name, each]) => [name, poisoned(each, name)]))
  }
  const url = await serve(t, async (req, res) => {
    if (/\/stream(\?|$)/.test(String(req.url))) {
      const events = [['output', { stream: 'stdout', text: `a\n${EVIL}` }], ['output', { stream: 'stderr',
        text: EVIL }], ['end', { id: 1, state: 'failed', code: 3, signal: null, cause: EVIL, reason: EVIL }]]
      return res.writeHead(200, { 'content-type': 'text/event-stream' }).end(
        events.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`).join('')
      )
    }
    const body = req.method === 'GET' ? undefined : await text(req)
    const { authorization = '' } = req.headers
    const [path, query = ''] = String(req.url).split(/(?=\?)/)
    const isAwaited = query.includes('wait=')
    const answer = await fetch(real + path + (isAwaited ? '' : query), { method: req.method, body,
      headers: { authorization, ...(body && { 'content-type': 'application/json' }) } })
    const known = (answer.headers.get('content-type') ?? '').includes('json')
      ? await answer.json()
      : await answer.text()
    json(res, /\/(runs|releases)$/.test(path) && body ? 201 : answer.status, { id: 1, ...poisoned(known) as object,
      ...(isAwaited && { state: 'failed', done: true, reason: EVIL }) })
  })
  const program = await createProgram(['help'], fake({}), { exitCode: 0 })
  const lines = commandsOf(program).filter((command) =>
    command.options.some(({ long }) => long === '--url') && command.name() !== 'mcp'
  ).flatMap((command) => command.examples.map(([, line]) => wordsOf(line))).filter((words) =>
    !words.some((word) => /^(--(follow|watch|url|timeout)|-f)$/.test(word))
  )
  const cwd = tempFolder()
  let shownCount = 0
  for (const words of [...lines, ['deploy', '--git', 'main', '--yes'], ['jobs', 'run', 'nightly', '--wait'], ['history',
    '--json']])
  {
    let shown = ''
    const stream = (isTTY: boolean) =>
      fake<NodeJS.WriteStream>({ isTTY, write: (part: string) => {
        shown += part
      } })
    // Only where both are terminals a browser is opened.
    const [stdout, stderr] = [stream(true), stream(words[0] !== 'open')]
    await runCommandLine(words, { stdout, stderr, stdin: fake({}),
      env: { CLUSTERDECK_URL: url, CLUSTERDECK_TOKEN: TOKEN, CLUSTERDECK_TIMEOUT: '1s', HOME: cwd }, cwd })
    if (shown.includes('evil')) shownCount++
    assert.doesNotMatch(shown, /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/, words.join(' '))
  }
  assert.ok(shownCount > 20, `${shownCount} of ${lines.length}`)
})

/** `handler`: of all but the question whether it answers. Returns its address. */
function serve (t: TestContext, handler: http.RequestListener): Promise<string> {
  return listen(t, http.createServer(async (req, res) => {
    if (req.url === '/healthz') {
      assert.equal(req.headers.authorization, undefined)
      return res.end()
    }
    try {
      await handler(req, res)
    } catch {
      // What it asks itself may have ended with the test.
      res.destroy()
    }
  }))
}

function listen (t: TestContext, server: http.Server | net.Server): Promise<string> {
  t.after(() => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
  })
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  )
}

function json (res: http.ServerResponse, status: number, body: unknown, type: string = 'application/json') {
  res.writeHead(status, { 'content-type': type, connection: 'close' }).end(JSON.stringify(body))
}

test('logs prints the last lines; on a terminal nothing in them moves its cursor', async (t) => {
  const { cli, deck, url } = await setUp(t)
  appendFileSync(join(deck.logs.folder, 'slot-2.stderr.log'), 'one\n\u001b[2J\u001b]0;title\u0007two\rthree\n')
  assert.equal((await cli('logs --lines 1')).stdout, '2 stderr | \u001b[2J\u001b]0;title\u0007two\rthree\n')
  assert.equal((await cli('logs --slot 2 --stream stderr')).stdout.split('\n')[0], 'one')
  assert.deepEqual(JSON.parse((await cli('logs --json --slot 2 --lines 2')).stdout.split('\n')[0]), { slot: 2,
    stream: 'stderr', text: 'one', place: '2e0' })
  let shown = ''
  const terminal = fake<NodeJS.WriteStream>({ isTTY: true, write: (text: string) => {
    shown += text
  } })
  await runCommandLine(['logs'], { stdout: terminal, stderr: terminal,
    env: { CLUSTERDECK_URL: url, CLUSTERDECK_TOKEN: TOKEN }, cwd: tmpdir() })
  assert.equal(shown, '2 stderr | one\n2 stderr | two three\n')
})

test('logs says what is wrong with its options', async (t) => {
  const { cli } = await setUp(t)
  assert.deepEqual(await cli('logs --lines 0'), { code: 2, stdout: '',
    stderr: 'clusterdeck: --lines: expected an integer from 1 to 1000, received "0"\n' })
  assert.deepEqual(await cli('logs --stream stdin'), { code: 2, stdout: '',
    stderr: 'clusterdeck: stream: expected "stdout" or "stderr", received "stdin"\n' })
  assert.deepEqual(await cli('logs --slot 9'), { code: 1, stdout: '', stderr: 'clusterdeck: Slot 9 has no logs\n' })
  assert.deepEqual(await cli('logs -f --slot 9'), { code: 1, stdout: '', stderr: 'clusterdeck: Slot 9 has no logs\n' })
})

/** A master that tells two lines that were there, one that comes, and then asks for a token. */
function serveLines (t: TestContext) {
  const line = (text: string) => `data: ${JSON.stringify({ slot: 1, stream: 'stdout', text })}\n`
  return serve(t, (req, res) => {
    if (req.headers['last-event-id'] === '1o3')
      return json(res, 401, { code: 'unauthenticated', detail: 'enough' }, 'application/problem+json')
    res.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' }).end(
      `retry: 3000\n\n${line('one')}\nid: 1o2\n${line('two')}\nid: 1o3\n${line('three')}\n`
    )
  })
}

test('logs --follow --timestamps says when each line has arrived, and of those that were there before nothing', async (t) => {
  const cli = dataFolder(t, { adminUrl: await serveLines(t) })
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

test('logs --timestamps says when each line was written, as the master has seen it', async (t) => {
  const { cli, deck } = await setUp(t)
  const file = join(deck.logs.folder, 'slot-2.stderr.log')
  appendFileSync(file, 'one\n')
  utimesSync(file, 1e9, 1e9)
  assert.equal((await cli('logs --timestamps')).stdout, '2001-09-09T01:46:40.000Z 2 stderr | one\n')
  assert.equal((await cli('logs --timestamps --json')).stdout,
    '{"arrivedAt":"2001-09-09T01:46:40.000Z","slot":2,"stream":"stderr","text":"one","place":"2e0"}\n')
})

test('logs finds lines by text and by time, and says so where there are none', async (t) => {
  const { cli, deck } = await setUp(t)
  appendFileSync(join(deck.logs.folder, 'slot-2.stderr.log'), 'one\ntwo\nthree\n')
  assert.equal((await cli('logs --q TWO')).stdout, '2 stderr | two\n')
  assert.equal((await cli('logs --since 2001-01-01 --lines 2')).stdout, '2 stderr | two\n2 stderr | three\n')
  assert.deepEqual(await cli('logs --q four'), { code: 0, stdout: '', stderr: 'no line matches\n' })
  assert.deepEqual(await cli('logs --q one -f'), { code: 2, stdout: '',
    stderr: 'clusterdeck: --q: expected without --follow, received both\n' })
})

test('an old worker is shown with what it is kept for and until when, is not waited for by a scale, and is told to close its connections', async (t) => {
  const { cli, deck } = await setUp(t)
  const { workers: [first, second] } = deck.snapshot()
  const holds = { requests: 0, transfers: 0, webSockets: 120, eventStreams: 3, connections: 0 }
  deck.set({
    workers: [first, { ...first, id: 9, state: 'draining', holds,
      keptUntil: new Date(Date.now() + 3_600_000).toISOString() }, second]
  })
  assert.match((await cli('status')).stdout,
    /draining \(120 WebSockets and 3 event streams, closed in (59 min \d\d s|1 h 00 min)\)/)
  assert.equal((await cli('scale 2 --wait --timeout 20s')).stdout, '2 workers are ready\n')
  const { stdout, code } = await cli('end-connections 9')
  assert.deepEqual([code, stdout], [0, 'worker 9 closes 120 WebSockets and 3 event streams, and ends then\n'])
  assert.deepEqual(deck.dispatched.at(-1), { type: 'end-connections', worker: 9, actor: OWNER })
})
