import assert from 'node:assert/strict'
import test from 'node:test'
import { cpuCount } from '../../../server/config/cpu-count.ts'

/** `files`: all files that this system has; `available`: what the affinity allows */
function count (files: Record<string, string>, available: number = 64) {
  return cpuCount({ available: () => available, readFile (file) {
    if (file in files) return files[file]
    throw Object.assign(new Error(`ENOENT: ${file}`), { code: 'ENOENT' })
  } })
}

const V2 = { '/proc/self/cgroup': '0::/app.slice/web.service\n' }
const V1 = { '/proc/self/cgroup': '11:memory:/docker/3f\n4:cpu,cpuacct:/docker/3f\n1:name=systemd:/docker/3f\n' }

test('without control groups it is what the affinity allows', () => {
  assert.equal(count({}, 6), 6)
})

test('a quota of version 2 limits it, rounded up', () => {
  assert.equal(count({ ...V2, '/sys/fs/cgroup/app.slice/web.service/cpu.max': '200000 100000\n' }), 2)
  assert.equal(count({ ...V2, '/sys/fs/cgroup/app.slice/web.service/cpu.max': '150000 100000\n' }), 2)
  assert.equal(count({ ...V2, '/sys/fs/cgroup/app.slice/web.service/cpu.max': '50000 100000\n' }), 1)
})

test('"max" is no quota', () => {
  assert.equal(count({ ...V2, '/sys/fs/cgroup/app.slice/web.service/cpu.max': 'max 100000\n' }), 64)
})

test('the tightest quota on the way up to the root holds', () => {
  assert.equal(
    count({ ...V2, '/sys/fs/cgroup/app.slice/web.service/cpu.max': '800000 100000\n',
      '/sys/fs/cgroup/app.slice/cpu.max': '300000 100000\n', '/sys/fs/cgroup/cpu.max': 'max 100000\n' }),
    3
  )
})

test('inside a container, where only the root is visible, its quota holds', () => {
  assert.equal(count({ '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/cpu.max': '400000 100000\n' }), 4)
  assert.equal(count({ '/proc/self/cgroup': '0::/kubepods/pod1/a\n', '/sys/fs/cgroup/cpu.max': '400000 100000\n' }), 4)
})

test('a quota of version 1 limits it', () => {
  assert.equal(
    count({ ...V1, '/sys/fs/cgroup/cpu/docker/3f/cpu.cfs_quota_us': '250000\n',
      '/sys/fs/cgroup/cpu/docker/3f/cpu.cfs_period_us': '100000\n' }),
    3
  )
  assert.equal(
    count({ ...V1, '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '100000\n',
      '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '50000\n' }),
    2
  )
})

test('a quota of -1 in version 1 is none', () => {
  assert.equal(
    count({ ...V1, '/sys/fs/cgroup/cpu/docker/3f/cpu.cfs_quota_us': '-1\n',
      '/sys/fs/cgroup/cpu/docker/3f/cpu.cfs_period_us': '100000\n' }),
    64
  )
})

test('the affinity holds where it is tighter than the quota', () => {
  assert.equal(count({ ...V2, '/sys/fs/cgroup/cpu.max': '800000 100000\n' }, 2), 2)
})

test('it is never less than 1, whatever the files say', () => {
  for (const text of ['0 100000', '-5 100000', 'junk', '', '100 0', '1 100000']) {
    const cpus = count({ ...V2, '/sys/fs/cgroup/cpu.max': text }, 3)
    assert.ok(cpus >= 1 && cpus <= 3, `${text}: ${cpus}`)
  }
})
