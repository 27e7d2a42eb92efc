import assert from 'node:assert/strict'
import test from 'node:test'
import { cpuCount } from '../../../server/config/cpu-count.ts'
import { rows } from '../../support/rows.ts'

const GROUPS: Record<string, string> = {
  '1': '11:memory:/docker/3f\n4:cpu,cpuacct:/docker/3f\n1:name=systemd:/docker/3f\n',
  '2': '0::/app.slice/web.service\n',
  container: '0::/\n',
  pod: '0::/kubepods/pod1/a\n'
}
const FILES: Record<string, string[]> = { root: ['cpu.max'], slice: ['app.slice/cpu.max'],
  web: ['app.slice/web.service/cpu.max'], docker: ['cpu/docker/3f/cpu.cfs_quota_us', 'cpu/docker/3f/cpu.cfs_period_us'],
  both: ['cpu,cpuacct/cpu.cfs_quota_us', 'cpu,cpuacct/cpu.cfs_period_us'] }

/** Where control groups are mounted. */
const TOP = '/sys/fs/cgroup/'

for (const [what, version, quotas, available, cpus] of rows(`
  without control groups it is what the affinity allows                   →           →                       → 6  → 6
  a quota of version 2 limits it                                          → 2         → web 200000 100000     → 64 → 2
  it is rounded up                                                        → 2         → web 150000 100000     → 64 → 2
  it is rounded up to 1                                                   → 2         → web 50000 100000      → 64 → 1
  "max" is no quota                                                       → 2         → web max 100000        → 64 → 64
  the tightest quota on the way up holds → 2 → web 800000 100000, slice 300000 100000, root max 100000 → 64 → 3
  inside a container, where only the root is visible, its quota holds     → container → root 400000 100000    → 64 → 4
  also where its own name is that of the machine                          → pod       → root 400000 100000    → 64 → 4
  a quota of version 1 limits it                                          → 1         → docker 250000 100000  → 64 → 3
  its controller may have another name                                    → 1         → both 100000 50000     → 64 → 2
  a quota of -1 in version 1 is none                                      → 1         → docker -1 100000      → 64 → 64
  the affinity holds where it is tighter than the quota                   → 2         → root 800000 100000    → 2  → 2
`, '→')) {
  test(`how many CPUs there are: ${what}`, () => {
    const files: Record<string, string> = version ? { '/proc/self/cgroup': GROUPS[version] } : {}
    for (const quota of quotas.split(', ').filter(Boolean)) {
      const [place, ...values] = quota.split(' ')
      for (const [at, name] of FILES[place].entries())
        files[TOP + name] = `${FILES[place].length === 1 ? values.join(' ') : values[at]}\n`
    }
    assert.equal(count(files, Number(available)), Number(cpus))
  })
}

test('it is never less than 1, whatever the files say', () => {
  for (const text of ['0 100000', '-5 100000', 'junk', '', '100 0', '1 100000']) {
    const cpus = count({ '/proc/self/cgroup': GROUPS[2], [`${TOP}cpu.max`]: text }, 3)
    assert.ok(cpus >= 1 && cpus <= 3, `${text}: ${cpus}`)
  }
})

/** `files`: all files that this system has; `available`: what the affinity allows */
function count (files: Record<string, string>, available: number) {
  return cpuCount({ available: () => available, readFile (file) {
    if (file in files) return files[file]
    throw Object.assign(new Error(`ENOENT: ${file}`), { code: 'ENOENT' })
  } })
}
