import { accessSync, constants, openSync, readSync, closeSync, statSync } from 'node:fs'
import path from 'node:path'
import type { Sight } from './program.ts'

const HEAD_BYTES = 512
const NODE_LINE = /^#!.*\b(node|nodejs|tsx|ts-node)\b/
/** Scripts of package managers that start a program, on systems without links. */
const SHIM = /exec .*\bnode\b|\bnode_modules\b/

/**
 * Finds a script as PM2 does: below the app's folder, among the packages that are installed there, in PATH. `searched`:
 * PATH.
 */
export function lookUpScript (script: string, cwd: string, searched: string = process.env.PATH ?? ''): Sight {
  const here = path.resolve(cwd, script)
  if (isFolder(here)) return { file: here, runs: 'node' }
  const file = isFile(here) ? here : script.includes('/') ? undefined : commandFile(script, cwd, searched)
  return file === undefined ? { file: null, runs: null } : { file, runs: runnerOf(file) }
}

function commandFile (name: string, cwd: string, searched: string) {
  const folders = [...foldersUpwards(cwd).map((folder) => path.join(folder, 'node_modules', '.bin')),
    ...searched.split(path.delimiter).filter(Boolean)]
  return folders.map((folder) => path.join(folder, name)).find((file) => isFile(file) && isExecutable(file))
}

/** @returns it and all folders above */
function foldersUpwards (folder: string): string[] {
  const parent = path.dirname(folder)
  return parent === folder ? [folder] : [folder, ...foldersUpwards(parent)]
}

function runnerOf (file: string): 'node' | 'other' {
  const head = headOf(file)
  if (/\.([cm]?[jt]s|[jt]sx)$/.test(file) || NODE_LINE.test(head)) return 'node'
  if (head.startsWith('#!')) return SHIM.test(head) ? 'node' : 'other'
  return head.includes('\0') ? 'other' : 'node'
}

function headOf (file: string) {
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

function isFile (file: string) {
  return statOf(file)?.isFile() ?? false
}

function isFolder (file: string) {
  return statOf(file)?.isDirectory() ?? false
}

function statOf (file: string) {
  try {
    return statSync(file, { throwIfNoEntry: false })
  } catch {
    // ENAMETOOLONG, EACCES, a NUL: then it is not found.
    return undefined
  }
}

function isExecutable (file: string) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    // EACCES: a shell would not run it either.
    return false
  }
}
