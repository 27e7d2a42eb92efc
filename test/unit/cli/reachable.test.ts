import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import net from 'node:net'
import { test, type TestContext } from 'node:test'
import { checkAnswers } from '../../../server/cli/reachable.ts'
import { identifyProcess } from '../../../server/system/process-identity.ts'
import { openApps } from '../../support/apps.ts'
import { runCliHere } from '../../support/cli-here.ts'
import { tempFolder } from '../../support/folder.ts'

/** @returns of a port that takes connections, and says nothing */
async function silentPort (t: TestContext): Promise<string> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`
}

/** @returns of a process that has ended */
async function deadPid (): Promise<number> {
  const child = spawn(process.execPath, ['--version'], { stdio: 'ignore' })
  await once(child, 'exit')
  return Number(child.pid)
}

test('where nobody answers it is said soon who lives, and what to do', async (t) => {
  const { env, pretend } = openApps(t, {})
  const [url, dead] = [await silentPort(t), await deadPid()]
  const [alone, kept] = [tempFolder(), tempFolder()]
  pretend({ name: 'kept', dataDir: kept, adminUrl: url, master: { pid: dead, startTime: null },
    keeper: identifyProcess(process.pid) })
  const check = (pid: number | null, dataDir: string) =>
    checkAnswers({ url, fingerprint: null, recipient: pid === null ? null : { processes: [{ pid, startTime: null }] },
      dataDir }, { env, withinMs: 50 })
  for (const [pid, dataDir, code, message] of [[process.pid, alone, 'timed-out',
    `the master (pid ${process.pid}) does not answer at ${url} within 50 ms: it hangs, is suspended or is starting; end it with kill -KILL ${process.pid}`],
    [process.pid, kept, 'timed-out',
      `the master (pid ${process.pid}) does not answer at ${url} within 50 ms: it hangs, is suspended or is starting; its keeper (pid ${process.pid}) replaces a master that hangs (keeper.hungAfterMs); two SIGTERM to the keeper end everything`],
    [dead, kept, 'no-master',
      `the master (pid ${dead}) of ${kept} has ended; its keeper (pid ${process.pid}) tries to start the next one; its stderr says why that fails`],
    [dead, alone, 'no-master', `the master (pid ${dead}) of ${alone} has ended; nobody starts the next one`], [null,
    alone, 'timed-out', `nobody answers at ${url} within 50 ms`]] as const)
    await assert.rejects(check(pid, dataDir), { code, message })
})

test('no master is blamed for the time in which the command itself did not run', async (t) => {
  const server = http.createServer((_request, response) => response.end()).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as net.AddressInfo).port}`
  const checked = checkAnswers({ url, fingerprint: null, recipient: null, dataDir: tempFolder() }, { env: {},
    withinMs: 400 })
  // As on a machine that is busy or slept.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 800)
  await checked
})

test('a command that waits for nothing ends within 5 s, one that is told how long waits that long', {
  concurrency: true
}, async (t) => {
  const url = await silentPort(t)
  const { code, stderr } = await runCliHere(['status', '--url', url, '--token', 'a'])
  assert.deepEqual([code, stderr], [124, `clusterdeck: nobody answers at ${url} within 4.0 s\n`])
  assert.match((await runCliHere(['status', '--url', url, '--token', 'a', '--timeout', '50ms'])).stderr,
    /not done within 50 ms \(--timeout\)/)
})
