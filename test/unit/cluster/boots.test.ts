import assert from 'node:assert/strict'
import { once } from 'node:events'
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { describe, test } from 'node:test'
import { clusterOf } from '../../support/cluster.ts'
import { cpuTimeOf, createBoots } from '../../../server/cluster/boots.ts'

/** Clock and threads of one worker, pid 7. */
function setUp () {
  let at = 1000
  let time = { cpuMs: 0, queuedMs: 0 }
  const cluster = clusterOf({ handles: { 1: { identity: { pid: 7 } } } })
  const boots = createBoots(cluster, { now: () => at, measure: () => time })
  const pass = (ms: number, { cpuMs = 0, queuedMs = 0 }: Partial<typeof time> = {}) => {
    at += ms
    time = { cpuMs: time.cpuMs + cpuMs, queuedMs: time.queuedMs + queuedMs }
  }
  return { boots, cluster, pass }
}

describe('what workers have had of the CPUs', () => {
  test('is counted from when their time began, or was made longer', () => {
    const { boots, pass } = setUp()
    pass(0, { queuedMs: 500 })
    boots.begin(1)
    pass(1000, { cpuMs: 300, queuedMs: 700 })
    assert.equal(boots.starvedMs(1), 700)
    boots.begin(1)
    pass(700, { cpuMs: 600, queuedMs: 100 })
    assert.equal(boots.starvedMs(1), 100)
    assert.deepEqual(boots.costOf(1), { cpuMs: 900, starvedMs: 800 })
  })

  test('threads that wait at the same time make no more of it than has passed, and those that end no less than nothing', () => {
    const { boots, pass } = setUp()
    boots.begin(1)
    pass(1000, { queuedMs: 4000 })
    assert.equal(boots.starvedMs(1), 1000)
    boots.begin(1)
    pass(1000, { queuedMs: -3000 })
    assert.equal(boots.starvedMs(1), 0)
  })

  test('is nothing where the system does not tell, and of a worker that is gone', () => {
    const { boots, cluster, pass } = setUp()
    boots.begin(1)
    pass(1000, { queuedMs: 500 })
    cluster.emit('left', 1)
    assert.equal(boots.starvedMs(1), 0)
    assert.deepEqual(cpuTimeOf(undefined), { cpuMs: 0, queuedMs: 0 })
    assert.equal(createBoots(clusterOf({})).costOf(1), null)
  })

  test('is read of all threads of a process', { skip: !existsSync('/proc/self/schedstat') }, async (t) => {
    const child = spawn(process.execPath, ['-e',
      'const { Worker } = require("worker_threads"); new Worker("const t = Date.now(); while (Date.now() - t < 150); require(\'fs\').writeSync(1, \'done\'); setInterval(() => {}, 1000)", { eval: true })'])
    t.after(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
    assert.ok(cpuTimeOf(child.pid).cpuMs > 20)
  })
})
