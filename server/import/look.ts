import { statSync } from 'node:fs'
import path from 'node:path'
import { attempt } from '../errors.ts'
import { foldersUpwards, headOf, isExecutable } from '../launch/packages.ts'
import type { Sight } from './program.ts'

const NODE_LINE = /^#!.*\b(node|nodejs|tsx|ts-node)\b/
/** Scripts of package managers that start a program, on systems without links. */
const SHIM = /exec .*\bnode\b|\bnode_modules\b/

/**
 * Finds a script as PM2 does: below the app's folder, among the packages that are installed there, in PATH. `searched`:
 * PATH.
 */
export function lookUpScript (script: string, cwd: string, searched: string = process.env.PATH ?? ''): Sight {
  const here = path.resolve(cwd, script)
  if (statOf(here)?.isDirectory()) return { file: here, runs: 'node' }
  const file = isFile(here) ? here : script.includes('/') ? undefined : commandFile(script, cwd, searched)
  return file === undefined ? { file: null, runs: null } : { file, runs: runnerOf(file) }
}

function commandFile (name: string, cwd: string, searched: string) {
  const folders = [...foldersUpwards(cwd).map((folder) => path.join(folder, 'node_modules', '.bin')),
    ...searched.split(path.delimiter).filter(Boolean)]
  return folders.map((folder) => path.join(folder, name)).find((file) => isFile(file) && isExecutable(file))
}

function runnerOf (file: string): 'node' | 'other' {
  // EACCES: the user who starts it may read it.
  const head = attempt(() => headOf(file), '')
  if (/\.([cm]?[jt]s|[jt]sx)$/.test(file) || NODE_LINE.test(head)) return 'node'
  if (head.startsWith('#!')) return SHIM.test(head) ? 'node' : 'other'
  return head.includes('\0') ? 'other' : 'node'
}

function isFile (file: string) {
  return statOf(file)?.isFile() ?? false
}

function statOf (file: string) {
  // ENAMETOOLONG, EACCES, a NUL: then it is not found.
  return attempt(() => statSync(file, { throwIfNoEntry: false }))
}
