import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe } from 'node:test'
import { createControlGroups } from '../../server/system/control-groups.ts'
import { startReady } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { rareTest } from '../support/rare.ts'
import { until } from '../support/until.ts'

const MEMORY_BYTES = 100 * 1024 * 1024
const LIMITS = ['--limits-memory-bytes', String(MEMORY_BYTES), '--limits-cpus', '0.5']
const skip = createControlGroups().whyUnlimited({ memoryBytes: MEMORY_BYTES, cpus: 0.5 }) ?? false

/**
 * These run where this process may have control groups: as root in a virtual machine or a container, or in a service
 * with Delegate=yes.
 */
describe('limits of workers', { skip }, () => {
  rareTest(
    'a worker over its limit of memory is killed and replaced, the other one serves on, and the next master knows their groups',
    async (t) => {
      const deck = await startReady(t, 'grows.js', { flags: LIMITS, env: { GROWS_BY: String(MEMORY_BYTES) } })
      const workers = (await deck.status()).workers
      for (const { pid } of workers) {
        assert.equal(fileOf(pid, 'memory.max'), String(MEMORY_BYTES))
        assert.equal(fileOf(pid, 'cpu.max'), '50000 100000')
      }

      await fetch(`${await deck.appUrl()}/grow`).catch(() => {})
      const killed = await deck.untilEvent('worker.exited')
      assert.equal(killed.cause, 'out-of-memory')
      await deck.until({ ready: 2 })

      await deck.loseMaster()
      await deck.until({ ready: 2 })
      assert.deepEqual(await deck.stop(), { code: 0, signal: null })
      await until(() => groups().length === 0, 'no group is left')
    }
  )

  rareTest('so are programs of other languages, with all that they start', async (t) => {
    const deck = await startReady(t, null, { workers: 1, cwd: tempFolder(),
      args: ['/bin/sh', '-c', 'sleep 1000 & wait'],
      flags: ['--ready-signal', 'online', '--rollout-order', 'stop-first', ...LIMITS] })
    const [{ pid }] = (await deck.status()).workers
    assert.equal(readFileSync(path.join(folderOf(pid), 'cgroup.procs'), 'utf8').trim().split('\n').length, 2)
    await deck.stop()
    await until(() => groups().length === 0, 'no group is left')
  })
})

function fileOf (pid: number | null, name: string) {
  return readFileSync(path.join(folderOf(pid), name), 'utf8').trim()
}

function folderOf (pid: number | string | null) {
  return path.join('/sys/fs/cgroup', readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().replace(/^0::/, ''))
}

function groups () {
  const own = folderOf('self')
  return [own, path.dirname(own)].filter((folder) => folder.startsWith('/sys/fs/cgroup')).flatMap((folder) =>
    readdirSync(folder)
  ).filter((name) => name.startsWith('worker-'))
}
