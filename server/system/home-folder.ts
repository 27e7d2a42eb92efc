import os from 'node:os'

/** Null: this user has none, as one that no passwd knows, in a container */
export function homeFolder (env: Record<string, string | undefined>): string | null {
  if (env.HOME) return env.HOME
  try {
    return os.homedir()
  } catch {
    // uv_os_homedir: ENOENT.
    return null
  }
}
