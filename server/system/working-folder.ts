import { realpathSync, statSync } from 'node:fs'
import path from 'node:path'
import { attempt } from '../errors.ts'

/**
 * The folder that this process works in. `named`: as people call it, by the links that a shell has followed (`$PWD`) or
 * that lead to it in a path that was typed, and also where it has been removed since; `real`: where that is at the
 * moment, or was.
 */
export type WorkingFolder = { named: string, real: string }

/** `words`: that were typed */
export function workingFolder (
  { env = process.env, cwd = process.cwd, words = process.argv.slice(2) }: { env?: Record<string, string | undefined>,
    cwd?: () => string, words?: readonly string[] } = {}
): WorkingFolder {
  const said = env.PWD !== undefined && path.isAbsolute(env.PWD) ? path.resolve(env.PWD) : null
  const real = attempt(cwd)
  // ENOENT: it has been removed. Only the name is left, which a new folder may have by now.
  if (real === null) return { named: said ?? path.sep, real: said ?? path.sep }
  // Whoever starts a program in another folder than its own need not tell it. A service manager never does.
  const names = [said ?? [], ...words.map(foldersIn)].flat()
  return { named: names.find((name) => attempt(() => realpathSync(name)) === real) ?? real, real }
}

/** `word`: that was typed. Returns the path in it, if that is absolute, and the folders above, the nearest first. */
function foldersIn (word: string): string[] {
  const file = word.replace(/^--[^=]+=/, '')
  return path.isAbsolute(file) ? withFoldersAbove(file) : []
}

/** `file`: absolute. Returns the nearest first. */
function withFoldersAbove (file: string): string[] {
  const folder = path.dirname(file)
  return folder === file ? [file] : [file, ...withFoldersAbove(folder)]
}

/** `folder`: absolute. Returns itself, or the nearest one above it that is there. */
export function existingFolder (folder: string): string {
  return isFolder(folder) || folder === path.dirname(folder) ? folder : existingFolder(path.dirname(folder))
}

/** Node cannot go on for long in a folder that is not there. `folder`: absolute. */
export function standOn (folder: string) {
  if (attempt(process.cwd) === null) process.chdir(existingFolder(folder))
}

/** What is named by way of a link stays where the link led at the start. `file`: absolute. */
export function pinPath (file: string, { named, real }: WorkingFolder) {
  return file === named || file.startsWith(`${named}${path.sep}`) ? path.join(real, path.relative(named, file)) : file
}

/** @returns as it is now */
export function asNamed (folder: string): WorkingFolder {
  return { named: folder, real: attempt(() => realpathSync(folder)) ?? folder }
}

export function isFolder (folder: string) {
  return attempt(() => statSync(folder).isDirectory()) ?? false
}
