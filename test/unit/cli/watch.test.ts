import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { runCommandLine } from '../../../server/command-line.ts'
import { startAdmin, TOKEN } from '../../support/admin.ts'
import { createEmulator } from '../../support/emulator.ts'
import { tempFolder } from '../../support/folder.ts'
import { until } from '../../support/until.ts'
import { fake } from '../../support/fake.ts'
import type { AddressInfo } from 'node:net'

const CONTROLS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/

/** `clusterdeck status --watch`, until the test interrupts it. */
function watch (flags: string[],
  { url, terminal, env = { CLUSTERDECK_URL: url, CLUSTERDECK_TOKEN: TOKEN }, cwd = tempFolder() }: { url: string,
    terminal?: { rows: number }, env?: Record<string, string>, cwd?: string })
{
  const output = { stdout: '', stderr: '' }
  const emulator = createEmulator({ rows: terminal?.rows ?? 24, columns: 120 })
  const stream = (name: 'stdout' | 'stderr') =>
    Object.assign(new EventEmitter(), { isTTY: terminal !== undefined, columns: 120, ...terminal, write (text: string) {
      output[name] += text
      if (name === 'stdout') emulator.write(text)
    } }) as unknown as NodeJS.WriteStream
  const stdout = stream('stdout')
  const ended = runCommandLine(['status', '--watch', ...flags], { stdout, stderr: stream('stderr'), env, cwd })
  return { output, emulator, stdout, ended, interrupt: () => process.emit('SIGINT') }
}

test('on a terminal it redraws in place, within the screen, and Ctrl-C leaves the last look and the cursor', async (t) => {
  const { deck, url } = await startAdmin(t)
  const { workers, release } = deck.snapshot()
  deck.set({ release: { ...release, id: 'r1\u001b[2J' },
    workers: workers.map((worker) => ({ ...worker,
      vitals: { ...worker.vitals, requestsPerSecond: 12.5, latencyP99Ms: 3.25, eventLoopUtilization: 0.5 } })
    ) })
  const { output, emulator, stdout, ended, interrupt } = watch([], { url, terminal: { rows: 40 } })
  await until(() => emulator.text().includes('SLOT'), 'the first look')
  const first = emulator.lines()
  assert.match(first.join('\n'),
    /^SLOT {2}WORKER {3}PID {2}STATE {2}RELEASE {2}UPTIME +MEMORY {4}CPU {2}REQ\/S {6}P99 {3}LOOP$/m)
  assert.match(first.join('\n'),
    /^ {3}2 {7}2 {2}4002 {2}ready {2}r1 .* 64\.0 MB {2}12\.5% {3}12\.5 {2}3\.25 ms {2}50\.0%$/m)
  assert.ok(first.includes('Ctrl-C to quit'))
  for (const line of first) assert.doesNotMatch(line, CONTROLS)

  deck.set({ readyWorkers: 1, workers: workers.slice(1) })
  await until(() => emulator.lines().includes('workers  1 of 2 ready'), 'the next look')
  stdout.rows = 6
  emulator.resize(6, 120)
  stdout.emit('resize')
  assert.deepEqual(emulator.lines().slice(3), ['… 8 more lines', '', 'Ctrl-C to quit'])

  interrupt()
  assert.equal(await ended, 0)
  assert.deepEqual(emulator.modes, { isAlternate: false, isCursorShown: true, wraps: true })
  assert.match(emulator.usual(),
    /^health {3}1 of 2 workers ready\nstate {4}running\n.*workers {2}1 of 2 ready\n.* ready {2}r1 .*\n$/s)
  assert.equal(stdout.listenerCount('resize'), 0)
  assert.equal(output.stderr, '')
})

test('elsewhere each change is a line without control characters', async (t) => {
  const { deck, url } = await startAdmin(t)
  const { release, workers } = deck.snapshot()
  const { output, ended, interrupt } = watch([], { url })
  await until(() => output.stdout.includes('\n'), 'a line')
  assert.match(output.stdout, /^\d{4}-\d\d-\d\dT[\d:.]+Z running, release r1, 2 of 2 ready, 0 requests\/s, 128 MB\n$/)
  deck.set({ readyWorkers: 1, release: { ...release, id: 'r2\u001b[2J\n' },
    workers: workers.map((worker, index) => index === 0 ? { ...worker, state: 'draining' } : worker) })
  deck.dispatch({ type: 'rollout', kind: 'restart', actor: 'token' })
  await until(() => output.stdout.split('\n').length > 2, 'the change')
  interrupt()
  assert.equal(await ended, 0)
  assert.match(output.stdout.split('\n')[1],
    /Z running, release r2 , 1 of 2 ready, 1 draining, 0 requests\/s, 128 MB, rollout 1 \(restart\) rolling: 0 of 2 workers replaced$/)
  assert.doesNotMatch(output.stdout, CONTROLS)
  assert.equal(process.listenerCount('SIGINT'), 0)
})

test('a terminal that cannot move its cursor gets lines', async (t) => {
  const { url } = await startAdmin(t)
  const { output, ended, interrupt } = watch([], { url, terminal: { rows: 24 },
    env: { CLUSTERDECK_URL: url, CLUSTERDECK_TOKEN: TOKEN, TERM: 'dumb' } })
  await until(() => output.stdout.includes('\n'), 'a line')
  interrupt()
  await ended
  assert.doesNotMatch(output.stdout, CONTROLS)
})

test('--json prints an object a line, each second', async (t) => {
  const { deck, url } = await startAdmin(t)
  const { output, ended, interrupt } = watch(['--json'], { url, terminal: { rows: 24 } })
  await until(() => output.stdout.split('\n').length > 2, 'two lines')
  interrupt()
  assert.equal(await ended, 0)
  for (const line of output.stdout.trimEnd().split('\n')) assert.deepEqual(JSON.parse(line), deck.status())
})

test('the next master is found at its own address, and told of', async (t) => {
  const dataDir = tempFolder()
  const status = createStatus()
  const announce = async (pid: number) => {
    const server = http.createServer((_req, res) =>
      res.writeHead(200, { 'content-type': 'application/json', connection: 'close' }).end(
        JSON.stringify({ ...status, master: { ...status.master, pid } })
      )
    )
    await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
    t.after(() => server.close())
    writeFileSync(join(dataDir, 'master.json'),
      JSON.stringify({ pid: process.pid, adminUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }))
    return server
  }
  writeFileSync(join(dataDir, 'admin.token'), TOKEN)
  const first = await announce(11)
  const { output, ended, interrupt } = watch(['--json'], { url: '', env: { CLUSTERDECK_DATA_DIR: dataDir } })
  await until(() => output.stdout.includes('"pid":11'), 'the first master')
  first.close()
  await until(() => output.stderr !== '', 'its loss')
  await announce(12)
  await until(() => output.stdout.includes('"pid":12'), 'the next master')
  interrupt()
  assert.equal(await ended, 0)
  assert.equal(output.stderr, 'master 11 does not answer; looking for the next one\nmaster 12 has replaced master 11\n')
})

test('without a master there is nothing to watch', async () => {
  const { output, ended } = watch([], { url: 'http://127.0.0.1:1', terminal: { rows: 24 } })
  assert.equal(await ended, 5)
  assert.equal(output.stdout, '')
})

function createStatus () {
  return { state: 'running', master: { pid: 0 }, app: { entry: 'app.js', addresses: [] }, release: null, rollout: null,
    readyWorkers: 0, desiredWorkers: 0, workers: [] }
}

test('it says why copies of a program cannot share its sockets, and why workers run without their limits', async (t) => {
  const { deck, url } = await startAdmin(t)
  deck.set({ app: { ...deck.snapshot().app, ownSockets: 'seccomp: Operation not permitted' },
    limits: { memoryBytes: 512 * 1024 ** 2, cpus: 1.5, problem: 'there is no group' } })
  let text = ''
  const stdout = fake<NodeJS.WriteStream>({ write: (part: string) => {
    text += part
  } })
  assert.equal(
    await runCommandLine(['status'], { stdout, stderr: stdout, env: { CLUSTERDECK_URL: url, CLUSTERDECK_TOKEN: TOKEN },
      cwd: tempFolder() }),
    0
  )
  assert.match(text, /^sockets +each worker has its own, so only one can serve: seccomp: Operation not permitted$/m)
  assert.match(text, /^limits +512 MB and 1\.5 CPUs for each worker, not kept here: there is no group$/m)
})
