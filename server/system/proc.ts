import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { attempt } from '../errors.ts'

/*
 * What the kernel tells of processes: proc(5). All of it is empty for a process that has ended meanwhile (ENOENT,
 * ESRCH), for another user's (EACCES), and on another system than Linux.
 */

export function namesIn (folder: string): string[] {
  return attempt(() => readdirSync(folder), [])
}

export function textIn (file: string): string {
  return attempt(() => readFileSync(file, 'utf8'), '')
}

/** @returns where it leads */
export function linkAt (link: string): string {
  return attempt(() => readlinkSync(link), '')
}

/** `descriptor`: such as /proc/1/fd/3. Returns the inode of the socket; 0: it is something else. */
export function socketAt (descriptor: string): number {
  const target = linkAt(descriptor)
  return target.startsWith('socket:[') ? Number(target.slice(8, -1)) : 0
}

/** @returns its fields by their numbers in proc_pid_stat(5), of which the first is 1 */
export function statOf (pid: number | string): string[] | null {
  const text = textIn(`/proc/${pid}/stat`)
  // The command name may hold anything, parentheses too.
  const end = text.lastIndexOf(')')
  return end === -1
    ? null
    : ['', String(pid), text.slice(text.indexOf('(') + 1, end), ...text.slice(end + 2).split(' ')]
}
