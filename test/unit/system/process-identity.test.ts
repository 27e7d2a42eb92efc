import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { describe, test, type TestContext } from 'node:test'
import { identifyProcess, isAlive, signalProcess } from '../../../server/system/process-identity.ts'
import { until } from '../../support/until.ts'
import type { Readable, Writable } from 'node:stream'

describe('process identity', {
  skip: process.platform !== 'linux' && 'without /proc a process is known by its number alone'
}, () => {
  test('a process is alive until it ends, and is told from every other', async (t) => {
    const child = await sleeper(t)
    const identity = identifyProcess(child.pid)
    assert.equal(isAlive(identity), true)
    assert.notEqual(identity.startTime, null)
    assert.notDeepEqual({ ...identity, pid: 0 }, { ...identifyProcess(process.pid), pid: 0 })
    child.kill('SIGKILL')
    await once(child, 'exit')
    assert.equal(isAlive(identity), false)
    assert.equal(identifyProcess(child.pid).startTime, null)
  })

  test('a later process with the same number is not alive under the old identity, and is never signalled', async (t) => {
    const child = await sleeper(t)
    const { pid, startTime } = identifyProcess(child.pid)
    const [bootId, ticks] = String(startTime).split(':')
    const others = [`${bootId}:${Number(ticks) - 1}`, `00000000-0000-0000-0000-000000000000:${ticks}`]
    const kill = t.mock.method(process, 'kill')
    for (const other of others) {
      assert.equal(isAlive({ pid, startTime: other }), false)
      signalProcess({ pid, startTime: other }, 'SIGKILL')
    }
    assert.equal(kill.mock.callCount(), 0)
    signalProcess({ pid, startTime }, 'SIGKILL')
    assert.deepEqual((await once(child, 'exit'))[1], 'SIGKILL')
  })

  test('the start time is read behind a name that looks like other fields', (t) => {
    const before = identifyProcess(process.pid)
    const { title } = process
    t.after(() => {
      process.title = title
    })
    process.title = 'x) Z 1 (y'
    assert.match(fs.readFileSync(`/proc/${process.pid}/stat`, 'utf8'), /\(x\) Z 1 \(y\) /)
    assert.deepEqual(identifyProcess(process.pid), before)
    assert.equal(isAlive(before), true)
  })

  test('a zombie has ended', async (t) => {
    const parent = spawn('sh', ['-c', '(read line) <&3 & echo $!; exec sleep 600 3<&-'], {
      stdio: ['ignore', 'pipe', 'inherit', 'pipe']
    })
    t.after(() => parent.kill('SIGKILL'))
    const pid = Number(String((await once(parent.stdout as Readable, 'data'))[0]))
    // Only a shell would wait for its child.
    await until(() => fs.readFileSync(`/proc/${parent.pid}/comm`, 'utf8') === 'sleep\n',
      'the shell to become another program')
    const end = parent.stdio[3] as Writable
    end.end()
    await until(() => / Z /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8')), 'the zombie')
    const identity = identifyProcess(pid)
    assert.notEqual(identity.startTime, null)
    assert.equal(isAlive(identity), false)
    assert.doesNotThrow(() => signalProcess(identity, 'SIGTERM'))
  })

  test('one that ends between the look and the signal is no error, one that may not be signalled is', (t) => {
    const identity = identifyProcess(process.pid)
    const fail = (code: string) => () => {
      throw Object.assign(new Error(code), { code })
    }
    const kill = t.mock.method(process, 'kill', fail('ESRCH'))
    assert.doesNotThrow(() => signalProcess(identity, 'SIGTERM'))
    kill.mock.mockImplementation(fail('EPERM'))
    assert.throws(() => signalProcess(identity, 'SIGTERM'), { code: 'EPERM' })
  })
})

test('where there is no /proc, a process is known by its number, and one of another user is alive', async (t) => {
  const { platform } = process
  t.after(() => Object.defineProperty(process, 'platform', { value: platform }))
  Object.defineProperty(process, 'platform', { value: 'darwin' })
  const identity = { pid: 4321, startTime: null }
  const kill = t.mock.method(process, 'kill', () => true)
  assert.equal(isAlive(identity), true)
  for (const [code, expected] of [['EPERM', true], ['ESRCH', false]] as const) {
    kill.mock.mockImplementation(() => {
      throw Object.assign(new Error(code), { code })
    })
    assert.equal(isAlive(identity), expected, code)
  }
})

async function sleeper (t: TestContext) {
  const child = spawn('sleep', ['600'])
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  return child as ChildProcess & { pid: number }
}
