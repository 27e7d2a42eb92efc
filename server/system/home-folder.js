import os from 'node:os'

/**
 * @param {Record<string, string | undefined>} env
 * @returns {string | null} null: this user has none, as one that no passwd knows, in a container
 */
export function homeFolder (env) {
  if (env.HOME) return env.HOME
  try {
    return os.homedir()
  } catch {
    // uv_os_homedir: ENOENT.
    return null
  }
}
