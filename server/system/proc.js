import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/*
 * What the kernel tells of processes: proc(5). All of it is empty for a process that has ended meanwhile (ENOENT, ESRCH),
 * for another user's (EACCES), and on another system than Linux.
 */

/** @param {string} folder @returns {string[]} */
export function namesIn (folder) {
  return readOr(() => readdirSync(folder), [])
}

/** @param {string} file @returns {string} */
export function textIn (file) {
  return readOr(() => readFileSync(file, 'utf8'), '')
}

/** @param {string} link @returns {string} where it leads */
export function linkAt (link) {
  return readOr(() => readlinkSync(link), '')
}

/** @param {string} descriptor  such as /proc/1/fd/3 @returns {number} the inode of the socket; 0: it is something else */
export function socketAt (descriptor) {
  const target = linkAt(descriptor)
  return target.startsWith('socket:[') ? Number(target.slice(8, -1)) : 0
}

/** @param {number | string} pid @returns {string[] | null} its fields by their numbers in proc_pid_stat(5), of which the first is 1 */
export function statOf (pid) {
  const text = textIn(`/proc/${pid}/stat`)
  // The command name may hold anything, parentheses too.
  const end = text.lastIndexOf(')')
  return end === -1 ? null : ['', String(pid), text.slice(text.indexOf('(') + 1, end), ...text.slice(end + 2).split(' ')]
}

/** @template T @param {() => T} read @param {T} otherwise @returns {T} */
function readOr (read, otherwise) {
  try {
    return read()
  } catch {
    return otherwise
  }
}
