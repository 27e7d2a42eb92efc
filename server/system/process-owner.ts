import { closeSync, constants, openSync, readFileSync, statSync } from 'node:fs'

/**
 * Whose a process is: of the user that it has in every respect. All is read of one process, also where another one gets
 * its number meanwhile: proc(5).
 * @returns `isOpen`: that user may look into it (ptrace(2)), as it has no more rights, and has begun with no more;
 * null: it is of several, or there is none
 */
export function ownerOfProcess (pid: number): { user: number, groups: number[], isOpen: boolean } | null {
  let folder
  try {
    folder = openSync(`/proc/${pid}`, constants.O_RDONLY | constants.O_DIRECTORY)
    const status = readFileSync(`/proc/self/fd/${folder}/status`, 'utf8')
    const { users: [user, ...others], groups } = idsIn(status)
    // This file is of root where its user may not look into the process.
    const { uid } = statSync(`/proc/self/fd/${folder}/environ`)
    return others.every((each) => each === user)
      ? { user, groups, isOpen: uid === user && (user === 0 || /^CapPrm:\s*0+$/m.test(status)) }
      : null
  } catch {
    // ENOENT, ESRCH: it has ended, or this is another system.
    return null
  } finally {
    if (folder !== undefined) closeSync(folder)
  }
}

/** `status`: of a process. Returns the real one first. */
export function idsIn (status: string): { users: number[], groups: number[] } {
  const [users, main, others] = ['Uid', 'Gid', 'Groups'].map((field) =>
    new RegExp(`^${field}:(.*)$`, 'm').exec(status)?.[1].split(/\s+/).filter(Boolean).map(Number) ?? []
  )
  return { users, groups: [...new Set([...main.slice(0, 1), ...others])] }
}
