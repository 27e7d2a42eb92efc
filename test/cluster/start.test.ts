import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { after, describe, test } from 'node:test'
import { runCliHere } from '../support/cli-here.ts'
import { FIXTURES, runCli, startReady } from '../support/deck.ts'
import { startDeckHere, startReadyHere } from '../support/deck-here.ts'
import { tempFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { rareOnly, rareTest } from '../support/rare.ts'

const fixture = (name: string) => path.join(FIXTURES, name)
const APP = fixture('answers-with-pid.js')

describe('start', { concurrency: 2 }, () => {
  test('prints the app\'s and the admin\'s address once every worker is ready; a link that signs in is for a terminal alone', async (t) => {
    const deck = await startReadyHere(t, 'answers-with-pid.js')
    assert.match(deck.output.stdout, /2 workers ready in \d+ ms/)
    assert.match(deck.output.stdout, new RegExp(`app +${await deck.appUrl()}\n`))
    assert.match(deck.output.stdout,
      new RegExp(`admin +${deck.adminUrl}\n +\\(\`clusterdeck open\` prints a link that signs in\\)\n`))
    assert.doesNotMatch(deck.output.stdout + deck.output.stderr, /code=/)
  })

  for (const files of [26, 255]) {
    test(`says in one line that it may not open enough files: ${files}`, async () => {
      const { code, stderr } = await runCli(['start', APP, '--admin-port', '0', '--data-dir', tempFolder()], {
        launch: { through: ['/bin/sh', '-c', `ulimit -n ${files}; exec "$@"`, 'sh'] }
      })
      // With the fewest, what would tell it may not even be read.
      assert.match(stderr, files === 26
        ? /^clusterdeck: expected to be allowed to open at least 256 files \(ulimit -n\), received (26|EMFILE)\n$/
        : /^clusterdeck: expected .* received 255\n$/)
      assert.equal(code, 1)
    })
  }

  rareTest('starts its first worker alone where none has ever been ready, and all at once from then on', async (t) => {
    const folder = tempFolder()
    const order = async () => {
      const deck = await startReadyHere(t, 'answers-with-pid.js', { workers: 3, dataDir: folder })
      const events = (await deck.history('type=worker.forked,worker.ready&limit=6')).reverse()
      await deck.stop()
      return events.map(({ type }) => type.slice('worker.'.length))
    }
    assert.deepEqual(await order(), ['forked', 'ready', 'forked', 'forked', 'ready', 'ready'])
    assert.deepEqual((await order()).slice(0, 3), ['forked', 'forked', 'forked'])
  })

  test('makes the data folder: files that only their owner can read, and master.json while it runs', async (t) => {
    const folder = path.join(tempFolder(), 'data')
    const deck = await startDeckHere(t, 'answers-with-pid.js', { dataDir: folder })
    const master = JSON.parse(await readFile(path.join(folder, 'master.json'), 'utf8'))
    assert.deepEqual(Object.keys(master), ['pid', 'startTime', 'keeper', 'pidNamespace', 'adminUrl', 'startedAt'])
    assert.equal(master.pid, deck.masterPid)
    for (const name of ['admin.token', 'history.db', 'history.db-wal', 'master.json']) {
      assert.equal((await stat(path.join(folder, name))).mode & 0o777, 0o600, name)
    }
    await deck.until({ ready: 2 })
    await deck.stop()
    await assert.rejects(readFile(path.join(folder, 'master.json')), { code: 'ENOENT' })
  })

  rareTest('goes on with ids where the last master ended, and keeps its history and its token', async (t) => {
    const folder = tempFolder()
    const first = await startReadyHere(t, 'answers-with-pid.js', { dataDir: folder })
    await first.rollout('deploy')
    await first.stop()
    const second = await startDeckHere(t, 'answers-with-pid.js', { dataDir: folder })
    const { release, lastEventId } = await second.until({ ready: 2 })
    assert.equal(release.id, 'r3')
    assert.equal(second.token, first.token)
    assert.equal((await second.rollout('deploy')).id, 2)
    const events = await second.history('limit=1000')
    assert.equal(new Set(events.map(({ id }) => id)).size, events.length)
    assert.ok(events.length >= lastEventId, 'nothing is lost')
    // A busy machine has a master wait for its workers.
    assert.deepEqual(
      events.filter(({ type }) => type.startsWith('master.') && type !== 'master.waiting').map(({ type }) => type)
        .reverse(),
      ['master.started', 'master.stopped', 'master.started']
    )
  })

  const IN_USE =
    /^clusterdeck: 127\.0\.0\.1:(\d+) is in use \(EADDRINUSE\): .* \(pid \d+.*\) listens there; without a gap, it is replaced by: clusterdeck adopt --port \1\n$/
  type Refusal = { args: string[], env?: Record<string, string>, isReal?: boolean }
  /** Of each exit code one in a process of its own, which is the keeper's to end. */
  const refusals: [string, () => Promise<Refusal> | Refusal, number, RegExp, (false | string)?][] = [[
    'an entry that does not exist',
    () => ({ args: ['no-such-app.js'], isReal: true }),
    2,
    /^clusterdeck: entry: expected .*received .*no-such-app\.js.*\n$/
  ], ['an admin port in use', async () => ({ args: [APP, '--admin-port', String(await busyPort())] }), 1,
    /^clusterdeck: admin\.port: expected a free port.*in use\n$/], ['an app port in use',
    async () => ({ args: [fixture('takes-a-port-in-use.js'), '--admin-port', '0'],
      env: { PORT: String(await busyPort()) }, isReal: true }), 1, IN_USE], ['a second app port in use',
    async () => ({ args: [fixture('listens-twice.js'), '--admin-port', '0'],
      env: { PORT: String(await freePort()), SECOND_PORT: String(await busyPort()) }, isReal: true }), 1, IN_USE,
    rareOnly], ['a data folder that is a file', async () => ({ args: [APP, '--data-dir', await aFile()] }), 1,
    /^clusterdeck: dataDir: expected a folder that can be written, received .* \((ENOTDIR|EEXIST)\)\n$/], [
    'an unknown flag',
    () => ({ args: [APP, '--worker', '3'] }),
    2,
    /--workers/
  ], ['a number of workers that is none', () => ({ args: [APP, '--workers', 'three'] }), 2,
    /--workers: expected .*received .*three/]]
  for (const [what, prepare, code, message, skip = false] of refusals) {
    test(`${what}: one clear line on stderr, exit code ${code}, no stack`, { skip }, async () => {
      const { args, env, isReal } = await prepare()
      const result = await (isReal ? runCli : runCliHere)(['start', ...args], { cwd: tempFolder(),
        env: { CLUSTERDECK_WORKERS: args.includes('--workers') ? undefined : '2', ...env } })
      assert.equal(result.code, code, result.stderr)
      assert.match(result.stderr, message)
      assert.doesNotMatch(result.stderr + result.stdout, /^\s+at /m)
    })
  }

  test('a data folder that cannot be written: one clear line, exit code 1', {
    skip: process.getuid?.() === 0 && 'root may write everywhere'
  }, async () => {
    const folder = tempFolder()
    await chmod(folder, 0o500)
    const { code, stderr } = await runCli(['start', APP, '--data-dir', path.join(folder, 'data')])
    assert.equal(code, 1)
    assert.match(stderr, /^clusterdeck: dataDir: expected a folder that can be written/)
  })

  rareTest('goes on when nobody reads its output any more', async (t) => {
    const deck = await startReady(t, 'answers-with-pid.js', { workers: 1 })
    deck.child.stdout.destroy()
    for (const kind of ['restart', 'restart'] as const) assert.equal((await deck.rollout(kind)).state, 'succeeded')
    assert.equal((await deck.status()).state, 'running')
  })

  test('a second master on one data folder is told who runs, with and without a keeper, and the first goes on', async (t) => {
    const deck = await startReadyHere(t, 'answers-with-pid.js')
    for (const flags of [[], ['--no-keeper']]) {
      const words = ['start', APP, '--admin-port', '0', '--data-dir', deck.folder, ...flags]
      assert.deepEqual(await runCli(words), { code: 1, stdout: '',
        stderr: `clusterdeck: a master (pid ${deck.masterPid}, ${deck.adminUrl}) already runs on this data folder\n` })
    }
    assert.equal((await deck.status()).readyWorkers, 2)
  })
})

async function busyPort () {
  const server = net.createServer().listen(0, '127.0.0.1').unref()
  after(() => server.close())
  await once(server, 'listening')
  return (server.address() as net.AddressInfo).port
}

async function aFile () {
  const file = path.join(tempFolder(), 'file')
  await writeFile(file, '')
  return file
}
