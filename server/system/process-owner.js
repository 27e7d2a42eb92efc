import { closeSync, constants, openSync, readFileSync, statSync } from 'node:fs'

/** @typedef {{ user: number, groups: number[] }} ProcessOwner  `groups`: the main one first */

/**
 * Whose a process is: of the user that it has in every respect, and who may look into it (ptrace(2)). All is read of one process, also where another
 * one gets its number meanwhile: proc(5).
 * @param {number} pid
 * @returns {ProcessOwner | null} null: of nobody alone, as it has begun with other rights; or there is none
 */
export function ownerOfProcess (pid) {
  let folder
  try {
    folder = openSync(`/proc/${pid}`, constants.O_RDONLY | constants.O_DIRECTORY)
    const status = readFileSync(`/proc/self/fd/${folder}/status`, 'utf8')
    // This file is of root where its user may not look into the process.
    const { uid } = statSync(`/proc/self/fd/${folder}/environ`)
    return idsIn(status, 'Uid').every((each) => each === uid) ? { user: uid, groups: groupsIn(status) } : null
  } catch {
    // ENOENT, ESRCH: it has ended, or this is another system.
    return null
  } finally {
    if (folder !== undefined) closeSync(folder)
  }
}

/** @param {string} status of a process @returns {number[]} */
export function groupsIn (status) {
  return [...new Set([...idsIn(status, 'Gid').slice(0, 1), ...idsIn(status, 'Groups')])]
}

/** @param {string} status @param {string} field  such as Gid @returns {number[]} */
export function idsIn (status, field) {
  const [, text = ''] = new RegExp(`^${field}:(.*)$`, 'm').exec(status) ?? []
  return text.split(/\s+/).filter(Boolean).map(Number)
}
