import { accessSync, constants, existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { errorText, succeeds } from '../errors.ts'
import { loadPosix } from './posix.ts'
import { textIn } from './proc.ts'

export type ControlGroups = ReturnType<typeof createControlGroups>
/** What the processes of one worker may use together. 0: as much as there is. */
export type Limits = { memoryBytes: number, cpus: number }
/** The control group of one worker. */
type ControlGroup = {
  /** a process that has not started others yet */
  enter: (pid: number) => void,
  /**
   * once its processes have ended; whether the kernel has killed one of them, as they had reached their limit of memory
   */
  end: () => boolean
}

/** The group of this process and its keeper: in a group with groups below it there may be no process, cgroups(7). */
const OWN = 'clusterdeck'
const OF_WORKER = 'worker-'
/** systemd marks a group so whose groups it leaves to the service: Delegate= in systemd.resource-control(5). */
const DELEGATED = ['user.delegate', 'trusted.delegate']
const PERIOD_US = 100_000
/** Processes of this group may start others while they are moved. */
const MAX_ROUNDS = 20
let count = 0

/**
 * Gives workers control groups of their own: version 2 of cgroups(7), where this process may have them.
 * `processes`: where /proc is.
 */
export function createControlGroups (
  { root = '/sys/fs/cgroup', processes = '/proc', isDelegated = isMarked }: { root?: string, processes?: string,
    isDelegated?: (folder: string) => boolean } = {}
) {
  /** Groups whose processes had not ended with the worker. */
  const left: Set<string> = new Set()

  return {
    /** @returns why they cannot be kept here; null: they can, or there are none */
    whyUnlimited (limits: Limits): string | null {
      const controllers = controllersOf(limits)
      if (controllers.length === 0) return null
      const { folder, reason } = findPlace()
      if (reason !== undefined) return reason
      const there = textIn(path.join(folder, 'cgroup.controllers')).trim().split(' ')
      const missing = controllers.filter((each) => !there.includes(each))
      return missing.length === 0
        ? null
        : `the control group ${folder} has no controller ${
          missing.join(' and ')
        }: its service needs Delegate=yes, or the machine uses version 1 of control groups`
    },

    /** Returns null: there are none @throws where the system does not let it */
    open (limits: Limits): ControlGroup | null {
      const controllers = controllersOf(limits)
      if (controllers.length === 0) return null
      const { folder, reason } = findPlace()
      if (reason !== undefined) throw new Error(reason)
      prepare(folder, controllers)
      const own = path.join(folder, `${OF_WORKER}${process.pid}-${++count}`)
      mkdirSync(own)
      writeLimits(own, limits)
      return groupAt(own)
    },

    /** `pid`: of a worker that another master has started. Returns null: it has none of its own. */
    groupOf (pid: number): ControlGroup | null {
      const { folder } = findPlace()
      const name = path.basename(pathOf(pid))
      return folder !== undefined && name.startsWith(OF_WORKER) && existsSync(path.join(folder, name))
        ? groupAt(path.join(folder, name))
        : null
    }
  }

  /** @returns the group below which those of workers are */
  function findPlace (): { folder: string, reason?: undefined } | { folder?: undefined, reason: string } {
    if (!existsSync(path.join(root, 'cgroup.controllers')))
      return { reason: `${root} has no control groups of version 2` }
    const own = pathOf('self')
    const name = path.posix.basename(own) === OWN ? path.posix.dirname(own) : own
    const folder = path.join(root, name)
    if (name !== '/' && !isDelegated(folder))
      return {
        reason:
          `the control group ${name} is not left to this process: it takes a service of systemd with Delegate=yes, as "clusterdeck systemd" writes it`
      }
    return succeeds(() => accessSync(path.join(folder, 'cgroup.procs'), constants.W_OK))
      ? { folder }
      : { reason: `this process may not write to ${folder}` }
  }

  /** @returns the path of its group, from the root of those that can be seen */
  function pathOf (pid: number | string): string {
    return /^0::(\/.*)$/m.exec(textIn(path.join(processes, String(pid), 'cgroup')))?.[1] ?? '/'
  }

  function prepare (folder: string, controllers: string[]) {
    // The root of all groups has no type, and may have processes beside its groups.
    if (existsSync(path.join(folder, 'cgroup.type'))) moveTo(path.join(folder, OWN), folder)
    writeFileSync(path.join(folder, 'cgroup.subtree_control'), controllers.map((each) => `+${each}`).join(' '))
    for (const each of left) removeGroup(each)
  }

  function groupAt (folder: string): ControlGroup {
    return { enter (pid) {
      writeFileSync(path.join(folder, 'cgroup.procs'), String(pid))
    }, end () {
      const killed = Number(/^oom_kill (\d+)$/m.exec(textIn(path.join(folder, 'memory.events')))?.[1] ?? 0)
      removeGroup(folder)
      return killed > 0
    } }
  }

  function removeGroup (folder: string) {
    try {
      rmdirSync(folder)
      left.delete(folder)
    } catch {
      // EBUSY: something that the worker has started still runs. ENOENT: it is gone.
      if (existsSync(folder)) left.add(folder)
    }
  }
}

/** The one that all apps of this process share. */
export const controlGroups = createControlGroups()

function controllersOf ({ memoryBytes, cpus }: Limits) {
  return [...memoryBytes > 0 ? ['memory'] : [], ...cpus > 0 ? ['cpu'] : []]
}

function writeLimits (folder: string, { memoryBytes, cpus }: Limits) {
  const write = (name: string, text: string) => writeFileSync(path.join(folder, name), text)
  if (memoryBytes > 0) {
    write('memory.max', String(memoryBytes))
    // Without this, a worker that reaches its limit is swapped out, which is slower than its restart. A kernel without
    // swap has no such file.
    if (existsSync(path.join(folder, 'memory.swap.max'))) write('memory.swap.max', '0')
  }
  if (cpus > 0) write('cpu.max', `${Math.round(cpus * PERIOD_US)} ${PERIOD_US}`)
}

/** `folder`: whose processes it gets */
function moveTo (own: string, folder: string) {
  mkdirSync(own, { recursive: true })
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const pids = textIn(path.join(folder, 'cgroup.procs')).split('\n').filter(Boolean)
    if (pids.length === 0) return
    const reasons = pids.map((pid) => moveProcess(pid, own)).filter((reason) => reason !== null)
    if (reasons.length === pids.length)
      throw new Error(`the processes of ${folder} cannot be moved to ${own}: ${reasons[0]}`)
  }
}

/** @returns why it stays; null: it has been moved, or has ended */
function moveProcess (pid: string, own: string): string | null {
  try {
    writeFileSync(path.join(own, 'cgroup.procs'), pid)
    return null
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? null : errorText(error)
  }
}

function isMarked (folder: string) {
  return DELEGATED.some((name) => loadPosix()?.attributeOf(folder, name) === '1')
}
