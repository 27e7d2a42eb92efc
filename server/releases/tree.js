import { createHash } from 'node:crypto'
import { lstat, readdir, readlink } from 'node:fs/promises'
import path from 'node:path'
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
const STATS_AT_ONCE = 64

/** Caches of build tools, which are no part of a release. By the folder that they are in. @type {Readonly<Record<string, string>>} */
const CACHES = Object.freeze({ '.cache': 'node_modules', cache: '.next' })

/**
 * Lists the folder of an app, each folder before its content. It leaves out `.git`, caches of build tools (`node_modules/.cache`,
 * `.next/cache`), and sockets, pipes and devices.
 * @param {string} top real path
 * @param {{ except: readonly string[], packages?: boolean, limit?: number }} options  `except`: files and folders that are left out, absolute
 *   paths without links; `packages`: list these too
 * @returns {Promise<{ entries: TreeEntry[], digest: string }>} `digest`: differs if a name, a size or a time of change does
 * @throws {DeckError} copy-failed
 */
export async function listTree (top, { except, packages = true, limit = MAX_ENTRIES }) {
  /** @type {TreeEntry[]} */
  const entries = []
  const folders = ['']
  const hash = createHash('sha256')
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const names = (await readdir(path.join(top, folder))).filter((name) => !isLeftOut(folder, name)).sort()
    for (let at = 0; at < names.length; at += STATS_AT_ONCE) {
      for (const entry of await Promise.all(names.slice(at, at + STATS_AT_ONCE).map((name) => lookAtEntry(path.join(folder, name))))) {
        if (!entry) continue
        entries.push(entry)
        hash.update(JSON.stringify(signOf(entry)))
        if (entry.kind === 'folder') folders.push(entry.name)
      }
    }
    if (entries.length > limit) {
      throw new DeckError('copy-failed', `the copy of ${top} failed: expected at most ${limit} files, received more`)
    }
  }
  return { entries, digest: hash.digest('hex') }

  /** @param {string} folder @param {string} name */
  function isLeftOut (folder, name) {
    if (name === '.git' || (Object.hasOwn(CACHES, name) && path.basename(folder) === CACHES[name])) return true
    return except.includes(path.join(top, folder, name)) || (!packages && DEPENDENCY.test(path.join(folder, name)))
  }

  /** @param {string} name @returns {Promise<TreeEntry | null>} */
  async function lookAtEntry (name) {
    const file = path.join(top, name)
    try {
      const found = await lstat(file)
      const kind = found.isDirectory() ? 'folder' : found.isFile() ? 'file' : found.isSymbolicLink() ? 'link' : null
      if (kind === null) return null
      const { mode, size, mtimeMs, ctimeMs, ino } = found
      const isDependency = DEPENDENCY.test(name)
      // Tools can set mtime, but not ctime. Copies link to files of packages, which changes their ctime: these have their inode instead.
      return { kind, name, isDependency, mode, size, mtimeMs, ctimeMs, mark: isDependency ? ino : ctimeMs, target: kind === 'link' ? await readlink(file) : null }
    } catch (error) {
      // ENOENT: it has just been removed.
      if (errorCode(error) === 'ENOENT') return null
      throw error
    }
  }
}

/** @param {TreeEntry} entry what tells whether it has changed; a folder's time does with all that comes and goes in it, also what is left out */
function signOf ({ kind, name, mode, size, mtimeMs, mark, target }) {
  return kind === 'folder' ? [kind, name] : [kind, name, mode, size, mtimeMs, mark, target]
}
