import { createHash } from 'node:crypto'
import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import path from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DeckError, errorCode } from '../errors.ts'

export type TreeEntry = {
  kind: 'folder' | 'file' | 'link',
  /** from the top of the tree */
  name: string,
  /** inside of node_modules, or of the cache that a project with Yarn Plug'n'Play has */
  isDependency: boolean,
  mode: number,
  size: number,
  mtimeMs: number,
  ctimeMs: number,
  /** differs after each write, even if a tool has set the mtime back */
  mark: number,
  /** of a link */
  target: string | null
}

const MAX_ENTRIES = 500_000
/** Packages, and the cache that a project with Yarn Plug'n'Play has. */
const DEPENDENCY = /(^|\/)(node_modules|\.yarn\/(cache|unplugged))(\/|$)/
/**
 * Calls without promises take a third of the CPU time, but everything else waits for them: they go on for so long at a
 * time, as the hash does.
 */
const SLICE_MS = 2

/**
 * Data folders, also of other apps of the same config file: their releases would hold those of the others, and so on.
 */
const DATA_FOLDER = '.clusterdeck'
const IN_DATA_FOLDER = ['admin.token', 'history.db']

/** Caches of build tools, which are no part of a release. By the folder that they are in. */
const CACHES: Readonly<Record<string, string>> = Object.freeze({ '.cache': 'node_modules', cache: '.next' })

/**
 * Lists the folder of an app, each folder before its content. It leaves out data folders, `.git`, caches of build tools
 * (`node_modules/.cache`, `.next/cache`), and sockets, pipes and devices. `top`: real path; `except`: files
 * and folders that are left out, absolute paths without links; `packages`: list these too.
 * @throws {DeckError} copy-failed
 */
export async function listTree (top: string,
  { except, packages = true, limit = MAX_ENTRIES }: { except: readonly string[], packages?: boolean,
    limit?: number }): Promise<TreeEntry[]>
{
  const entries: TreeEntry[] = []
  const folders = ['']
  const slice = createSlice()
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    const names = readdirSync(path.join(top, folder)).sort()
    if (IN_DATA_FOLDER.every((name) => names.includes(name))) continue
    for (const base of names) {
      if (slice.isOver()) await slice.next()
      if (base === '.git' || base === DATA_FOLDER ||
        (Object.hasOwn(CACHES, base) && path.basename(folder) === CACHES[base])) continue
      const name = path.join(folder, base)
      const file = path.join(top, name)
      const isDependency = DEPENDENCY.test(name)
      const entry = except.includes(file) || (isDependency && !packages)
        ? null
        : lookAtEntry({ name, file, isDependency })
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

function lookAtEntry (
  { name, file, isDependency }: { name: string, file: string, isDependency: boolean }
): TreeEntry | null {
  try {
    const found = lstatSync(file)
    const kind = found.isDirectory() ? 'folder' : found.isFile() ? 'file' : found.isSymbolicLink() ? 'link' : null
    if (kind === null) return null
    const { mode, size, mtimeMs, ctimeMs, ino } = found
    // Tools can set mtime, but not ctime. Copies link to files of packages, which changes their ctime: these have their
    // inode instead.
    return { kind, name, isDependency, mode, size, mtimeMs, ctimeMs, mark: isDependency ? ino : ctimeMs,
      target: kind === 'link' ? readlinkSync(file) : null }
  } catch (error) {
    // ENOENT: it has just been removed.
    if (errorCode(error) === 'ENOENT') return null
    throw error
  }
}

/**
 * @param entries of listTree
 * @returns differs if a name, a size or a time of change does
 */
export async function treeDigest (entries: TreeEntry[]): Promise<string> {
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
  return { isOver: () => performance.now() - beganAt > SLICE_MS, async next () {
    await nextTurn()
    beganAt = performance.now()
  } }
}

/**
 * @param entry what tells whether it has changed; a folder's time does with all that comes and goes in it, also what is
 * left out
 */
function signOf ({ kind, name, mode, size, mtimeMs, mark, target }: TreeEntry) {
  return kind === 'folder' ? [kind, name] : [kind, name, mode, size, mtimeMs, mark, target]
}
