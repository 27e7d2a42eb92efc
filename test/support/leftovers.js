import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/**
 * Processes by what their environment holds, which goes from each to whatever it starts.
 * @param {string} mark as `NAME=value` @returns {{ pid: number, command: string }[]}
 */
export function findProcesses (mark) {
  return findBy((place) => readFileSync(`${place}/environ`, 'utf8').split('\0').includes(mark))
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

const LISTENING = '0A'

/** @param {number} port @returns {boolean} whether any TCP socket of this machine listens there, on whatever address */
export function isListening (port) {
  return ['/proc/net/tcp', '/proc/net/tcp6'].some((file) => readFileSync(file, 'utf8').split('\n').slice(1).some((line) => {
    const [, local, , state] = line.trim().split(/\s+/)
    return state === LISTENING && Number.parseInt(local.split(':')[1], 16) === port
  }))
}

/** @param {string} socket a path, or `@name` @returns {boolean} whether a Unix socket listens there */
export function isBound (socket) {
  return readFileSync('/proc/net/unix', 'utf8').split('\n').some((line) => line.endsWith(` ${socket}`))
}
