import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createControlGroups } from '../../../server/system/control-groups.ts'
import { tempFolder } from '../../support/folder.ts'

const LIMITS = { memoryBytes: 512 * 1024 ** 2, cpus: 1.5 }

/**
 * Files as the kernel has them. It moves processes and removes groups itself, so test/cluster/limits.test.ts does the
 * rest.
 */
function playMachine (
  { own, controllers = 'cpu io memory pids', isDelegated = true }: { own: string, controllers?: string,
    isDelegated?: boolean }
) {
  const root = tempFolder()
  const processes = tempFolder()
  const folder = path.join(root, own)
  mkdirSync(path.join(processes, 'self'))
  writeFileSync(path.join(processes, 'self', 'cgroup'), `4:cpu:/old\n0::${own}\n`)
  mkdirSync(folder, { recursive: true })
  for (const each of new Set([root, folder])) writeFileSync(path.join(each, 'cgroup.controllers'), `${controllers}\n`)
  writeFileSync(path.join(folder, 'cgroup.procs'), '')
  return { root, folder, groups: createControlGroups({ root, processes, isDelegated: () => isDelegated }) }
}

test('a worker gets a group of its own with its limits, and what the kernel has killed in it is told', () => {
  const { folder, groups } = playMachine({ own: '/system.slice/shop.service' })
  assert.equal(groups.whyUnlimited(LIMITS), null)
  const group = groups.open(LIMITS)
  const [name] = readdirSync(folder).filter((each) => each.startsWith('worker-'))
  const read = (file: string) => readFileSync(path.join(folder, name, file), 'utf8')
  assert.equal(readFileSync(path.join(folder, 'cgroup.subtree_control'), 'utf8'), '+memory +cpu')
  assert.deepEqual([read('memory.max'), read('cpu.max')], [String(LIMITS.memoryBytes), '150000 100000'])
  group?.enter(4711)
  assert.equal(read('cgroup.procs'), '4711')
  assert.equal(group?.end(), false)
  writeFileSync(path.join(folder, name, 'memory.events'), 'low 0\noom 1\noom_kill 1\n')
  assert.equal(group?.end(), true)
})

test('without limits there are no groups, and only what is needed is limited', () => {
  const { folder, groups } = playMachine({ own: '/' })
  assert.equal(groups.open({ memoryBytes: 0, cpus: 0 }), null)
  assert.deepEqual(readdirSync(folder).filter((each) => each.startsWith('worker-')), [])
  groups.open({ memoryBytes: 0, cpus: 0.5 })
  assert.equal(readFileSync(path.join(folder, 'cgroup.subtree_control'), 'utf8'), '+cpu')
})

test('why limits cannot be kept is told: another one has the groups, a controller is missing, or there are none', () => {
  const foreign = playMachine({ own: '/user.slice/session-3.scope', isDelegated: false })
  assert.match(String(foreign.groups.whyUnlimited(LIMITS)),
    /session-3\.scope is not left to this process: it takes a service of systemd with Delegate=yes/)
  assert.throws(() => foreign.groups.open(LIMITS), /is not left to this process/)
  const { groups } = playMachine({ own: '/shop.service', controllers: 'cpu pids' })
  assert.match(String(groups.whyUnlimited(LIMITS)), /has no controller memory/)
  assert.equal(groups.whyUnlimited({ memoryBytes: 0, cpus: 2 }), null)
  const root = tempFolder()
  assert.equal(createControlGroups({ root }).whyUnlimited(LIMITS), `${root} has no control groups of version 2`)
})
