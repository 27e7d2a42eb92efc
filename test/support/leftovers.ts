import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import { attempt } from '../../server/errors.ts'
import { loadPosix } from '../../server/system/posix.ts'

/** Processes by what their environment holds, which goes from each to whatever it starts. `mark`: as `NAME=value`. */
export function findProcesses (mark: string): { pid: number, command: string }[] {
  return findBy((place) => readFileSync(`${place}/environ`, 'utf8').split('\0').includes(mark))
}

/** `text`: anywhere in their environment @returns with all that this process has started, without itself */
export function findStarted (text: string): { pid: number, command: string }[] {
  const own = new Set(descendants(process.pid))
  return findBy((place) =>
    own.has(Number(path.basename(place))) || readFileSync(`${place}/environ`, 'utf8').includes(text)
  ).filter(({ pid }) => pid !== process.pid)
}

/** Some write a title over their environment. `folder`: that they run in. */
export function findProcessesIn (folder: string) {
  return findBy((place) => readlinkSync(`${place}/cwd`) === folder)
}

function findBy (isOurs: (place: string) => boolean) {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    // It has ended in between, or is somebody else's.
    const read = () => readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
    return attempt(() => isOurs(`/proc/${name}`) ? [{ pid: Number(name), command: read() }] : [], [])
  })
}

/** What waits for a disk that does not answer cannot be ended. */
const END_WITHIN_MS = 10_000

/**
 * Ends what this process has started, and all that has a word of its environment from there: by SIGKILL, as those who
 * end by themselves may start others meanwhile. `text`: in the environment.
 */
export function endProcessesOf (text: string) {
  const deadline = performance.now() + END_WITHIN_MS
  for (let found; performance.now() < deadline && (found = findStarted(text)).length > 0;) endEach(found)
}

export function endEach (found: { pid: number }[]) {
  for (const { pid } of found) {
    // ESRCH: it has ended in between.
    attempt(() => process.kill(pid, 'SIGKILL'))
  }
}

/** @returns what lives of those that it has started, and of those that they have */
function descendants (pid: number): number[] {
  const found = new Set([pid])
  // A child may have the lower number.
  for (let before = 0; found.size > before;) {
    before = found.size
    findBy((place) => isLivingChild(place, found)).forEach((child) => found.add(child.pid))
  }
  return [...found]
}

/** `place`: in /proc */
function isLivingChild (place: string, parents: Set<number>) {
  const [state, parent] = readFileSync(`${place}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
  return state !== 'Z' && parents.has(Number(parent))
}

const LISTENING = '0A'

/** Tells whether any TCP socket of this machine listens there, on whatever address */
export function isListening (port: number): boolean {
  return ['/proc/net/tcp', '/proc/net/tcp6'].some((file) =>
    readFileSync(file, 'utf8').split('\n').slice(1).some((line) => {
      const [, local, , state] = line.trim().split(/\s+/)
      return state === LISTENING && Number.parseInt(local.split(':')[1], 16) === port
    })
  )
}

/**
 * Asks the sockets of this process: the lists of /proc/net have those of all processes, and cost a busy kernel a tenth
 * of a second each.
 * @returns the descriptors by which this process listens, TCP and Unix sockets, by inode
 */
export function listeningSockets (): Map<string, number> {
  const calls = loadPosix()
  return new Map(readdirSync('/proc/self/fd').flatMap((fd) => {
    const inode = inodeOf(`/proc/self/fd/${fd}`)
    return inode !== undefined && calls?.isListening(Number(fd)) ? [[inode, Number(fd)]] : []
  }))
}

/** @returns where a socket listens */
export function addressOf (inode: string): string {
  const rows = ['tcp', 'tcp6', 'unix'].flatMap((kind) =>
    readFileSync(`/proc/self/net/${kind}`, 'utf8').trim().split('\n').slice(1).map((line) => line.trim().split(/\s+/))
  )
  const [row = []] = rows.filter((each) => each[9] === inode || each[6] === inode)
  return row[9] === inode ? `port ${Number.parseInt(row[1].split(':')[1], 16)}` : row[7] ?? 'no path'
}

/** @returns of a socket */
function inodeOf (fd: string): string | undefined {
  // ENOENT: the one by which the folder was read.
  return attempt(() => /^socket:\[(\d+)\]$/.exec(readlinkSync(fd))?.[1]) ?? undefined
}

/** `socket`: a path, or `@name`. Returns whether a Unix socket listens there. */
export function isBound (socket: string): boolean {
  return readFileSync('/proc/net/unix', 'utf8').split('\n').some((line) => line.endsWith(` ${socket}`))
}
