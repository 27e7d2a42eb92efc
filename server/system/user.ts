import os from 'node:os'

/** @returns the effective user of this process; -1 where the system has none */
export function userId (): number {
  return process.geteuid?.() ?? -1
}

/** @returns the number, where /etc/passwd has no name for it, as in many containers */
export function userName (): string {
  try {
    return os.userInfo().username
  } catch {
    // ENOENT: the user has no entry.
    return String(userId())
  }
}
