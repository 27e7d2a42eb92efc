import { accessSync, constants, openSync, readSync, closeSync, statSync } from 'node:fs'
import path from 'node:path'

/** @typedef {import('./program.js').Sight} Sight */

const HEAD_BYTES = 512
const NODE_LINE = /^#!.*\b(node|nodejs|tsx|ts-node)\b/
/** Scripts of package managers that start a program, on systems without links. */
const SHIM = /exec .*\bnode\b|\bnode_modules\b/

/**
 * Finds a script as PM2 does: below the app's folder, among the packages that are installed there, in PATH.
 * @param {string} script @param {string} cwd @param {string} [searched] PATH
 * @returns {Sight}
 */
export function lookUpScript (script, cwd, searched = process.env.PATH ?? '') {
  const here = path.resolve(cwd, script)
  if (isFolder(here)) return { file: here, runs: 'node' }
  const file = isFile(here) ? here : script.includes('/') ? undefined : commandFile(script, cwd, searched)
  return file === undefined ? { file: null, runs: null } : { file, runs: runnerOf(file) }
}

/** @param {string} name @param {string} cwd @param {string} searched */
function commandFile (name, cwd, searched) {
  const folders = [...foldersUpwards(cwd).map((folder) => path.join(folder, 'node_modules', '.bin')), ...searched.split(path.delimiter).filter(Boolean)]
  return folders.map((folder) => path.join(folder, name)).find((file) => isFile(file) && isExecutable(file))
}

/** @param {string} folder @returns {string[]} it and all folders above */
function foldersUpwards (folder) {
  const parent = path.dirname(folder)
  return parent === folder ? [folder] : [folder, ...foldersUpwards(parent)]
}

/** @param {string} file @returns {'node' | 'other'} */
function runnerOf (file) {
  const head = headOf(file)
  if (/\.([cm]?[jt]s|[jt]sx)$/.test(file) || NODE_LINE.test(head)) return 'node'
  if (head.startsWith('#!')) return SHIM.test(head) ? 'node' : 'other'
  return head.includes('\0') ? 'other' : 'node'
}

/** @param {string} file */
function headOf (file) {
  try {
    const descriptor = openSync(file, 'r')
    const bytes = Buffer.alloc(HEAD_BYTES)
    const count = readSync(descriptor, bytes, 0, HEAD_BYTES, 0)
    closeSync(descriptor)
    return bytes.toString('latin1', 0, count)
  } catch {
    // EACCES: the user who starts it may read it.
    return ''
  }
}

/** @param {string} file */
function isFile (file) {
  return statOf(file)?.isFile() ?? false
}

/** @param {string} file */
function isFolder (file) {
  return statOf(file)?.isDirectory() ?? false
}

/** @param {string} file */
function statOf (file) {
  try {
    return statSync(file, { throwIfNoEntry: false })
  } catch {
    // ENAMETOOLONG, EACCES, a NUL: then it is not found.
    return undefined
  }
}

/** @param {string} file */
function isExecutable (file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    // EACCES: a shell would not run it either.
    return false
  }
}
