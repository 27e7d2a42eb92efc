import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import { loadPosix } from '../../server/system/posix.js'

/**
 * Processes by what their environment holds, which goes from each to whatever it starts.
 * @param {string} mark as `NAME=value` @returns {{ pid: number, command: string }[]}
 */
export function findProcesses (mark) {
  return findBy((place) => readFileSync(`${place}/environ`, 'utf8').split('\0').includes(mark))
}

/** @param {string} text anywhere in their environment @returns {{ pid: number, command: string }[]} with all that this process has started, without itself */
export function findStarted (text) {
  const own = new Set(descendants(process.pid))
  return findBy((place) => own.has(Number(path.basename(place))) || readFileSync(`${place}/environ`, 'utf8').includes(text)).filter(({ pid }) => pid !== process.pid)
}

/** Some write a title over their environment. @param {string} folder that they run in */
export function findProcessesIn (folder) {
  return findBy((place) => readlinkSync(`${place}/cwd`) === folder)
}

/** @param {(place: string) => boolean} isOurs */
function findBy (isOurs) {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    try {
      return isOurs(`/proc/${name}`) ? [{ pid: Number(name), command: readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() }] : []
    } catch {
      // It has ended in between, or is somebody else's.
      return []
    }
  })
}

/** What waits for a disk that does not answer cannot be ended. */
const END_WITHIN_MS = 10_000

/**
 * Ends what this process has started, and all that has a word of its environment from there: by SIGKILL, as those who end by
 * themselves may start others meanwhile.
 * @param {string} text in the environment
 */
export function endProcessesOf (text) {
  const deadline = performance.now() + END_WITHIN_MS
  for (let found; performance.now() < deadline && (found = findStarted(text)).length > 0;) endEach(found)
}

/** @param {{ pid: number }[]} found */
export function endEach (found) {
  for (const { pid } of found) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // ESRCH: it has ended in between.
    }
  }
}

/** @param {number} pid @returns {number[]} what lives of those that it has started, and of those that they have */
function descendants (pid) {
  const found = new Set([pid])
  // A child may have the lower number.
  for (let before = 0; found.size > before;) {
    before = found.size
    findBy((place) => isLivingChild(place, found)).forEach((child) => found.add(child.pid))
  }
  return [...found]
}

/** @param {string} place in /proc @param {Set<number>} parents */
function isLivingChild (place, parents) {
  const [state, parent] = readFileSync(`${place}/stat`, 'utf8').replace(/^.*\) /s, '').split(' ')
  return state !== 'Z' && parents.has(Number(parent))
}

const LISTENING = '0A'

/** @param {number} port @returns {boolean} whether any TCP socket of this machine listens there, on whatever address */
export function isListening (port) {
  return ['/proc/net/tcp', '/proc/net/tcp6'].some((file) => readFileSync(file, 'utf8').split('\n').slice(1).some((line) => {
    const [, local, , state] = line.trim().split(/\s+/)
    return state === LISTENING && Number.parseInt(local.split(':')[1], 16) === port
  }))
}

/**
 * Asks the sockets of this process: the lists of /proc/net have those of all processes, and cost a busy kernel a tenth of a second each.
 * @returns {Map<string, number>} the descriptors by which this process listens, TCP and Unix sockets, by inode
 */
export function listeningSockets () {
  const calls = loadPosix()
  return new Map(readdirSync('/proc/self/fd').flatMap((fd) => {
    const inode = inodeOf(`/proc/self/fd/${fd}`)
    return inode !== undefined && calls?.isListening(Number(fd)) ? [[inode, Number(fd)]] : []
  }))
}

/** @param {string} inode @returns {string} where a socket listens */
export function addressOf (inode) {
  const rows = ['tcp', 'tcp6', 'unix'].flatMap((kind) => readFileSync(`/proc/self/net/${kind}`, 'utf8').trim().split('\n').slice(1).map((line) => line.trim().split(/\s+/)))
  const [row = []] = rows.filter((each) => each[9] === inode || each[6] === inode)
  return row[9] === inode ? `port ${Number.parseInt(row[1].split(':')[1], 16)}` : row[7] ?? 'no path'
}

/** @param {string} fd @returns {string | undefined} of a socket */
function inodeOf (fd) {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(fd))?.[1]
  } catch {
    // ENOENT: the one by which the folder was read.
    return undefined
  }
}

/** @param {string} socket a path, or `@name` @returns {boolean} whether a Unix socket listens there */
export function isBound (socket) {
  return readFileSync('/proc/net/unix', 'utf8').split('\n').some((line) => line.endsWith(` ${socket}`))
}
