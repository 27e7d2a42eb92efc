import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { programAt, turnsOfPm2 } from '../../../server/cli/adoptable.ts'
import { tempFolder } from '../../support/folder.ts'
import { runCliHere } from '../../support/cli-here.ts'
import { freePort } from '../../support/ports.ts'
import { play } from '../../support/transcript.ts'
import { fake } from '../../support/fake.ts'
import type { Terminal } from '../../../server/cli/program.ts'

const skip = process.platform === 'linux' ? false : 'it reads /proc'

/** A folder with a program that runs in it. */
async function runProgram (t: TestContext, env: Record<string, string> = {}) {
  const cwd = realpathSync(tempFolder())
  writeFileSync(path.join(cwd, 'app.cjs'),
    'require("http").createServer().listen(0, "127.0.0.1", function () { console.log(this.address().port) })')
  const child = spawn(process.execPath, ['--no-warnings', 'app.cjs', '--level', '3'], { cwd,
    env: { PATH: process.env.PATH, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => {
    child.kill('SIGKILL')
  })
  const [line] = await once(child.stdout!, 'data')
  const terminal = fake<Terminal>({ cwd, env: { PATH: process.env.PATH }, stderr: { write: () => true } })
  return { cwd, child, pid: Number(child.pid), port: Number(line), terminal }
}

test('what listens on a port is told to the host as it was started, with its variables, and is asked to end by SIGTERM',
  { skip }, async (t) => {
  const { cwd, child, pid, port } = await runProgram(t, { LEVEL: 'high' })
  const { order, processes, listening, isAlone, stop, stopText, afterwards } = await programAt({ port: String(port) })
  const { CLUSTERDECK_SHELL: shell, CLUSTERDECK_TYPED_NODE: node, ...env } = order.env ?? {}
  assert.deepEqual({ ...order, env }, { cwd,
    flags: { entry: path.join(cwd, 'app.cjs'), args: ['--level', '3'], execArgv: ['--no-warnings'], workers: '1' },
    env: { PATH: process.env.PATH, LEVEL: 'high' } })
  assert.equal(parseInt(JSON.parse(shell).umask, 8), process.umask())
  assert.deepEqual([processes.map((each) => each.pid), listening, isAlone, stopText, afterwards], [[pid], [pid], true,
    `kill -TERM ${pid}`, []])
  writeFileSync(path.join(cwd, 'clusterdeck.config.json'), '{ "entry": "app.cjs" }')
  const { order: ofFile } = await programAt({ pid: String(pid), name: 'shop' })
  assert.deepEqual([ofFile.name, ofFile.flags], ['shop', { name: 'shop' }])
  await stop()
  assert.deepEqual(await once(child, 'exit'), [null, 'SIGTERM'])
})

test(
  'an app of PM2 is told to the host as its config file has it, which is written where there is none, as it runs once its turn comes, and is stopped in PM2',
  { skip },
  async (t) => {
    const { cwd, pid, terminal } = await runProgram(t)
    const [home, bin] = [path.join(cwd, '.pm2'), path.join(cwd, 'bin')]
    for (const folder of [home, bin]) mkdirSync(folder)
    writeFileSync(path.join(home, 'pm2.pid'), String(process.pid))
    const processOf = (name: string, more: object) => ({ name, pid,
      pm2_env: { name, pm_exec_path: path.join(cwd, 'app.cjs'), pm_cwd: cwd, exec_mode: 'fork_mode', ...more } })
    const list = [processOf('web shop', { pm_id: 4, status: 'online' }), {
      ...processOf('idle', { pm_id: 5, status: 'stopped' }),
      pid: 0
    }]
    writeFileSync(path.join(bin, 'pm2'), `#!/bin/sh\necho "$@" >> '${cwd}/asked'\ncat '${cwd}/list'\n`, { mode: 0o755 })
    const tellList = (pid: number) =>
      writeFileSync(path.join(cwd, 'list'), JSON.stringify([{ ...list[0], pid }, list[1]]))
    tellList(process.pid)
    const here = { ...terminal, env: { PM2_HOME: home, PATH: `${bin}:${process.env.PATH}` } }
    const [{ find }, ...more] = await turnsOfPm2([], {}, here)
    tellList(pid)
    const { order, listening, isAlone, stop, ...others } = await find()
    assert.deepEqual(more, [])
    assert.deepEqual([order.app, order.config, order.flags, listening, isAlone], ['web-shop',
      path.join(cwd, 'clusterdeck.config.mjs'), {}, [pid], true])
    assert.ok(existsSync(path.join(cwd, 'clusterdeck.config.mjs')))
    assert.equal(others.text, `web shop of PM2 (pid ${pid})`)
    await stop()
    assert.match(readFileSync(path.join(cwd, 'asked'), 'utf8'), /^jlist\n(jlist\n)*stop 4\n$/)
    writeFileSync(path.join(cwd, 'list'), '[]')
    await assert.rejects(find(), { code: 'not-possible', message: /^web shop of PM2 does not run at this moment/ })
    tellList(pid)
    await assert.rejects(turnsOfPm2(['shop'], {}, here), { code: 'usage',
      message: '--pm2: expected some of web shop, idle, the apps of PM2, received "shop"' })
    await assert.rejects(turnsOfPm2(['idle'], {}, here), { code: 'usage',
      message: /^--pm2: expected apps of PM2 that run, received idle, which is stopped/ })
  }
)

test('a program that is none, or is named twice, is refused', { skip }, async () => {
  const cwd = tempFolder()
  const port = await freePort()
  await play(`
    $ adopt --port 0
    !! --port: expected an integer from 1 to 65535, received "0"
    $ adopt --port ${port}
    ! clusterdeck: --port: expected a port of TCP on which a program listens, received ${port}, where none does
    = 1
    $ adopt --pid 1x
    !! --pid: expected the number of a process, received "1x"
    $ adopt --pid 4194400
    !! --pid: expected a process that runs, received 4194400
    $ adopt --pid 7 --port 80
    !! adopt: expected one of --pm2, --port and --pid, received --port and --pid
    $ adopt --port 80 --grace x
    !! --grace: expected a duration …
    $ adopt /srv/shop --port 80
    !! --port: expected without what names or moves a deck, received /srv/shop too
    $ adopt --port 80 --no-wait
    !! --port: expected without what names or moves a deck, received --no-wait too
    $ adopt --workers 2
    !! --workers: expected with --pm2, --port or --pid, received alone`, (words) => runCliHere(words, { cwd }))
})
