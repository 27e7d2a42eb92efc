import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { writeRecord } from '../support/records.ts'
import { hostFolder } from '../../server/system/host-folder.ts'
import { tempFolder, writeFiles } from '../support/folder.ts'
import { findProcesses } from '../support/leftovers.ts'
import { until } from '../support/until.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const support = (name: string) => new URL(`../support/${name}.ts`, import.meta.url).href

/** What the next file would meet, or the machine would keep. */
const LEAVES = `
  import { spawn } from 'node:child_process'
  import { writeFileSync } from 'node:fs'
  import net from 'node:net'
  import os from 'node:os'
  import path from 'node:path'
  import { test } from 'node:test'
  test('leaves much', () => {
    process.env.LEFT_HERE = 'it'
    process.on('SIGUSR2', () => {})
    net.createServer().listen(0).unref()
    spawn('sleep', ['654'], { env: {}, detached: true, stdio: 'ignore' }).unref()
    writeFileSync(path.join(os.tmpdir(), 'beside'), '')
    process.chdir('/')
  })
`
const IN_THE_WAY = `
  import { test } from 'node:test'
  import { openBrowser } from '${support('browser')}'
  import { startDeck } from '${support('deck')}'
  test('never ends', async (t) => {
    const [deck] = await Promise.all([startDeck(t, 'hello.js'), openBrowser()])
    await deck.until({ ready: 2 })
    console.log('it runs')
    await new Promise(() => { setInterval(() => {}, 1000) })
  })
`
/** What tests give a command by no more than its data folder, by nothing at all, and what its child would do. */
const MEETS_THE_USER = `
  import assert from 'node:assert/strict'
  import { spawn } from 'node:child_process'
  import os from 'node:os'
  import { test } from 'node:test'
  import { runCommandLine } from '${new URL('../../server/command-line.ts', import.meta.url).href}'
  import { hostFolder } from '${new URL('../../server/system/host-folder.ts', import.meta.url).href}'
  import { CLI } from '${support('deck')}'
  const stream = { write () {} }
  test('meets nobody', async () => {
    assert.equal(os.userInfo().homedir, process.env.HOME_OF_ACCOUNT)
    assert.ok(!hostFolder({}).startsWith(String(process.env.HOME_OF_ACCOUNT)))
    assert.equal(await runCommandLine(['start', 'planted', 'extra'], { stdout: stream, stderr: stream, env: {}, cwd: process.cwd() }), 2)
    for (const env of [{}, { PATH: process.env.PATH }]) assert.throws(() => spawn(process.execPath, [CLI, 'host'], { env }), /without HOME/)
  })
`
/** The first time it fails, the second time it hangs. */
const BY_CHANCE = `
  import { appendFileSync, readFileSync } from 'node:fs'
  import { test } from 'node:test'
  test('sometimes', async () => {
    const times = new URL('times', import.meta.url)
    appendFileSync(times, '.')
    const { length } = readFileSync(times)
    if (length === 1) throw new Error('by chance')
    if (length === 2) await new Promise(() => { setInterval(() => {}, 1000) })
  })
`
const isPossible = process.platform === 'linux' &&
  spawnSync('unshare', ['--user', '--map-root-user', '--mount', 'true']).status === 0

describe('test/run.ts', { concurrency: true }, () => {
  test('names who has left a variable, a working folder, a listener, a server, a process or a file', async (t) => {
    const { code, stdout } = await run(t, LEAVES).ended
    const said = /leaves\.test\.js has left (.*)/.exec(stdout)?.[1].split('; ') ?? []
    assert.deepEqual([code, said.map((each) => each.replaceAll(/\d+|\/\S*\//g, '#'))], [1, ['the variable LEFT_HERE',
      'the working folder /', 'a listener of the process for SIGUSR#', 'a server at port #', 'the process #, sleep #',
      'the file #beside']], stdout)
  })

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`leaves no lane, no browser, no deck and no file behind when npm test is ended by ${signal}`, async (t) => {
      const { child, folder, mark, ended } = run(t, IN_THE_WAY, ['npm', 'test', '--'])
      await Promise.race([ended.then(({ stdout }) => assert.fail(stdout)), new Promise((resolve) =>
        child.stdout.on('data', (chunk) => {
          if (String(chunk).includes('it runs'))
            resolve(null)
        })
      )])
      const commands = findProcesses(mark).map(({ command }) =>
        command
      ).join('\n')
      for (const part of ['lane.ts', 'chromium', 'cli.js start', 'hello.js'])
        assert.ok(commands.includes(part), `${part} in ${commands}`)
      child.kill(signal)
      await ended
      await until(() => findProcesses(mark).length === 0, () =>
        `the end of ${findProcesses(mark).map(({ command }) => command)}`)
      assert.deepEqual(readdirSync(folder), ['leaves.test.js'])
    })
  }

  test('meets no host of the account, also where a command is given no home', {
    skip: !isPossible && 'an account needs a namespace of its own to have another home'
  }, async (t) => {
    const home = tempFolder()
    writeFiles(home, { '.local/state/clusterdeck/admin.token': 'token',
      'planted.js': `require('node:fs').writeFileSync(${JSON.stringify(path.join(home, 'it-was-started'))}, '')`,
      passwd: `${os.userInfo().username}:x:0:0::${home}:/bin/sh\n` })
    writeRecord(hostFolder({ HOME: home }), { name: 'planted', dataDir: path.join(home, 'data'), wish: 'stopped',
      order: { cwd: home, flags: { entry: 'planted.js', workers: '1' } } })
    const before = readdirSync(home, { recursive: true }).sort()
    const { code, stdout } = await run(t, MEETS_THE_USER, ['unshare', '--user', '--map-root-user', '--mount', 'sh',
      '-c', `mount --bind ${home}/passwd /etc/passwd && exec "${process.execPath}" test/run.ts "$1"`, 'sh'], {
      HOME: undefined,
      HOME_OF_ACCOUNT: home
    }).ended
    assert.equal(code, 0, stdout)
    assert.deepEqual(readdirSync(home, { recursive: true }).sort(), before)
    assert.equal(existsSync(path.join(home, 'it-was-started')), false)
  })
})

test('npm run flaky tells what failed how often and in which order, and goes on with the run in which it was stopped', async (t) => {
  const folder = tempFolder()
  const command = ['npm', 'run', 'flaky', '--', '3', '--load', '1', '--state', path.join(folder, 'state.json')]
  const first = run(t, BY_CHANCE, command)
  await until(
    () => existsSync(path.join(first.folder, 'times')) && statSync(path.join(first.folder, 'times')).size === 2,
    'the second run'
  )
  first.child.kill('SIGTERM')
  const [begun, { code, stdout }] = [await first.ended, await run(t, BY_CHANCE, command, {}, first.folder).ended]
  const seedsOf = (text: string) =>
    [...text.matchAll(/^run (\d) of 3, seed (\d+)$/gm)].map(([, number, seed]) => `${number} ${seed}`)
  const [one, two] = seedsOf(begun.stdout)
  assert.deepEqual([code, seedsOf(stdout)[0], seedsOf(stdout).length], [1, two, 2], stdout)
  assert.match(stdout, new RegExp(`^1 of 3 +\\S*leaves\\.test\\.js: sometimes +${one.slice(2)} +by chance$`, 'm'))
})

/** Runs a test file as a user does. `command`: that is given the file. */
function run (t: TestContext, code: string, [program, ...args]: string[] = [process.execPath, 'test/run.ts'],
  env: Record<string, string | undefined> = {}, folder: string = tempFolder())
{
  const file = path.join(folder, 'leaves.test.js')
  writeFiles(folder, { 'leaves.test.js': code })
  const own = { ...process.env, TMPDIR: folder, TEST_OF_RUNNER: folder, TEST_RUN: undefined, TEST_PLACE: undefined,
    ...env }
  const child = spawn(program, [...args, file], { cwd: ROOT, env: own, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGTERM'))
  const ended = Promise.all([once(child, 'exit'), text(child.stdout)]).then(([[exitCode], stdout]) => ({ code: exitCode,
    stdout })
  )
  return { child, folder, mark: `TEST_OF_RUNNER=${folder}`, ended }
}
