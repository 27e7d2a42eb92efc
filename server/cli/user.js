import os from 'node:os'

/** @returns {number} of whoever asks; -1 where a system has none */
export function userId () {
  return process.geteuid?.() ?? -1
}

/** @returns {string} the number where no list of users has a name, as in many containers */
export function userName () {
  try {
    return os.userInfo().username
  } catch {
    // ENOENT
    return String(userId())
  }
}
