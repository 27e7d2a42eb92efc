import { execFile } from 'node:child_process'
import { access, constants, readFile, stat, statfs } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { descriptorLimit } from '../system/descriptors.ts'
import { withoutOwnVariables } from '../system/own-variables.ts'
import { textIn } from '../system/proc.ts'
import { userId } from '../system/user.ts'
import { createSystemctl } from '../systemd/systemctl.ts'
import { unitOf } from '../systemd/unit-of.ts'

/**
 * A place where something is kept. `null`: the system does not tell.
 * `isRoot`: of the same file system as `/`
 */
export type Disk = { folder: string, isWritable: boolean, freeBytes: number | null, totalBytes: number | null,
  freeFiles: number | null, totalFiles: number | null, type: 'network' | 'memory' | 'overlay' | 'disk' | null,
  isRoot: boolean }
export type Service = { name: string, isOfUser: boolean, killMode: string | null, isEnabled: boolean | null,
  lingers: boolean | null }
export type Listener = { port: number, address: string }
export type Machine = {
  /** `limitBytes`: of the control group */
  memory: { totalBytes: number, limitBytes: number | null },
  /** how many files a process may open; null: no limit is known */
  descriptors: number | null,
  isClockSynchronized: boolean | null,
  isContainer: boolean,
  /** the name of process 1 */
  firstProcess: string | null,
  hasSystemd: boolean,
  /** that the master or its keeper is the main process of */
  service: Service | null,
  /** this process belongs to some service, perhaps to that of a terminal or of cron */
  isInService: boolean,
  /** TCP ports that are in use, before a start */
  listeners: readonly Listener[]
}

const ASK_WITHIN_MS = 2000
/** linux/magic.h */
const FILE_SYSTEMS: Readonly<Record<number, Disk['type']>> = Object.freeze({ 0x6969: 'network', 0xff534d42: 'network',
  0xfe534d42: 'network', 0x517b: 'network', 0x01021997: 'network', 0x01021994: 'memory', 0x858458f6: 'memory',
  0x794c7630: 'overlay' })
const LISTENING = '0A'

/** `pids`: of the master and its keeper; none: it has not been started */
export async function lookAtMachine (
  { pids, env }: { pids: readonly number[], env: Record<string, string | undefined> }
): Promise<Machine> {
  const hasSystemd = await isThere('/run/systemd/system')
  const [isClockSynchronized, service, isContainer] = await Promise.all([hasSystemd ? askClock(env) : null,
    hasSystemd ? askService(pids, env) : null, isInContainer()])
  const limit = process.constrainedMemory?.() ?? 0
  const totalBytes = os.totalmem()
  return {
    memory: { totalBytes, limitBytes: limit > 0 && limit < totalBytes ? limit : null },
    descriptors: descriptorsOf('self'),
    isClockSynchronized,
    isContainer,
    firstProcess: textIn('/proc/1/comm').trim() || null,
    hasSystemd,
    service,
    isInService: /\.service(\/clusterdeck)?$/m.test(textIn('/proc/self/cgroup')),
    // With many connections the kernel takes long to write these tables, and the master is not to wait for it.
    listeners: pids.length > 0 ? [] : [...listenersIn('/proc/net/tcp'), ...listenersIn('/proc/net/tcp6')]
  }
}

/** `pid`: of a process of Node, which raises its limit as far as it may. Returns how many files it may open. */
export function descriptorsOf (pid: number | 'self'): number | null {
  const limit = descriptorLimit(`/proc/${pid}/limits`)
  return limit === Infinity ? null : limit
}

/** `folder`: which need not exist yet */
export async function lookAtDisk (folder: string): Promise<Disk> {
  let there = folder
  while (there !== path.dirname(there) && !await isThere(there)) there = path.dirname(there)
  const isWritable = await access(there, constants.W_OK).then(() => true, () => false)
  try {
    const [{ bavail, bsize, blocks, ffree, files, type }, own, root] = await Promise.all([statfs(there), stat(there),
      stat('/')])
    return {
      folder,
      isWritable,
      freeBytes: bavail * bsize,
      totalBytes: blocks * bsize,
      // Some file systems make inodes as they need them, and say that they have none.
      ...(files > 0 ? { freeFiles: ffree, totalFiles: files } : { freeFiles: null, totalFiles: null }),
      type: process.platform === 'linux' ? FILE_SYSTEMS[type] ?? 'disk' : null,
      isRoot: own.dev === root.dev
    }
  } catch {
    // EACCES, ENOSYS: nobody tells.
    return { folder, isWritable, freeBytes: null, totalBytes: null, freeFiles: null, totalFiles: null, type: null,
      isRoot: false }
  }
}

async function askClock (env: Record<string, string | undefined>): Promise<boolean | null> {
  const text = await new Promise((resolve) => {
    // Where systemd runs, this process is not process 1: as such it would take the child for an orphan to be reaped.
    execFile('timedatectl', ['show', '--property=NTPSynchronized', '--value'], {
      env: { ...withoutOwnVariables(env), LC_ALL: 'C' },
      timeout: ASK_WITHIN_MS,
      killSignal: 'SIGKILL'
    }, (_error, stdout) => resolve(stdout.trim()))
  })
  return text === 'yes' ? true : text === 'no' ? false : null
}

async function askService (pids: readonly number[], env: Record<string, string | undefined>): Promise<Service | null> {
  const unit = pids.map((pid) => unitOf(pid)).find((each) => each !== null)
  if (!unit) return null
  const systemctl = createSystemctl({ scope: unit.isOfUser ? 'user' : 'system', env, patienceMs: ASK_WITHIN_MS })
  const [{ KillMode: killMode = null, UnitFileState: state }, lingers] = await Promise.all([
    systemctl.properties(unit.name, ['KillMode', 'UnitFileState']),
    unit.isOfUser ? systemctl.lingers(userId()) : null
  ])
  return { ...unit, killMode, isEnabled: state === undefined ? null : state !== 'disabled', lingers }
}

async function isInContainer () {
  return await isThere('/.dockerenv') || await isThere('/run/.containerenv') ||
    /^container=./m.test((await readFile('/proc/1/environ', 'latin1').catch(() => '')).replaceAll('\0', '\n'))
}

/** `file`: see proc_net_tcp(5) */
function listenersIn (file: string): Listener[] {
  const rows = textIn(file).split('\n').slice(1).map((line) => line.trim().split(/\s+/))
  return rows.filter(([, , , state]) => state === LISTENING).map(([, local]) => ({ address: local.split(':')[0],
    port: parseInt(local.split(':')[1], 16) })
  )
}

export function isThere (file: string): Promise<boolean> {
  return access(file).then(() => true, () => false)
}
