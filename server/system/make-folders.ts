import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { errorCode } from '../errors.ts'
import { isFolder } from './working-folder.ts'

/**
 * Makes a folder, and those above it that are missing. mkdirSync() of Node with `recursive` would never return where
 * the system makes no folders, as below /proc.
 * @throws {NodeJS.ErrnoException}
 */
export function makeFolders (folder: string, mode?: number) {
  try {
    makeOne(folder, mode)
  } catch (error) {
    const above = path.dirname(folder)
    if (errorCode(error) !== 'ENOENT' || above === folder) throw error
    makeFolders(above, mode)
    makeOne(folder, mode)
  }
}

function makeOne (folder: string, mode?: number) {
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    // EEXIST, and on a disk that cannot be written EROFS too.
    if (!isFolder(folder)) throw error
  }
}
