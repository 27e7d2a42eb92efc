import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DeckError, errorCode } from '../errors.js'

/**
 * @typedef {object} TreeEntry
 * @property {'folder' | 'file' | 'link'} kind
 * @property {string} name  from the top of the tree
 * @property {boolean} isDependency  inside of node_modules, or of the cache that a project with Yarn Plug'n'Play has
 * @property {number} mode
 * @property {number} size
 * @property {number} mtimeMs
 * @property {number} ctimeMs
 * @property {number} mark  differs after each write, even if a tool has set the mtime back
 * @property {string | null} target  of a link
 */

const MAX_ENTRIES = 500_000
/** Packages, and the cache that a project with Yarn Plug'n'Play has. */
const DEPENDENCY = /(^|\/)(node_modules|\.yarn\/(cache|unplugged))(\/|$)/
/** Calls without promises take a third of the CPU time, but everything else waits for them: they go on for so long at a time, as the hash does. */
const SLICE_MS = 2

/** Data folders, also of other apps of the same config file: their releases would hold those of the others, and so on. */
const DATA_FOLDER = '.clusterdeck'
const IN_DATA_FOLDER = ['admin.token', 'history.db']

/** Caches of build tools, which are no part of a release. By the folder that they are in. @type {Readonly<Record<string, string>>} */
const CACHES = Object.freeze({ '.cache': 'node_modules', cache: '.next' })

/**
 * Lists the folder of an app, each folder before its content. It leaves out data folders, `.git`, caches of build tools (`node_modules/.cache`,
 * `.next/cache`), and sockets, pipes and devices.
 * @param {string} top real path
 * @param {{ except: readonly string[], packages?: boolean, limit?: number }} options  `except`: files and folders that are left out, absolute
 *   paths without links; `packages`: list these too
 * @returns {Promise<TreeEntry[]>}
 * @throws {DeckError} copy-failed
 */
export async function listTree (top, { except, packages = true, limit = MAX_ENTRIES }) {
  /** @type {TreeEntry[]} */
  const entries = []
  const folders = ['']
  const slice = createSlice()
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const names = readdirSync(path.join(top, folder)).sort()
    if (IN_DATA_FOLDER.every((name) => names.includes(name))) continue
    for (const base of names) {
      if (slice.isOver()) await slice.next()
      if (base === '.git' || base === DATA_FOLDER || (Object.hasOwn(CACHES, base) && path.basename(folder) === CACHES[base])) continue
      const name = path.join(folder, base)
      const file = path.join(top, name)
      const isDependency = DEPENDENCY.test(name)
      const entry = except.includes(file) || (isDependency && !packages) ? null : lookAtEntry({ name, file, isDependency })
      if (!entry) continue
      entries.push(entry)
      if (entry.kind === 'folder') folders.push(name)
    }
    if (entries.length > limit) {
      throw new DeckError('copy-failed', `the copy of ${top} failed: expected at most ${limit} files, received more`)
    }
  }
  return entries
}

/** @param {{ name: string, file: string, isDependency: boolean }} where @returns {TreeEntry | null} */
function lookAtEntry ({ name, file, isDependency }) {
  try {
    const found = lstatSync(file)
    const kind = found.isDirectory() ? 'folder' : found.isFile() ? 'file' : found.isSymbolicLink() ? 'link' : null
    if (kind === null) return null
    const { mode, size, mtimeMs, ctimeMs, ino } = found
    // Tools can set mtime, but not ctime. Copies link to files of packages, which changes their ctime: these have their inode instead.
    return { kind, name, isDependency, mode, size, mtimeMs, ctimeMs, mark: isDependency ? ino : ctimeMs, target: kind === 'link' ? readlinkSync(file) : null }
  } catch (error) {
    // ENOENT: it has just been removed.
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

/** @param {TreeEntry[]} entries of listTree @returns {Promise<string>} differs if a name, a size or a time of change does */
export async function treeDigest (entries) {
  const hash = createHash('sha256')
  const slice = createSlice()
  for (const entry of entries) {
    if (slice.isOver()) await slice.next()
    hash.update(JSON.stringify(signOf(entry)))
  }
  return hash.digest('hex')
}

/** Divides work that may be long, so that nothing else waits for all of it. */
function createSlice () {
  let beganAt = performance.now()
  return {
    isOver: () => performance.now() - beganAt > SLICE_MS,
    async next () {
      await nextTurn()
      beganAt = performance.now()
    }
  }
}

/** @param {TreeEntry} entry what tells whether it has changed; a folder's time does with all that comes and goes in it, also what is left out */
function signOf ({ kind, name, mode, size, mtimeMs, mark, target }) {
  return kind === 'folder' ? [kind, name] : [kind, name, mode, size, mtimeMs, mark, target]
}
