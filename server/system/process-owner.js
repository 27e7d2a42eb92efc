import { closeSync, constants, openSync, readFileSync, statSync } from 'node:fs'

/**
 * Whose a process is: of the user that it has in every respect, and who may look into it (ptrace(2)). All is read of one process, also where another
 * one gets its number meanwhile: proc(5).
 * @param {number} pid
 * @returns {{ user: number, groups: number[] } | null} null: of nobody alone, as it has begun with other rights; or there is none
 */
export function ownerOfProcess (pid) {
  let folder
  try {
    folder = openSync(`/proc/${pid}`, constants.O_RDONLY | constants.O_DIRECTORY)
    const { users, groups } = idsIn(readFileSync(`/proc/self/fd/${folder}/status`, 'utf8'))
    // This file is of root where its user may not look into the process.
    const { uid } = statSync(`/proc/self/fd/${folder}/environ`)
    return users.length > 0 && users.every((each) => each === uid) ? { user: uid, groups } : null
  } catch {
    // ENOENT, ESRCH: it has ended, or this is another system.
    return null
  } finally {
    if (folder !== undefined) closeSync(folder)
  }
}

/** @param {string} status of a process @returns {{ users: number[], groups: number[] }} the real one first */
export function idsIn (status) {
  const [users, main, others] = ['Uid', 'Gid', 'Groups'].map((field) => new RegExp(`^${field}:(.*)$`, 'm').exec(status)?.[1].split(/\s+/).filter(Boolean).map(Number) ?? [])
  return { users, groups: [...new Set([...main.slice(0, 1), ...others])] }
}
