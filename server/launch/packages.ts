import { accessSync, closeSync, constants, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs'
import path from 'node:path'
import { attempt, succeeds } from '../errors.ts'

const MAX_PACKAGE_BYTES = 1024 * 1024
const HEAD_BYTES = 64 * 1024
const EXTENSIONS = ['', '.js', '.mjs', '.cjs']

/** Of others: the rest may be anything. */
export type PackageJson = { [key: string]: unknown, bin?: string | Record<string, unknown>,
  scripts?: Record<string, unknown>, dependencies?: object, devDependencies?: object }
export type Package = { folder: string, content: PackageJson }

export function isFile (file: string): boolean {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false
}

/** Tells whether this user may execute it */
export function isExecutable (file: string): boolean {
  // EACCES.
  return succeeds(() => accessSync(file, constants.X_OK))
}

/** `name`: perhaps without its extension. Returns the file as `node <name>` would find it. */
export function fileOf (name: string): string | undefined {
  return EXTENSIONS.map((extension) => name + extension).find(isFile)
}

/** @returns it and all above it, the nearest first */
export function foldersUpwards (folder: string): string[] {
  const above = path.dirname(folder)
  return above === folder ? [folder] : [folder, ...foldersUpwards(above)]
}

/** @returns null where there is none that can be read */
export function readPackage (folder: string): Package | null {
  // Without a package.json that can be read there is nothing to learn from it; the caller says what was expected.
  return attempt(() => {
    const file = path.join(folder, 'package.json')
    if (statSync(file).size > MAX_PACKAGE_BYTES) return null
    // Editors of Windows begin a file with a byte order mark; node and npm read over it.
    const content = JSON.parse(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))
    return typeof content === 'object' && content !== null ? { folder, content } : null
  })
}

/** @returns the nearest one from here upwards */
export function nearestPackage (folder: string): Package | null {
  for (const each of foldersUpwards(folder)) {
    const found = readPackage(each)
    if (found) return found
  }
  return null
}

/** @returns the folder of an installed package, as Node would find it from there */
export function installedPackage (name: string, folder: string): string | undefined {
  return foldersUpwards(folder).map((each) => path.join(each, 'node_modules', name)).find((each) =>
    isFile(path.join(each, 'package.json'))
  )
}

/** `name`: default: its own. Returns the file of its command. */
export function commandOf ({ folder, content }: Package, name: string = String(content.name).replace(/^@[^/]*\//, '')):
  | string
  | undefined
{
  const { bin } = content
  if (typeof bin === 'string') return fileOf(path.resolve(folder, bin))
  if (typeof bin !== 'object' || bin === null) return undefined
  const only = Object.keys(bin).length === 1 ? Object.values(bin)[0] : undefined
  const file = Object.hasOwn(bin, name) ? bin[name] : only
  return typeof file === 'string' ? fileOf(path.resolve(folder, file)) : undefined
}

/**
 * The file of a command, as a script of package.json would find it: that of an installed package, else one of PATH.
 * `searchPath`: as of PATH.
 */
export function findCommand (name: string, cwd: string, searchPath: string = ''): string | undefined {
  if (name.includes('/')) return isFile(path.resolve(cwd, name)) ? path.resolve(cwd, name) : undefined
  return inNodeModules(name, cwd) ??
    searchPath.split(path.delimiter).filter(Boolean).map((folder) => path.join(folder, name)).find(isFile)
}

function inNodeModules (name: string, cwd: string) {
  const linked = foldersUpwards(cwd).map((folder) => path.join(folder, 'node_modules', '.bin', name)).find(isFile)
  if (linked) return linked
  const installed = installedPackage(name, cwd)
  const found = installed === undefined ? null : readPackage(installed)
  return found ? commandOf(found) : undefined
}

/**
 * What a file of a command is: for Node, with the options of its first line, or a script for a shell that leads to one,
 * as pnpm and others write them into `node_modules/.bin`. Returns null: it is for something else.
 */
export function nodeFileOf (file: string): { entry: string, execArgv: string[], env: Record<string, string> } | null {
  const head = headOf(file)
  if (head.includes('\0')) return null
  const interpreter = /^#!\s*(.*)$/m.exec(head.startsWith('#!') ? head : '')?.[1].trim()
  if (interpreter === undefined)
    return /\.[cm]?[jt]sx?$/.test(realpathSync(file)) ? { entry: file, execArgv: [], env: {} } : null
  const [, options] = /^\S*?(?:env\s+(?:-S\s*)?)?(?:\S*\/)?node(?:js)?(?:\s+(.*))?$/.exec(interpreter) ?? [null, null]
  if (options !== null) return { entry: file, execArgv: options?.split(/\s+/).filter(Boolean) ?? [], env: {} }
  return inShellScript(file, head)
}

function inShellScript (file: string, head: string) {
  const target = /"\$basedir\/([^"$]+)"\s+"\$@"/.exec(head)?.[1] ??
    /\bexec\s+node\s+"(\/[^"$]+)"\s+"\$@"/.exec(head)?.[1]
  const leadsTo = target === undefined ? undefined : path.resolve(path.dirname(file), target)
  const found = leadsTo !== undefined && leadsTo !== file && isFile(leadsTo) ? nodeFileOf(leadsTo) : null
  const nodePath = /export NODE_PATH="([^"$]+)"/.exec(head)?.[1]
  return found && nodePath ? { ...found, env: { NODE_PATH: nodePath } } : found
}

/** `file`: without an extension that says it. Returns whether it says that it is for something else than Node. */
export function isForeign (file: string): boolean {
  const head = headOf(file)
  return head.includes('\0') || (head.startsWith('#!') && nodeFileOf(file) === null)
}

/** @returns its beginning */
export function headOf (file: string): string {
  const buffer = Buffer.alloc(HEAD_BYTES)
  const descriptor = openSync(file, 'r')
  try {
    return buffer.toString('latin1', 0, readSync(descriptor, buffer, 0, HEAD_BYTES, 0))
  } finally {
    closeSync(descriptor)
  }
}

/** `folder`: of a package, as `.` is, or of files. Returns the file as `node <folder>` would find it. */
export function mainOf (folder: string): string | undefined {
  const main = readPackage(folder)?.content.main
  const named = typeof main === 'string' && !main.includes('\0') ? path.resolve(folder, main) : null
  return named === null ? undefined : fileOf(named) ?? fileOf(path.join(named, 'index'))
}
