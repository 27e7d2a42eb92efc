import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, existsSync, symlinkSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test from 'node:test'
import { commandsOf } from '../../../server/cli/help.ts'
import { createProgram } from '../../../server/cli/program.ts'
import { runCommandLine } from '../../../server/command-line.ts'
import { fallbackFolders } from '../../../server/system/fallback-folder.ts'
import { startAdmin, TOKEN } from '../../support/admin.ts'
import { CLI } from '../../support/deck.ts'
import { answerJson, deckFolder, serveMaster } from '../../support/deck-folder.ts'
import { wordsOf } from '../../support/examples.ts'
import { tempFolder } from '../../support/folder.ts'
import { lacksStrangers, OTHER_UID, startStranger } from '../../support/stranger.ts'
import { play } from '../../support/transcript.ts'
import { until } from '../../support/until.ts'
import { fake } from '../../support/fake.ts'
import type { TestContext } from 'node:test'
import type { AddressInfo } from 'node:net'

test('stop waits until the master is gone', async (t) => {
  const server = http.createServer((req, res) => {
    assert.deepEqual([req.method, req.url], asked++ === 1 ? ['POST', '/api/v1/stop'] : ['GET', '/healthz'])
    answerJson(res, asked === 2 ? 202 : 200, { state: 'stopping' })
    if (asked === 5) server.close()
  })
  let asked = 0
  const url = await listen(t, server)
  const { code, stdout } = await deckFolder()(`stop --url ${url} --token any`)
  assert.deepEqual([code, stdout, asked], [0, 'stopped\n', 5])
})

test('stop knows by its pid that a master of this machine is gone', async (t) => {
  const master = spawn('sleep', ['60'])
  const url = await serveMaster(t, (_req, res) => {
    if (master.exitCode === null) master.kill()
    answerJson(res, 202, { state: 'stopping' })
  })
  const { code } = await deckFolder({ adminUrl: url, pid: Number(master.pid) })('stop')
  assert.equal(code, 0)
  const alive = await deckFolder({ adminUrl: url, pid: process.pid })('stop --timeout 200ms')
  assert.equal(alive.code, 124)
})

test('without a master every command ends with 5', async () => {
  const cli = deckFolder()
  for (const command of ['status', 'restart', 'deploy', 'scale 2', 'history', 'open', 'stop']) {
    const { code, stdout, stderr } = await cli(command)
    assert.deepEqual([code, stdout], [5, ''], command)
    assert.match(stderr, /^clusterdeck: no master is running on .*\n$/)
  }
})

test('a master that died without cleaning up is no master', async () => {
  const gone = net.createServer().listen(0, '127.0.0.1')
  await once(gone, 'listening')
  const adminUrl = `http://127.0.0.1:${(gone.address() as AddressInfo).port}`
  await new Promise((resolve) => gone.close(resolve))
  assert.deepEqual(await deckFolder({ adminUrl })('status'), { code: 5, stdout: '',
    stderr: `clusterdeck: no master answers at ${adminUrl} (ECONNREFUSED)\n` })
})

test('a wrong token ends with 3', async (t) => {
  const { url } = await startAdmin(t)
  const { code, stderr } = await deckFolder({ adminUrl: url, token: 'wrong' })('status')
  assert.equal(code, 3)
  assert.match(stderr, /^clusterdeck: .+\n$/)
})

/** A master, and the tokens that it was told. */
async function serveSeen (t: TestContext) {
  const seen: (string | undefined)[] = []
  const url = await serveMaster(t, (req, res) => {
    seen.push(req.headers.authorization)
    answerJson(res, 200, { state: 'running' })
  })
  return { seen, url }
}

test('the token of this folder is sent to no other address', async (t) => {
  const { seen, url } = await serveSeen(t)
  const cli = deckFolder({ adminUrl: 'http://127.0.0.1:1' })
  assert.equal((await cli(`status --json --url ${url}`)).code, 3)
  assert.deepEqual(seen, [])
  assert.equal((await cli(`status --json --url ${url}`, { CLUSTERDECK_TOKEN: 'given' })).code, 0)
  assert.equal((await cli(`status --json --url ${url} --token flag`, { CLUSTERDECK_TOKEN: 'given' })).code, 0)
  assert.deepEqual(seen, ['Bearer given', 'Bearer flag'])
})

test('a token comes from a file, without what is blank around it; a flag comes before the variables', async (t) => {
  const { seen, url } = await serveSeen(t)
  const folder = tempFolder()
  writeFileSync(join(folder, 'token'), '\n  from-a-file\r\n')
  writeFileSync(join(folder, 'other'), 'from-another')
  const cli = deckFolder()
  const line = `status --json --url ${url}`
  await cli(`${line} --token-file ${folder}/token`, { CLUSTERDECK_TOKEN: 'given' })
  await cli(line, { CLUSTERDECK_TOKEN_FILE: `${folder}/other` })
  await cli(line, { CLUSTERDECK_TOKEN_FILE: `${folder}/other`, CLUSTERDECK_TOKEN: 'given' })
  await cli(`${line} --token flag`, { CLUSTERDECK_TOKEN_FILE: `${folder}/missing` })
  assert.deepEqual(seen, ['Bearer from-a-file', 'Bearer from-another', 'Bearer given', 'Bearer flag'])
})

test('a token that is none is refused by where it comes from, and not repeated', async (t) => {
  const { seen, url } = await serveSeen(t)
  const folder = tempFolder()
  writeFileSync(join(folder, 'blank'), ' \n')
  writeFileSync(join(folder, 'two'), 'secret\nsecret')
  const cli = deckFolder({ adminUrl: url })
  await play(`
    $ status --token-file ${folder}/none
    !! --token-file: expected a file with the token in it, received "${folder}/none" (ENOENT)
    $ status --token-file ${folder}
    !! --token-file: expected a file with the token in it, received "${folder}" (EISDIR)
    $ status --token-file ${folder}/blank
    !! --token-file ${folder}/blank: expected a token, received nothing
    $ status --token-file ${folder}/two
    !! --token-file ${folder}/two: expected a token, received blanks, or characters that no token has
    $ status --token secret --token-file ${folder}/two
    !! --token-file: expected without --token, received both`, cli)
  await play(`
    $ status
    !! CLUSTERDECK_TOKEN_FILE: expected a file with the token in it, received "${folder}/none" (ENOENT)`,
    (words) => cli(words, { CLUSTERDECK_TOKEN_FILE: `${folder}/none` }))
  await play(`
    $ status
    !! CLUSTERDECK_TOKEN: expected a token, received blanks, or characters that no token has`,
    (words) => cli(words, { CLUSTERDECK_TOKEN: 'secret\r\nx: y' }))
  assert.deepEqual(seen, [])
})

test('a connection that is closed as soon as it is open leads to no master either', async (t) => {
  for (const end of ['destroy', 'end', 'resetAndDestroy'] as const) {
    const url = await listen(t, net.createServer((socket) => socket.on('error', () => {})[end]()))
    const { code, stdout, stderr } = await deckFolder({ adminUrl: url })('status --timeout 5s')
    assert.deepEqual([code, stdout, stderr], [5, '', `clusterdeck: no master answers at ${url} (ECONNRESET)\n`], end)
  }
})

/** Of a master that cannot write to its data folder, and has announced itself elsewhere. */
function announceElsewhere (adminUrl: string) {
  const [cwd, runtime] = [tempFolder(), tempFolder()]
  writeFileSync(join(cwd, 'admin.token'), 'secret')
  const [place] = fallbackFolders(cwd, { XDG_RUNTIME_DIR: runtime })
  mkdirSync(place, { mode: 0o700 })
  writeFileSync(join(place, 'master.json'), JSON.stringify({ pid: process.pid, adminUrl }))
  return { cwd, place, env: { CLUSTERDECK_DATA_DIR: cwd, XDG_RUNTIME_DIR: runtime } }
}

test('a master that somebody else has announced in a folder of the right name is none, and gets no token', async (t) => {
  const { seen, url } = await serveSeen(t)
  const { place, env } = announceElsewhere(url)
  await deckFolder()('status --json', env)
  assert.deepEqual(seen, ['Bearer secret'], 'in a folder of our own it is ours')
  chmodSync(place, 0o777)
  assert.equal((await deckFolder()('status --json', env)).code, 5)
  assert.equal(seen.length, 1)
})

test('a dead master that is still told of in its folder does not hide the one that runs elsewhere', async (t) => {
  const { cwd, env } = announceElsewhere((await serveSeen(t)).url)
  writeFileSync(join(cwd, 'master.json'),
    JSON.stringify({ pid: spawnSync('true').pid, adminUrl: 'http://127.0.0.1:1' }))
  const { code, stdout } = await deckFolder()('status --json', env)
  assert.deepEqual([code, JSON.parse(stdout).state], [0, 'running'])
})

test('no command says a token to another user, who has the port of a master by now', { skip: lacksStrangers },
  async (t) => {
    const heard = await startStranger(t).listening
    const adminUrl = `http://127.0.0.1:${heard.port}`
    const [alive, dead] = [deckFolder({ adminUrl }), deckFolder({ adminUrl, pid: spawnSync('true').pid })]
    for (const line of ['status', 'logs --follow', 'stop', 'deploy --wait']) {
      // A busy machine may take its time to tell whose the port is.
      const { code, stderr } = await alive(`${line} --timeout 30s`)
      assert.deepEqual([code, stderr], [5,
        `clusterdeck: no master answers at ${adminUrl} (a process of another user (uid ${OTHER_UID}) answers there)\n`])
      assert.match((await dead(line)).stderr, /\(its master \(pid \d+\) has ended\)\n$/)
    }
    // He hears what somebody says to him.
    await deckFolder()(`status --url ${adminUrl} --token for-him --timeout 5s`)
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
      return answerJson(res, 401, { code: 'unauthenticated', detail: 'enough' }, 'application/problem+json')
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
  const here = (line: string, env = {}) => deckFolder()(line, { CLUSTERDECK_DATA_DIR: '', ...env }, cwd)
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
  const cli = deckFolder()
  assert.match((await cli(`history --json --data-dir ${place}`)).stderr,
    /a process of another user \(uid 54322\) answers there/)
  tell(his.port)
  await cli(`history --json --data-dir ${place}`)
  await until(() => his.text.includes('Bearer his'), 'his token')
  assert.doesNotMatch(theirs.text, /Bearer/)
})

test('something else on the port is no master', async (t) => {
  const url = await serveMaster(t,
    (_req, res) => res.writeHead(404, { 'content-type': 'text/html' }).end('<h1>nginx</h1>'))
  const { code, stderr } = await deckFolder({ adminUrl: url })('status')
  assert.deepEqual([code, stderr], [5,
    `clusterdeck: ${url} answers, but not as a clusterdeck master does (HTTP 404)\n`])
})

test('an error of a newer master is told with its text', async (t) => {
  const url = await serveMaster(t,
    (_req, res) => answerJson(res, 409, { code: 'from-the-future', detail: 'not now' }, 'application/problem+json'))
  assert.deepEqual(await deckFolder({ adminUrl: url })('restart'), { code: 4, stdout: '',
    stderr: 'clusterdeck: not now\n' })
})

test('a usage error says what was meant, in a line of stderr', async () => {
  await play(`
    $ statsu
    !! unknown command "statsu" (did you mean status?)
    $ status --jsn
    !! unknown option "--jsn" (did you mean --json?)
    $ start --wokers 3
    !! unknown option "--wokers" (did you mean --workers?)
    $ start app.js extra
    !! too many arguments for "start"… Arguments for the app go after --.
    $ scale
    !! scale: expected an integer from 1 to 256, received none
    $ history --limit 0
    !! --limit: expected an integer from 1 to 1000, received "0"
    $ start --workers none
    !! --workers: expected an integer from 1 to 256 or "max", received "none"
    $ start nix.js
    !! entry: expected a file, received …nix.js, which does not exist
    $ status --url ftp://x
    !! --url: expected an address such as http://127.0.0.1:9777, received "ftp://x"
    $ status --timeout soon
    !! --timeout: expected a duration such as 500ms, 30s, 5m or 1h, received "soon"`,
    deckFolder({ adminUrl: 'http://127.0.0.1:1' }))
})

test('without a command the help goes to stderr, as an error', async () => {
  const { code, stdout, stderr } = await deckFolder()('')
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /^Usage: clusterdeck/)
})

test('CLUSTERDECK_TIMEOUT is refused by its name', async () => {
  assert.equal((await deckFolder({ adminUrl: 'http://127.0.0.1:1' })('status', { CLUSTERDECK_TIMEOUT: 'soon' })).stderr,
    'clusterdeck: CLUSTERDECK_TIMEOUT: expected a duration such as 500ms, 30s, 5m or 1h, received "soon"\n')
})

test('help and version go to stdout and succeed', async () => {
  const cli = deckFolder()
  assert.match((await cli('--version')).stdout, /^\d+\.\d+\.\d+\n$/)
  for (const line of ['--help', 'help start', 'start --help', 'history -h']) {
    const { code, stdout, stderr } = await cli(line)
    assert.deepEqual([code, stderr], [0, ''], line)
    assert.match(stdout, /^Usage: clusterdeck/)
  }
  assert.match((await cli('help start')).stdout,
    /--ready-timeout-ms <ms> +how long .*default: 30000; env: CLUSTERDECK_READY_TIMEOUT_MS/)
})

test('all of a long output comes through a pipe, however slowly it is read', async (t) => {
  const url = await serveMaster(t,
    (_req, res) =>
      answerJson(res, 200, { items: Array.from({ length: 1000 }, (_, id) => ({ id, message: 'm'.repeat(1000) })),
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
    const cli = deckFolder({ adminUrl: await serveMaster(t, (_req, res) => answerJson(res, 200, body)) })
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
  const cli = deckFolder({ adminUrl: await serveMaster(t, (_req, res) => answerJson(res, 200, evil)) })
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
  const url = await serveMaster(t, async (req, res) => {
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
    answerJson(res, /\/(runs|releases)$/.test(path) && body ? 201 : answer.status, { id: 1,
      ...poisoned(known) as object, ...(isAwaited && { state: 'failed', done: true, reason: EVIL }) })
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

function listen (t: TestContext, server: http.Server | net.Server): Promise<string> {
  t.after(() => {
    server.close()
    if ('closeAllConnections' in server) server.closeAllConnections()
  })
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  )
}
