import { realpathSync, statSync } from 'node:fs'
import path from 'node:path'

/**
 * The folder that this process works in. `named`: as people call it, by the links that a shell has followed (`$PWD`) or that lead
 * to it in a path that was typed, and also where it has been removed since; `real`: where that is at the moment, or was.
 * @typedef {{ named: string, real: string }} WorkingFolder
 */

/**
 * @param {{ env?: Record<string, string | undefined>, cwd?: () => string, words?: readonly string[] }} [process_]  `words`: that were typed
 * @returns {WorkingFolder}
 */
export function workingFolder ({ env = process.env, cwd = process.cwd, words = process.argv.slice(2) } = {}) {
  const said = env.PWD !== undefined && path.isAbsolute(env.PWD) ? path.resolve(env.PWD) : null
  const real = tryOrNull(cwd)
  // ENOENT: it has been removed. Only the name is left, which a new folder may have by now.
  if (real === null) return { named: said ?? path.sep, real: said ?? path.sep }
  // Whoever starts a program in another folder than its own need not tell it. A service manager never does.
  const names = [said ?? [], ...words.map(foldersIn)].flat()
  return { named: names.find((name) => tryOrNull(() => realpathSync(name)) === real) ?? real, real }
}

/** @param {string} word that was typed @returns {string[]} the path in it, if that is absolute, and the folders above, the nearest first */
function foldersIn (word) {
  const file = word.replace(/^--[^=]+=/, '')
  return path.isAbsolute(file) ? withFoldersAbove(file) : []
}

/** @param {string} file absolute @returns {string[]} the nearest first */
function withFoldersAbove (file) {
  const folder = path.dirname(file)
  return folder === file ? [file] : [file, ...withFoldersAbove(folder)]
}

/** @param {string} folder absolute @returns {string} itself, or the nearest one above it that is there */
export function existingFolder (folder) {
  return isFolder(folder) || folder === path.dirname(folder) ? folder : existingFolder(path.dirname(folder))
}

/**
 * Node cannot go on for long in a folder that is not there.
 * @param {string} folder absolute
 */
export function standOn (folder) {
  if (tryOrNull(process.cwd) === null) process.chdir(existingFolder(folder))
}

/**
 * What is named by way of a link stays where the link led at the start.
 * @param {string} file absolute @param {WorkingFolder} from
 */
export function pinPath (file, { named, real }) {
  return file === named || file.startsWith(`${named}${path.sep}`) ? path.join(real, path.relative(named, file)) : file
}

/** @param {string} folder @returns {WorkingFolder} as it is now */
export function asNamed (folder) {
  return { named: folder, real: tryOrNull(() => realpathSync(folder)) ?? folder }
}

/** @param {string} folder */
export function isFolder (folder) {
  return tryOrNull(() => statSync(folder).isDirectory()) ?? false
}

/** @template T @param {() => T} work @returns {T | null} */
function tryOrNull (work) {
  try {
    return work()
  } catch {
    return null
  }
}
