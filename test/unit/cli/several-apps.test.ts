import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createProgram } from '../../../server/cli/program.ts'
import { startFakeHost, type FakeHost } from '../../support/fake-host.ts'
import { tempFolder } from '../../support/folder.ts'
import { fake } from '../../support/fake.ts'
import { rareOnly } from '../../support/rare.ts'
import type { AppView } from '../../../server/host/api-apps.ts'

/** The folder of no app. */
const NOWHERE = tempFolder()

/** Two that run, one that an operator has stopped, one that cannot be started. */
const APPS: Record<string, Partial<AppView>> = { shop: {}, mail: {}, db: { state: 'stopped' },
  bad: { state: 'failed', reason: 'workers: expected an integer, received "many"' } }
const BAD = 'clusterdeck: bad has failed: workers: expected an integer, received "many" (clusterdeck start bad)\n'

/**
 * A row for each command: words beside the names of apps; with what its result for one app begins, and whether that is
 * a block and not a line; what is where in its JSON; what --all comes to, where one app of the host has failed; what is
 * to be there before.
 */
type Result = Record<'proxy' | 'readyWorkers' | 'text' | 'problems' | 'kind' | 'desiredWorkers' | 'state', unknown> & {
  items: { id: string, type: string }[],
  path: string
}
type Row = {
  words?: string,
  says: string,
  isBlock?: true,
  json: (result: Result) => unknown,
  is: unknown,
  /** the apps that --all means; default: shop and mail, and the failed one, which is told */
  all?: string[],
  needsName?: true,
  /** with what its result begins where it is for the whole host, in the folder of no app */
  nowhere?: string,
  /** its exit code; default: 0 */
  code?: number,
  before?: (host: FakeHost) => unknown
}

/** These have words of their own beside names of apps, and tests that go with them. */
const OWN_WORDS = ['run', 'jobs', 'top']

const ROWS: Record<string, Row> = {
  status: { says: 'health   All 2 workers are ready\n', isBlock: true, json: ({ readyWorkers }) => readyWorkers,
    is: 2 },
  logs: { says: '1 stdout | hello\n', json: ({ text }) => text, is: 'hello', before: writeLogs },
  history: { says: 'ID  TIME ', isBlock: true, json: ({ items }) => items.at(-1)?.type, is: 'keeper.lost',
    before: publishEvent, nowhere: 'APP   ID  TIME ' },
  proxy: { words: 'nginx', says: '# For nginx', json: ({ proxy }) => proxy, is: 'nginx' },
  routes: { says: 'no requests\n', json: ({ items }) => items.length, is: 0 },
  crashes: { says: 'no crashes\n', json: ({ items }) => items.length, is: 0 },
  doctor: { says: '2 problems, 1 of 5 checks passed\nERROR ', isBlock: true, json: ({ problems }) => problems, is: 2,
    code: 6 },
  releases: { says: 'RELEASE  OUTCOME ', isBlock: true, json: ({ items: [{ id }] }) => id, is: 'r1' },
  restart: { says: 'rollout 1 (restart) rolling: 0 of 2 workers replaced\n', json: ({ kind }) => kind, is: 'restart' },
  deploy: { says: 'rollout 1 (deploy) rolling: 0 of 2 workers replaced\n', json: ({ kind }) => kind, is: 'deploy' },
  rollback: { words: 'r1', says: 'rollout 1 (rollback) rolling: 0 of 2 workers replaced\n', json: ({ kind }) => kind,
    is: 'rollback' },
  scale: { words: '3', says: '3 workers wanted\n', json: ({ desiredWorkers }) => desiredWorkers, is: 3 },
  stop: { says: 'stopped\n', json: ({ state }) => state, is: 'stopped', all: ['bad', 'mail', 'shop'] },
  start: { says: 'is ready\n', json: ({ state }) => state, is: 'running', all: ['bad', 'db', 'mail', 'shop'],
    needsName: true },
  describe: { says: 'app      shop\nstate    running\n', isBlock: true, json: ({ state }) => state, is: 'running',
    all: ['bad', 'db', 'mail', 'shop'] },
  delete: { words: '--yes', says: 'deleted; its data folder stays: /', json: ({ path }) => path.slice(0, 6),
    is: '/apps/', all: ['bad', 'db', 'mail', 'shop'], needsName: true }
}

test('each command that takes apps is in the table', async () => {
  const { commands } = await createProgram(['help'], fake({}), { exitCode: 0 })
  const all = commands.filter(({ registeredArguments: [first] }) => first?.name() === 'app' && first.variadic)
  assert.deepEqual(Object.keys(ROWS).sort(),
    ['start', ...all.map((command) => command.name())].filter((name) => !OWN_WORDS.includes(name)).sort())
})

for (const [command, row] of Object.entries(ROWS)) {
  const line = (rest: string) => [command, rest, row.words].filter(Boolean).join(' ')
  const all = row.all ?? ['mail', 'shop']

  test(`${command} is for no app, one, several, all or an unknown one, in text`, async (t) => {
    const host = await startFakeHost(t, APPS)
    const run = openRun(host, row)
    const [nowhere, here, one, several, every, unknown] = [await run(line(''), NOWHERE),
      await run(line(''), host.view('shop')?.cwd), await run(line('shop')), await run(line('shop mail')),
      await run(line('--all')), await run(line('shop mial'))]
    const refusal = command === 'start'
      ? `entry: expected a file, or a package.json with "main", a script "start" or "bin" in ${NOWHERE}, received neither`
      : row.needsName
      ? `${command}: expected an app, or --all, received none`
      : 'app: expected one of bad, db, mail, shop, as this is the folder of none, received none'
    if (row.nowhere) assert.deepEqual([nowhere.code, nowhere.stdout.startsWith(row.nowhere)], [0, true], nowhere.stdout)
    else assert.deepEqual(nowhere, { code: 2, stdout: '', stderr: `clusterdeck: ${refusal}\n` })
    if (row.needsName) assert.equal(here.code, 2)
    for (const { code, stdout, stderr } of row.needsName ? [one] : [here, one]) {
      assert.equal(code, row.code ?? 0, stderr)
      assert.ok(stdout.startsWith(row.says), stdout)
    }
    assert.equal(several.code, row.code ?? 0)
    checkSeveral(several.stdout, ['shop', 'mail'], ['shop', 'mail'])
    assert.deepEqual([every.code, every.stderr.endsWith(BAD)], row.all ? [0, false] : [5, true], every.stderr)
    checkSeveral(every.stdout, all, row.all ?? ['bad', ...all])
    assert.deepEqual(unknown, { code: 2, stdout: '',
      stderr:
        `clusterdeck: ${command}: expected some of bad, db, mail, shop, received "mial" (did you mean "mail"?)\n` })
  })

  test(`${command} is for no app, one, several, all or an unknown one, as JSON`, {
    skip: command !== 'status' && rareOnly
  }, async (t) => {
    const host = await startFakeHost(t, APPS)
    const run = openRun(host, row)
    const [one, several, every, unknown] = [await run(line('shop --json')), await run(line('shop mail --json')),
      await run(line('--all --json')), await run(line('mial --json'))]
    assert.equal(one.code, row.code ?? 0)
    assert.deepEqual(row.json(JSON.parse(one.stdout)), row.is)
    const rows = JSON.parse(several.stdout)
    assert.deepEqual([several.code, rows.map(({ app }: { app: string }) => app)], [row.code ?? 0, ['shop', 'mail']])
    for (const { result } of rows) assert.deepEqual(row.json(command === 'logs' ? result[0] : result), row.is)
    const list = JSON.parse(every.stdout)
    assert.equal(every.code, row.all ? 0 : 5)
    assert.deepEqual(
      list.map(({ app, error }: { app: string, error?: { code: string } }) => [app, error?.code ?? null]),
      (row.all ?? ['bad', ...all]).map((name) => [name, row.all || name !== 'bad' ? null : 'app-not-running'])
    )
    assert.deepEqual([unknown.code, unknown.stdout], [2, ''])
  })

  /** `names`: of those that have a result */
  function checkSeveral (stdout: string, names: string[], asked: string[]) {
    if (command === 'status')
      assert.deepEqual(stdout.trimEnd().split('\n').map((text) => text.split(' ')[0]), ['NAME', ...asked])
    else if (command === 'logs')
      assert.deepEqual(stdout.split('\n').filter(Boolean).sort(), names.map((name) =>
        `${name} | ${row.says.trim()}`
      ).sort())
    else if (command === 'proxy')
      assert.deepEqual(stdout.match(/server_name .*/g), names.map((name) => `server_name ${name}.example.com;`))
    else if (row.isBlock)
      assert.deepEqual(stdout.split('\n').filter((text) => /^\w+:$/.test(text)), names.map((name) => `${name}:`))
    else assert.deepEqual(
        stdout.trimEnd().split('\n').map((text, index) => text.startsWith(`${names[index]}: ${row.says.trim()}`)),
        names.map(() => true),
        stdout
      )
  }
}

test('upgrade is of the host, with all of its apps, unless a deck of its own is meant', async (t) => {
  const host = await startFakeHost(t, { bad: APPS.bad, db: APPS.db, shop: {} })
  const upgrades = () => host.apps.orders.filter(({ type }) => type === 'upgrade-host')
  const cwds = [NOWHERE, host.view('db')?.cwd, host.view('shop')?.cwd]
  for (const [index, cwd] of cwds.entries()) {
    assert.deepEqual(await host.cli('upgrade --note autumn --node /opt/node', { cwd }), { code: 0,
      stdout: 'upgrade started\n', stderr: '' })
    assert.deepEqual(upgrades()[index].more, { execPath: '/opt/node', note: 'autumn' })
  }
  const own = tempFolder()
  mkdirSync(path.join(own, '.clusterdeck'), { mode: 0o700 })
  for (const [line, cwd] of [['upgrade -n db', NOWHERE], ['upgrade', own]])
    assert.equal((await host.cli(line, { cwd })).code, 5, 'another deck is meant, which does not run')
  assert.equal(upgrades().length, cwds.length)
  const wanted = [{ answers: [{ upgrade: {} }, { pid: 4001, version: '2.0.0' }], code: 0,
    stdout: /^upgraded to clusterdeck 2\.0\.0 on Node v\S+ \(pid 4001\)\n$/,
    stderr: /^upgrade started: the next master starts its workers\n$/ }, {
    answers: [{ upgradeFailure: { at: '2026-01-02T00:00:00.000Z', message: 'shop: worker 7 exited' } }],
    code: 1,
    stdout: /^$/,
    stderr: /the upgrade failed: shop: worker 7 exited/
  }]
  for (const { answers, code, ...output } of wanted) {
    host.changeAbout({}, ...answers)
    const ended = await host.cli('upgrade --wait', { cwd: NOWHERE })
    assert.equal(ended.code, code)
    assert.match(ended.stdout, output.stdout)
    assert.match(ended.stderr, output.stderr)
  }
})

/** Runs a command on a host that is as at first. */
function openRun (host: FakeHost, { before }: Row) {
  return async (line: string, cwd: string = NOWHERE) => {
    for (const [name, fields] of Object.entries(APPS)) {
      if (host.view(name)?.state !== (fields.state ?? 'running'))
        host.put(name, fields)
    }
    for (const name of ['shop', 'mail']) host.deck(name).set({ rollout: null })
    await before?.(host)
    return await host.cli(line, { cwd })
  }
}

function writeLogs (host: FakeHost) {
  for (const name of ['shop', 'mail'])
    writeFileSync(path.join(host.deck(name).logs.folder, 'slot-1.stdout.log'), 'hello\n')
}

function publishEvent (host: FakeHost) {
  for (const name of ['shop', 'mail'])
    if (host.deck(name).snapshot().lastEventId === 0)
      host.deck(name).events.publish({ type: 'keeper.lost', message: 'the keeper is gone' })
}
