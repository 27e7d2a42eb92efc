import { readFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { attempt } from '../errors.ts'

/** throws like readFileSync if there is no such file */
type ReadFile = (file: string) => string

const CGROUP_ROOT = '/sys/fs/cgroup'

/**
 * Counts the CPUs that this process may keep busy: those that its affinity allows, up to the quota of its control
 * groups. `os.cpus().length` counts those of the machine: 64 workers would start in a container that may use 2.
 * @returns at least 1; a quota of one and a half CPUs is 2
 */
export function cpuCount (
  { readFile = (file) => readFileSync(file, 'utf8'), available = os.availableParallelism }: { readFile?: ReadFile,
    available?: () => number } = {}
): number {
  const quotas = [...unifiedQuotas(readFile), ...legacyQuotas(readFile)]
  return Math.max(1, Math.min(available(), ...quotas.map(Math.ceil)))
}

/**
 * In version 2 every group, from that of this process up to the root, may set `cpu.max`, "<quota|max> <period>".
 * https://docs.kernel.org/admin-guide/cgroup-v2.html
 */
function unifiedQuotas (readFile: ReadFile) {
  const group = groupOf(readFile, (controllers) => controllers === '')
  return groupsUpwards(group).flatMap((folder) => {
    const [quota, period] = (readText(readFile, path.join(CGROUP_ROOT, folder, 'cpu.max')) ?? '').trim().split(/\s+/)
    return toCpus(quota, period)
  })
}

/**
 * In version 1 the cpu controller has its own hierarchy, with quota and period in two files; a quota of -1 means none.
 */
function legacyQuotas (readFile: ReadFile) {
  const group = groupOf(readFile, (controllers) => controllers.split(',').includes('cpu'))
  return ['cpu', 'cpu,cpuacct'].flatMap((mount) =>
    groupsUpwards(group).flatMap((folder) => {
      const file = (name: string) => readText(readFile, path.join(CGROUP_ROOT, mount, folder, name))?.trim()
      return toCpus(file('cpu.cfs_quota_us'), file('cpu.cfs_period_us'))
    })
  )
}

/**
 * Finds the path of this process in one hierarchy, from lines such as `0::/system.slice/app.service` or
 * `4:cpu,cpuacct:/docker/3f…`. In a container it may be a path of the host, which does not exist there: so the root is
 * always read as well.
 */
function groupOf (readFile: ReadFile, isWanted: (controllers: string) => boolean) {
  const lines = (readText(readFile, '/proc/self/cgroup') ?? '').split('\n')
  for (const line of lines) {
    const [, controllers, group] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? []
    if (group !== undefined && isWanted(controllers)) return group
  }
  return '/'
}

/** @returns it and all that hold it, up to the root */
function groupsUpwards (group: string): string[] {
  const parent = path.posix.dirname(group)
  return parent === group ? [group] : [group, ...groupsUpwards(parent)]
}

/** @returns empty if there is no limit */
function toCpus (quota: string | undefined, period: string | undefined): number[] {
  const cpus = Number(quota) / Number(period)
  return cpus > 0 && Number.isFinite(cpus) ? [cpus] : []
}

function readText (readFile: ReadFile, file: string): string | null {
  // Without such a hierarchy, group or file, or without the right to read it, there is no limit to keep.
  return attempt(() => readFile(file))
}
