import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { openApps } from '../support/apps.ts'
import { runCliHere } from '../support/cli-here.ts'
import { FIXTURES, type Deck, startReady } from '../support/deck.ts'
import { startDeckHere } from '../support/deck-here.ts'
import { examples, requestOf, wordsOf } from '../support/examples.ts'
import { tempFolder } from '../support/folder.ts'
import { rareOnly, rareTest } from '../support/rare.ts'
import { startReceiver } from '../support/receiver.ts'
import { createRepository } from '../support/repository.ts'
import { until } from '../support/until.ts'

/** Why an example is not executed, which is said here or nowhere. */
const NOT_EXECUTED: Readonly<Record<string, string>> = Object.freeze({
  'ln -sfn releases/42 next && mv -T next current && clusterdeck deploy --wait --note "build 42"':
    'a folder of releases and the link to one are those of test/cluster/releases.test.ts; the command is an example of its own',
  'clusterdeck start app.js --admin-host 10.0.0.7 --admin-tls-cert cert.pem --admin-tls-key key.pem':
    'no machine has this address; test/cluster/tls.test.ts starts with a certificate',
  '{ curl --silent --no-buffer --max-time "$((left > 0 ? left : 1))" --header "@$folder/headers" --header "Last-Event-ID: $place" "$api/jobs/runs/$id/stream" 2> "$folder/error" || true; } |':
    'test/cluster/ci.test.ts runs the script that it is of',
  'status=$(curl --silent --show-error --max-time 60 --header "@$folder/headers" --output "$folder/answer" --write-out \'%{http_code}\' "$@" 2> "$folder/error") || status=none':
    'test/cluster/ci.test.ts runs the script that it is of',
  'clusterdeck backup /backups/host.tgz': 'test/cluster/backup.test.ts has a host for it',
  'clusterdeck backup /backups/host.tgz --with-secrets --force': 'test/cluster/backup.test.ts has a host for it',
  'clusterdeck restore /backups/host.tgz': 'test/cluster/backup.test.ts has a host for it',
  'clusterdeck restore /backups/host.tgz --dry-run': 'test/cluster/backup.test.ts has a host for it',
  'clusterdeck restore /backups/host.tgz --update-env': 'test/cluster/backup.test.ts has a host for it',
  'clusterdeck stop web & sleep 1; pm2 start web': 'no PM2 runs here; test/apps/take-back.ts does it',
  'claude mcp add clusterdeck -- npx clusterdeck mcp':
    'it is another program; test/admin/mcp.test.ts does what it would do',
  'OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_SERVICE_NAME=shop clusterdeck start server.js':
    'test/cluster/app-metrics.test.ts has a collector for it',
  'clusterdeck alerts add slack --url-file slack-url.txt --apps shop,mail':
    'test/admin/host-alerts.test.ts has a host for it',
  'clusterdeck alerts change 1 --apps \'*\'': 'test/admin/host-alerts.test.ts has a host for it',
  'clusterdeck host': 'test/cluster/host.test.ts runs it',
  'clusterdeck host --admin-port 9800': 'test/cluster/host.test.ts runs it on another port',
  'clusterdeck host --detach': 'test/cluster/apps.test.ts starts it so',
  'clusterdeck start app.js --detach': 'test/unit/cli/start-in-host.test.ts starts it so',
  'clusterdeck import --pm2': 'no PM2 runs here; test/unit/cli/import.test.ts asks what answers as one does',
  'npm ci && npm install --global . && clusterdeck upgrade --wait':
    'test/cluster/install.test.ts installs by it; the command is an example of its own'
})

/** In place of a text where an example stays as it is. */
const NOTHING = /(?!)/

/** What an example has instead of what its reader has, made for it where it is to be there first. */
const PREPARED: readonly [example: RegExp, from: string | RegExp, to: string | ((scene: Scene) => unknown)][] = [[
  /^clusterdeck import ecosystem/,
  /$/,
  importable
], [/^clusterdeck (kill|diagnose) \d/, /\d+/, aWorker], [/^clusterdeck end-connections 5\b/, '5', anOldWorker], [
  /^clusterdeck send .* --worker 5$/,
  /5$/,
  aWorker
], [/^clusterdeck acknowledge 812\b/, '812', aNotice], [/^clusterdeck logs --slot 0$/, NOTHING, standby], [
  /^clusterdeck scale 8$/,
  '8',
  '2'
], [/ --duration 10s /, '10s', '100ms'], [/^clusterdeck crashes 12\b/, '12', '1'], [/^clusterdeck releases r7$/, 'r7',
  async ({ deck }) => (await deck.status()).release.id], [/^clusterdeck rollback\b/, 'r12',
  async ({ deck }) => (await deck.rollout('deploy')).from], [/^clusterdeck tokens revoke 3$/, '3',
  async ({ deck }) => (await post(deck, '/tokens', { name: 'bob', role: 'viewer' })).id], [
  /^clusterdeck alerts retry 1 7$/,
  '1 7',
  async (scene) => `file-1 ${await failedDelivery(scene)}`
], [/^clusterdeck alerts (test|pause|resume|change|delete) 3\b/, '3',
  async ({ deck }) =>
    (await post(deck, '/alerts', { kind: 'slack', url: 'http://127.0.0.1:9/', events: ['master.waiting'] })).id], [
  /^clusterdeck alerts test$/,
  /$/,
  ' file-1'
], [/ --body-file body\.json$/, 'https://events.pagerduty.com/v2/enqueue', 'http://127.0.0.1:9/'], [
  / --server smtp\.example\.com:587 /,
  'smtp.example.com:587',
  '127.0.0.1:9'
], [/^clusterdeck jobs runs 812$/, '812', async ({ deck }) => (await post(deck, '/jobs/reindex/runs')).id], [
  /^clusterdeck jobs end 812$/,
  '812',
  async ({ deck }) => (await post(deck, '/jobs/runs', { command: ['sleep', '60'] })).id
], [/^clusterdeck jobs acknowledge nightly$/, 'nightly', aBrokenJob], [/^clusterdeck run .*rebuild-index\.js$/,
  'rebuild-index.js', '--version'], [/--url https:\/\/deck\.example\.com /, 'https://deck.example.com',
  ({ deck }) => deck.adminUrl], [/--url https:\/\/deck\.example\.com /, '/run/secrets/deck',
  ({ deck }) => path.join(deck.folder, 'admin.token')], [/^clusterdeck (un)?install\b(?!.*--dry-run)/, /$/,
  ' --dry-run'], [/ --node \/opt\/node-24\/bin\/node /, '/opt/node-24/bin/node', process.execPath], [
  /^clusterdeck (pause|abort|promote)\b/,
  NOTHING,
  ({ deck }) => canary(deck)
], [/^clusterdeck resume\b/, NOTHING,
  async ({ deck }) => await post(deck, `/rollouts/${await canary(deck, 1000)}/pause`)], [/^clusterdeck retry\b/,
  NOTHING, heldRollout]]

/** What somebody else does, while an example waits for it. */
const MEANWHILE: readonly [example: RegExp, work: (deck: Deck) => Promise<unknown>][] = Object.freeze(
  [[/^clusterdeck pause --wait$/, async (deck) => {
    await steer(deck, 'resume', 'paused')
    await steer(deck, 'promote', 'canary')
  }], [/ --wait --canary 1 /, (deck) => steer(deck, 'promote', 'canary')]] as [RegExp,
    (deck: Deck) => Promise<unknown>][]
)

/** They go on until somebody interrupts them. */
const IS_ENDLESS = /^clusterdeck (status --watch|logs .*(-f|--follow)\b)/
const CLI = fileURLToPath(new URL('../../server/cli.js', import.meta.url))
const PATIENCE_MS = 60_000

type Scene = { deck: Deck, cwd: string, statuses: number[], breakApp: (isBroken: boolean) => void }

const ALL = examples()
/** All but the first example of a command are rare. */
const isFirstOfCommand = ({ line }: { line: string }, index: number, examples: { line: string }[]) =>
  !rareOnly || examples.findIndex((other) => commandOf(other.line) === commandOf(line)) === index
/** The command with its subcommand, or with its first argument. */
const commandOf = (line: string) => /^\S+( [a-z-]+( [a-z]+)?)?/.exec(line)?.[0]
const isStart = ({ line }: { line: string }) => line.startsWith('clusterdeck start ') && !isOfApps({ line })
/** test/cluster/programs-manual.test.ts has what they start. */
const isOfPrograms = ({ from }: { from: string }) => from.endsWith('programs.md')
const isOfApps = ({ line }: { line: string }) =>
  !isConsole({ line }) &&
  /^clusterdeck (up|down|ls|describe|delete)\b|^clusterdeck \w+ (caddy )?(shop|mail)\b| --all\b| --host\b| -n /.test(
    line
  ) &&
  !isInTerminal({ line })
/** test/cluster/top.test.ts has a terminal. */
const isInTerminal = ({ line }: { line: string }) => line.startsWith('clusterdeck top')
/** test/cluster/fleet-manual.test.ts has several decks for them. */
const isOfFleet = ({ line }: { line: string }) => /^clusterdeck fleet\b| --member | --fleet | --all-hosts/.test(line)
/** They end with their stdin; test/cluster/jobs.test.ts and test/admin/mcp.test.ts have one for them. */
const isConsole = ({ line }: { line: string }) => /^clusterdeck (run .*(-i|--interactive) |mcp\b)/.test(line)
/** A deck that has moved into a host is there no more; test/cluster/adopt.test.ts has decks for them. */
const isMove = ({ line }: { line: string }) => line.startsWith('clusterdeck adopt')
const isStop = ({ line }: { line: string }) => /^clusterdeck stop\b/.test(line) && !isOfApps({ line })

test('what is said of examples here is of examples that there are', () => {
  for (const line of Object.keys(NOT_EXECUTED)) assert.ok(ALL.some((example) => example.line === line), line)
  for (const [pattern] of [...PREPARED, ...MEANWHILE])
    assert.ok(ALL.some(({ line }) => pattern.test(line)), String(pattern))
})

test(`${rareOnly ? 'an example of each command' : 'every example'} of the manual, of the README and of --help does what it is there for`, async (t) => {
  const scene = await open(t)
  for (const { from, line } of ALL.filter((example) =>
    !NOT_EXECUTED[example.line] && !isStart(example) && !isStop(example) && !isOfApps(example) && !isOfFleet(example) &&
    !isInTerminal(example) && !isMove(example) && !isConsole(example)
  ).filter(isFirstOfCommand)) {
    await t.test(`${line} (${from})`, async () => {
      await execute(scene, line)
      await settle(scene.deck)
    })
  }
})

test(`${rareOnly ? 'an example of each way to start' : 'every example that starts'} an app has it running`, async (t) => {
  const cwd = appFolder()
  for (const { from, line } of ALL.filter((example) =>
    isStart(example) && !isOfPrograms(example) && !isOfFleet(example) && !NOT_EXECUTED[example.line]
  ).filter(isFirstOfCommand)) {
    await t.test(`${line} (${from})`, async (t) => {
      const words = wordsOf(line)
      const [flags, args] = words.includes('--')
        ? [words.slice(1, words.indexOf('--')), words.slice(words.indexOf('--') + 1)]
        : [words.slice(1), []]
      const deck = await startDeckHere(t, null, { workers: 1, flags, args, cwd })
      await deck.untilStatus(({ readyWorkers, desiredWorkers }) => readyWorkers === desiredWorkers,
        'a cluster that is ready')
      assert.equal((await deck.stop()).code, 0)
    })
  }
})

rareTest('every example that stops an app has it stopped', async (t) => {
  for (const { from, line } of ALL.filter((example) => isStop(example) && !NOT_EXECUTED[example.line])) {
    await t.test(`${line} (${from})`, async (t) => {
      const cwd = tempFolder()
      const deck = await startReady(t, 'answers-with-pid.js', { workers: 1, dataDir: path.join(cwd, '.clusterdeck') })
      assert.deepEqual(await runCliHere(wordsOf(line), { cwd }), { code: 0, stdout: 'stopped\n',
        stderr: 'stopping: the workers finish their requests\n' })
      assert.equal((await deck.exited).code, 0)
    })
  }
})

rareTest('every example of several apps is about them', async (t) => {
  const entry = path.join(tempFolder(), 'app.mjs')
  writeFileSync(entry,
    `console.log('out'); await import(${
      JSON.stringify(pathToFileURL(path.join(FIXTURES, 'answers-with-pid.js')).href)
    })`)
  const apps = openApps(t, { shop: { entry }, mail: { entry, dependsOn: ['shop'] } })
  const names = () => apps.decks().map(({ name }) => name).sort()
  const isUp = ({ line }: { line: string }) => /^clusterdeck up\b/.test(line)
  // What stays in the foreground comes last.
  const ORDER = [/^clusterdeck up \w/, /^clusterdeck (?!up\b|down\b)/, /^clusterdeck down\b/, /^clusterdeck up -/,
    /^clusterdeck up$/]
  const rankOf = ({ line }: { line: string }) => ORDER.findIndex((pattern) => pattern.test(line))
  for (const { from, line } of ALL.filter((example) => isOfApps(example) && !isOfFleet(example)).sort((one, other) =>
    rankOf(one) - rankOf(other)
  )) {
    await t.test(`${line} (${from})`, async () => {
      assert.notEqual(rankOf({ line }), -1)
      const words = wordsOf(line)
      if (line === 'clusterdeck up') {
        await apps.run('down')
        const up = apps.spawn(words.join(' '))
        await up.says(/^mail \| is ready$/m)
        up.interrupt()
        assert.deepEqual(await up.exited, { code: 0, signal: null })
        return
      }
      if (isUp({ line })) await apps.run('down')
      else assert.equal((await apps.run('up --detach')).code, 0, 'there is something to tell of')
      if (words[0] === 'start') await apps.run(`stop ${words[1]}`)
      if (words[0] === 'rollback') await apps.run(`deploy ${words[1]} --wait`)
      const before = names()
      if (IS_ENDLESS.test(line)) return await interrupt(words, apps.cwd, apps.env)
      const { code, stdout, stderr } = await runCliHere(forApps(words), apps)
      assert.equal(code, codeOf(words), stderr)
      assert.notEqual(stdout, '')
      if (line.includes(' | jq ')) JSON.parse(stdout)
      if (isUp({ line })) assert.deepEqual(names(), ['mail', 'shop'])
      if (['down', 'stop', 'delete'].includes(words[0])) assert.notDeepEqual(names(), before)
    })
  }
})

/** As somebody types it who has two apps, is asked nothing, and leaves nothing behind that goes on. */
function forApps (words: string[]) {
  const typed = words.map((word) => word === 'r12' ? 'r1' : word)
  const flag = words[0] === 'delete' ? '--yes' : words[0] === 'restart' ? '--wait' : null
  return flag === null || words.includes(flag) ? typed : [...typed, flag]
}

/** @returns the folder of somebody who has an app in all the shapes of the examples */
function appFolder (): string {
  const cwd = tempFolder()
  const app = `#!/usr/bin/env node\nconsole.log('Listening on 3000')\nconsole.log('worker 1 is up')\nimport(${
    JSON.stringify(pathToFileURL(path.join(FIXTURES, 'answers-with-pid.js')).href)
  })`
  const files = { server: app,
    'package.json': '{ "scripts": { "start": "node app.js", "serve": "NODE_ENV=production next start" } }',
    'app.js': app, 'shop/package.json': '{ "main": "../app.js" }',
    'node_modules/next/package.json': '{ "bin": { "next": "next.js" } }', 'node_modules/next/next.js': app }
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(cwd, name)), { recursive: true })
    writeFileSync(path.join(cwd, name), text, { mode: 0o755 })
  }
  return cwd
}

/** A deck in whose folder somebody types; it has crashed once, and writes to both streams. */
async function open (t: TestContext): Promise<Scene> {
  const cwd = tempFolder()
  const { url, statuses } = await startReceiver(t)
  writeFileSync(path.join(cwd, 'clusterdeck.config.json'),
    JSON.stringify({
      alerts: [{ kind: 'webhook', url, secret: 'only between the two of us', events: ['master.waiting'] }],
      jobs: { nightly: { cron: '0 3 * * *', command: 'echo done' }, reindex: { command: 'echo done' },
        broken: { command: 'exit 1' } }
    }))
  writeFileSync(path.join(cwd, 'slack-url.txt'), url)
  writeFileSync(path.join(cwd, 'body.json'), '{ "text": "{{title}}" }')
  writeFileSync(path.join(cwd, 'dsn.txt'), url.replace('//', '//key@').replace(/\/?$/, '/1'))
  writeFileSync(path.join(cwd, 'package.json'), '{ "scripts": { "migrate": "echo migrated" } }')
  const app = path.join(cwd, 'app.js')
  const breakApp = (isBroken: boolean) => {
    const source = `console.log('out'); console.error('{"level":"error","msg":"payment refused"}'); require(${
      JSON.stringify(path.join(FIXTURES, 'dies-in-many-ways.cjs'))
    })`
    writeFileSync(app, isBroken ? 'throw new Error("not yet")' : source)
  }
  breakApp(false)
  createRepository(cwd).commit({ '.gitignore': '.clusterdeck\n' })
  const deck = await startReady(t, app, { workers: 1, dataDir: path.join(cwd, '.clusterdeck'), cwd })
  await fetch(`${await deck.appUrl()}/?kind=1`).catch(() => {})
  await deck.untilEvent('crash.group-new')
  await settle(deck)
  return { deck, cwd, statuses, breakApp }
}

/** @returns the apps of the examples run in place, which doctor has to find */
function codeOf ([command]: string[]): number {
  return command === 'doctor' ? 6 : 0
}

async function execute (scene: Scene, line: string) {
  const { deck, cwd } = scene
  let prepared = line
  for (const [pattern, from, to] of PREPARED) {
    if (pattern.test(line)) prepared = prepared.replace(from, String(typeof to === 'string' ? to : await to(scene)))
  }
  if (line.startsWith('curl ')) return await request(deck, prepared)
  assert.match(line, /^(source <\()?clusterdeck [^;&`$]+/,
    'expected a line that can be executed here, or to be told in NOT_EXECUTED why not')
  if (IS_ENDLESS.test(line)) return await interrupt(wordsOf(prepared), cwd)
  const others = MEANWHILE.filter(([pattern]) => pattern.test(line)).map(([, work]) => work(deck))
  const { code, stdout, stderr } = await runCliHere(wordsOf(prepared), { cwd })
  assert.equal(code, codeOf(wordsOf(prepared)), stdout + stderr)
  assert.notEqual(stdout, '')
  await Promise.all(others)
  if (line.includes(' | jq ')) {
    for (const each of stdout.includes('\n{') ? stdout.trim().split('\n') : [stdout]) JSON.parse(each)
  }
  if (line.startsWith('clusterdeck upgrade')) await deck.meetNext()
}

async function request (deck: Deck, line: string) {
  const { url, ...init } = requestOf(line, { '$(cat .clusterdeck/admin.token)': deck.token,
    'http://127.0.0.1:9777': deck.adminUrl })
  assert.ok(url.startsWith(`${deck.adminUrl}/`), url)
  const response = await fetch(url, init)
  assert.ok(response.ok, `${response.status} ${await response.text()}`)
}

async function interrupt (words: string[], cwd: string, env = process.env) {
  const child = spawn(process.execPath, [CLI, ...words], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'],
    timeout: PATIENCE_MS, killSignal: 'SIGKILL' })
  const exited = once(child, 'exit')
  await Promise.race([once(child.stdout, 'data'), exited])
  child.kill('SIGINT')
  const [code, signal] = await exited
  assert.ok(code === 0 || signal === 'SIGINT', `${code} ${signal}`)
}

/** What an example has begun is over, and nobody has to wait for it. */
async function settle (deck: Deck) {
  const { rollout } = await deck.status()
  // 409: it ends by itself.
  if (rollout) await deck.post(`/rollouts/${rollout.id}/abort`)
  await deck.untilStatus(
    ({ rollout, upgrade, desiredWorkers, readyWorkers, workers }) =>
      rollout === null && upgrade === null && readyWorkers === desiredWorkers && workers.length === desiredWorkers,
    'a cluster at rest'
  )
}

/** Not as the config file of the folder, which the examples after it would read. */
function importable ({ cwd }: Scene) {
  writeFileSync(path.join(cwd, 'ecosystem.config.js'),
    'module.exports = { apps: [{ script: \'app.js\', env_production: { NODE_ENV: \'production\' } }] }')
  return ' --output imported.mjs'
}

/** @returns a job that has failed */
async function aBrokenJob ({ deck }: Scene): Promise<string> {
  await post(deck, '/jobs/broken/runs')
  await deck.untilEvent('job.failed', { detail: { job: 'broken' } })
  return 'broken'
}

async function aWorker ({ deck }: Scene): Promise<string> {
  const { workers: [{ id }] } = await deck.status()
  return String(id)
}

/** @returns one that was replaced while it had a connection */
async function anOldWorker ({ deck }: Scene): Promise<string> {
  const port = Number(new URL(await deck.appUrl()).port)
  // So many that each worker has one, which it waits for.
  await Promise.all(Array.from({ length: 8 }, () => answeredConnection(port)))
  await post(deck, '/rollouts', { kind: 'restart' })
  const { workers } = await deck.untilStatus(({ workers }) => workers.some(isDraining), 'a worker that drains')
  return String(workers.find(isDraining)?.id)
}

/** One that is only open may be waiting for the next worker. */
async function answeredConnection (port: number) {
  const connection = net.connect(port, '127.0.0.1')
  connection.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await once(connection, 'data')
}

function isDraining ({ state }: { state: string }) {
  return state === 'draining'
}

/** @returns a rollout whose canary is on trial */
async function canary (deck: Deck, durationMs: number = 60_000): Promise<number> {
  const { id } = await post(deck, '/rollouts', { kind: 'deploy', strategy: { canary: { workers: 1, durationMs } } })
  await deck.untilStatus(({ rollout }) => rollout?.state === 'canary' && rollout.canaryEndsAt !== null, 'a canary')
  return id
}

/** One that waits for a person, and could go on now. */
async function heldRollout ({ deck, breakApp }: Scene) {
  breakApp(true)
  await post(deck, '/rollouts', { kind: 'deploy', strategy: { onFailure: 'hold' } })
  await deck.untilStatus(({ rollout }) => rollout?.state === 'held', 'a rollout that is held')
  breakApp(false)
}

/** @returns of a deploy that has failed */
async function aNotice ({ deck, breakApp }: Scene): Promise<string> {
  breakApp(true)
  await deck.rollout('deploy')
  breakApp(false)
  return String((await deck.api('/notices')).body.items[0].id)
}

async function failedDelivery ({ deck, statuses }: Scene): Promise<string> {
  statuses.push(404)
  const { id } = await post(deck, '/alerts/file-1/test')
  await until(
    async () =>
      (await deck.api('/alerts')).body.items.find((each) => each.id === 'file-1')?.deliveries.find((each) =>
        each.id === id
      )?.state === 'failed',
    'a delivery that has failed'
  )
  return String(id)
}

/** `state`: of the rollout that it waits for */
async function steer (deck: Deck, action: 'resume' | 'promote', state: 'paused' | 'canary') {
  const { rollout } = await deck.untilStatus(({ rollout }) => rollout?.state === state, `a rollout that is ${state}`)
  await post(deck, `/rollouts/${rollout?.id}/${action}`)
}

/** The deck has a worker on standby from now on. */
async function standby ({ deck }: Scene) {
  const tag = String((await deck.api('/config')).headers.get('etag'))
  await deck.api('/config', { method: 'PATCH', headers: { 'If-Match': tag }, body: JSON.stringify({ standby: 1 }) })
  await deck.untilStatus((status) => status.standby.ready === 1, 'a worker on standby')
}

async function post<P extends string> (deck: Deck, where: P, body: object = {}) {
  const { status, body: answer } = await deck.post(where, body)
  assert.ok(status < 300, `${where}: ${JSON.stringify(answer)}`)
  return answer
}
