import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { createConnectionCounts } from '../../../server/system/connection-counts.ts'
import { loadSocketDiagnostics } from '../../../server/system/socket-diagnostics.ts'
import { createTreeUsage, pidsOf } from '../../../server/system/tree-usage.ts'
import { rareOnly } from '../../support/rare.ts'
import { until } from '../../support/until.ts'

const MIB = 1024 ** 2
const withoutPython = spawnSync('python3', ['--version']).status !== 0 && 'python3 is not here'
const diagnostics = process.platform === 'linux' ? loadSocketDiagnostics() : null

/** What a shell starts: it listens, and says on which port. */
const SERVER =
  'const held = Buffer.alloc(40 * 1024 ** 2, 1); require("net").createServer((socket) => socket.on("error", () => {})).listen(0, "127.0.0.1", function () { console.log(this.address().port, held.length) })'

async function startTree (t: TestContext) {
  const child = spawn('sh', ['-c', '"$NODE" -e "$SERVER" & wait'], { env: { NODE: process.execPath, SERVER },
    stdio: ['ignore', 'pipe', 'inherit'], detached: true })
  const pid = Number(child.pid)
  t.after(() => process.kill(-pid, 'SIGKILL'))
  const [line] = await once(child.stdout, 'data')
  return { pid, port: Number.parseInt(String(line)) }
}

describe('programs are measured from outside', { skip: process.platform !== 'linux' && 'there is no /proc' }, () => {
  test('memory, threads and descriptors are those of all processes of a program', async (t) => {
    const { pid } = await startTree(t)
    const pids = pidsOf(pid)
    assert.equal(pids.length, 2, 'the shell and the server')
    const all = createTreeUsage().measure(pids)
    const [shell, server] = pids.map((each) => createTreeUsage().measure([each]))
    assert.ok(all && shell && server)
    assert.deepEqual([all.processes, all.descriptors, all.threads], [2, shell.descriptors + server.descriptors,
      shell.threads + server.threads])
    assert.ok(
      server.rssBytes > 40 * MIB && all.rssBytes >= server.rssBytes * 0.9 &&
        all.rssBytes <= server.rssBytes + shell.rssBytes,
      `${all.rssBytes} of ${server.rssBytes} and ${shell.rssBytes}`
    )
    assert.ok(server.cpuMs > 0)
    assert.equal(createTreeUsage().measure([2 ** 22 + 1]), null, 'nobody')
  })

  test('memory that a process has in common with those that it forked counts once', { skip: withoutPython },
    async (t) => {
      const child = spawn('python3', ['-c',
        'import os, time\nheld = b"x" * 60_000_000\nos.fork() and os.fork()\nprint("forked", flush=True)\ntime.sleep(600)'],
        { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
      t.after(() => process.kill(-Number(child.pid), 'SIGKILL'))
      for (let said = ''; said.split('forked').length <= 3;) said += String((await once(child.stdout, 'data'))[0])
      const pids = pidsOf(Number(child.pid))
      const rssBytes = createTreeUsage().measure(pids)?.rssBytes ?? 0
      assert.ok(pids.length === 3 && rssBytes > 60_000_000 && rssBytes < 110_000_000, `${rssBytes} of ${pids.length}`)
    })

  test('all children of a process count, however many there are', { skip: rareOnly || withoutPython }, async (t) => {
    const child = spawn('python3', ['-c',
      'import os, time\nfor _ in range(1100): os.fork() or time.sleep(600)\nprint("forked", flush=True)\ntime.sleep(600)'],
      { stdio: ['ignore', 'pipe', 'inherit'], detached: true })
    t.after(() => process.kill(-Number(child.pid), 'SIGKILL'))
    await once(child.stdout, 'data')
    assert.equal(pidsOf(Number(child.pid)).length, 1101)
  })

  test('open connections are those to its own port, until they are closed', {
    skip: !diagnostics && 'koffi is not here'
  }, async (t) => {
    const { pid, port } = await startTree(t)
    const count = createConnectionCounts(diagnostics as NonNullable<typeof diagnostics>)
    const look = () => count(new Map([[pid, pidsOf(pid)]])).get(pid)
    assert.equal(look(), 0)
    const clients = await Promise.all(Array.from({ length: 5 }, () => connect(port)))
    await until(() => look() === 5, 'five are open')
    clients[0].destroy()
    clients[1].destroy()
    await until(() => look() === 3, 'three are open')
    clients.push(await connect(port))
    await until(() => look() === 4, 'four are open')
    for (const client of clients) client.destroy()
    const sleeper = spawn('sleep', ['600'], { stdio: 'ignore' })
    t.after(() => sleeper.kill())
    const deaf = Number(sleeper.pid)
    assert.equal(count(new Map([[deaf, [deaf]]])).get(deaf), undefined, 'this one listens nowhere')
  })
})

async function connect (port: number): Promise<net.Socket> {
  const socket = net.connect(port, '127.0.0.1')
  await once(socket, 'connect')
  return socket
}
