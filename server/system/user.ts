import os from 'node:os'
import { attempt } from '../errors.ts'

/** @returns the effective user of this process; -1 where the system has none */
export function userId (): number {
  return process.geteuid?.() ?? -1
}

/** @returns the number, where /etc/passwd has no name for it, as in many containers */
export function userName (): string {
  // ENOENT: the user has no entry.
  return attempt(() => os.userInfo().username, String(userId()))
}
