import os from 'node:os'
import { attempt } from '../errors.ts'

/** Null: this user has none, as one that no passwd knows, in a container */
export function homeFolder (env: Record<string, string | undefined>): string | null {
  if (env.HOME) return env.HOME
  // uv_os_homedir: ENOENT.
  return attempt(() => os.homedir())
}
