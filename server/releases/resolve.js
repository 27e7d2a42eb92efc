import { realpathSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from '../errors.js'

/**
 * @param {{ id: string, mode?: string }} release
 * @returns {boolean} whether it runs where people edit, so that its files may change under its workers
 */
export function isLive ({ mode = 'live' }) {
  return mode === 'live'
}

/**
 * Pins what `entry` means now: where it goes through a symlink (`current/app.js`), the release is what that points to.
 * @param {string} entry absolute path
 * @returns {Omit<import('../lifecycle/state.js').Release, 'id' | 'createdAt'>}
 * @throws {DeckError} entry-not-found
 */
export function resolveRelease (entry) {
  try {
    const real = realpathSync(entry)
    return { entry: real, path: path.dirname(real) }
  } catch (error) {
    throw new DeckError('entry-not-found', `entry: expected a file, received ${entry}, which does not exist`, { cause: error })
  }
}
