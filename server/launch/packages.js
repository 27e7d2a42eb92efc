import { accessSync, closeSync, constants, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs'
import path from 'node:path'

const MAX_PACKAGE_BYTES = 1024 * 1024
const HEAD_BYTES = 64 * 1024
const EXTENSIONS = ['', '.js', '.mjs', '.cjs']

/** @typedef {{ folder: string, content: Record<string, any> }} Package */

/** @param {string} file @returns {boolean} */
export function isFile (file) {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ?? false
}

/** @param {string} file @returns {boolean} whether this user may execute it */
export function isExecutable (file) {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    // EACCES.
    return false
  }
}

/** @param {string} name perhaps without its extension @returns {string | undefined} the file as `node <name>` would find it */
export function fileOf (name) {
  return EXTENSIONS.map((extension) => name + extension).find(isFile)
}

/** @param {string} folder @returns {string[]} it and all above it, the nearest first */
export function foldersUpwards (folder) {
  const above = path.dirname(folder)
  return above === folder ? [folder] : [folder, ...foldersUpwards(above)]
}

/** @param {string} folder @returns {Package | null} null where there is none that can be read */
export function readPackage (folder) {
  try {
    const file = path.join(folder, 'package.json')
    if (statSync(file).size > MAX_PACKAGE_BYTES) return null
    // Editors of Windows begin a file with a byte order mark; node and npm read over it.
    const content = JSON.parse(readFileSync(file, 'utf8').replace(/^\uFEFF/, ''))
    return typeof content === 'object' && content !== null ? { folder, content } : null
  } catch {
    // Without a package.json that can be read there is nothing to learn from it; the caller says what was expected.
    return null
  }
}

/** @param {string} folder @returns {Package | null} the nearest one from here upwards */
export function nearestPackage (folder) {
  for (const each of foldersUpwards(folder)) {
    const found = readPackage(each)
    if (found) return found
  }
  return null
}

/** @param {string} name @param {string} folder @returns {string | undefined} the folder of an installed package, as Node would find it from there */
export function installedPackage (name, folder) {
  return foldersUpwards(folder).map((each) => path.join(each, 'node_modules', name)).find((each) => isFile(path.join(each, 'package.json')))
}

/** @param {Package} found @param {string} [name] default: its own @returns {string | undefined} the file of its command */
export function commandOf ({ folder, content }, name = String(content.name).replace(/^@[^/]*\//, '')) {
  const { bin } = content
  if (typeof bin === 'string') return fileOf(path.resolve(folder, bin))
  if (typeof bin !== 'object' || bin === null) return undefined
  const only = Object.keys(bin).length === 1 ? Object.values(bin)[0] : undefined
  const file = Object.hasOwn(bin, name) ? bin[name] : only
  return typeof file === 'string' ? fileOf(path.resolve(folder, file)) : undefined
}

/**
 * The file of a command, as a script of package.json would find it: that of an installed package, else one of PATH.
 * @param {string} name @param {string} cwd @param {string} [searchPath] as of PATH
 * @returns {string | undefined}
 */
export function findCommand (name, cwd, searchPath = '') {
  if (name.includes('/')) return isFile(path.resolve(cwd, name)) ? path.resolve(cwd, name) : undefined
  return inNodeModules(name, cwd) ?? searchPath.split(path.delimiter).filter(Boolean).map((folder) => path.join(folder, name)).find(isFile)
}

/** @param {string} name @param {string} cwd */
function inNodeModules (name, cwd) {
  const linked = foldersUpwards(cwd).map((folder) => path.join(folder, 'node_modules', '.bin', name)).find(isFile)
  if (linked) return linked
  const installed = installedPackage(name, cwd)
  const found = installed === undefined ? null : readPackage(installed)
  return found ? commandOf(found) : undefined
}

/**
 * What a file of a command is: for Node, with the options of its first line, or a script for a shell that leads to one, as
 * pnpm and others write them into `node_modules/.bin`.
 * @param {string} file
 * @returns {{ entry: string, execArgv: string[], env: Record<string, string> } | null} null: it is for something else
 */
export function nodeFileOf (file) {
  const head = headOf(file)
  if (head.includes('\0')) return null
  const interpreter = /^#!\s*(.*)$/m.exec(head.startsWith('#!') ? head : '')?.[1].trim()
  if (interpreter === undefined) return /\.[cm]?[jt]sx?$/.test(realpathSync(file)) ? { entry: file, execArgv: [], env: {} } : null
  const [, options] = /^\S*?(?:env\s+(?:-S\s*)?)?(?:\S*\/)?node(?:js)?(?:\s+(.*))?$/.exec(interpreter) ?? [null, null]
  if (options !== null) return { entry: file, execArgv: options?.split(/\s+/).filter(Boolean) ?? [], env: {} }
  return inShellScript(file, head)
}

/** @param {string} file @param {string} head */
function inShellScript (file, head) {
  const target = /"\$basedir\/([^"$]+)"\s+"\$@"/.exec(head)?.[1] ?? /\bexec\s+node\s+"(\/[^"$]+)"\s+"\$@"/.exec(head)?.[1]
  const leadsTo = target === undefined ? undefined : path.resolve(path.dirname(file), target)
  const found = leadsTo !== undefined && leadsTo !== file && isFile(leadsTo) ? nodeFileOf(leadsTo) : null
  const nodePath = /export NODE_PATH="([^"$]+)"/.exec(head)?.[1]
  return found && nodePath ? { ...found, env: { NODE_PATH: nodePath } } : found
}

/** @param {string} file without an extension that says it @returns {boolean} whether it says that it is for something else than Node */
export function isForeign (file) {
  const head = headOf(file)
  return head.includes('\0') || (head.startsWith('#!') && nodeFileOf(file) === null)
}

/** @param {string} file @returns {string} its beginning */
function headOf (file) {
  const buffer = Buffer.alloc(HEAD_BYTES)
  const descriptor = openSync(file, 'r')
  try {
    return buffer.toString('latin1', 0, readSync(descriptor, buffer, 0, HEAD_BYTES, 0))
  } finally {
    closeSync(descriptor)
  }
}

/** @param {string} folder of a package, as `.` is, or of files @returns {string | undefined} the file as `node <folder>` would find it */
export function mainOf (folder) {
  const main = readPackage(folder)?.content.main
  const named = typeof main === 'string' && !main.includes('\0') ? path.resolve(folder, main) : null
  return named === null ? undefined : fileOf(named) ?? fileOf(path.join(named, 'index'))
}
