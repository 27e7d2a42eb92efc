import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { lstat, mkdir, realpath, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { hasInstallScript } from './build-commands.js'
import { listTree, treeDigest } from './tree.js'
import { addTree, UNFINISHED } from './tree-copy.js'

/** @typedef {import('./tree.js').TreeEntry} TreeEntry */

/** The names of what is kept begin with this. */
const KEPT = '.modules-'
/** What tools write into `node_modules` by themselves, perhaps in place, is copied; what packages have brought along is linked. */
const WRITTEN = /(^|\/)node_modules\/\.(?!bin\/|pnpm\/|store\/)/
const IN_MODULES = /(^|\/)node_modules(\/|$)/
const PACKAGE = /(^|\/)package\.json$/
const DIGITS = 16

/**
 * Keeps installed packages for the next release that needs the same ones: what is in its `node_modules` are hard links to these, or
 * clones where the file system can make them. Whatever else the install has made is kept too: with Yarn Plug'n'Play that is all.
 * @param {{ releaseFolder: string, onError: (error: unknown) => void }} parts
 */
export function createModuleCache ({ releaseFolder, onError }) {
  return {
    /**
     * @param {import('./build-commands.js').Build | null} build @param {{ names: string[], read: (name: string) => Promise<string | null> }} files  of the commit
     * @returns {Promise<string | null>} of what it installs, with this Node on this machine; null: more than the lock file decides that
     */
    async nameOf (build, { names, read }) {
      const { install, lock } = build ?? {}
      if (!install?.key || !lock || names.some((name) => IN_MODULES.test(name))) return null
      for (const name of names.filter((each) => PACKAGE.test(each))) if (hasInstallScript(await read(name) ?? '')) return null
      const key = createHash('sha256').update(JSON.stringify([install.key, process.version, process.platform, process.arch])).digest('hex')
      return `${KEPT}${shorten(lock.digest)}-${key.slice(0, DIGITS)}`
    },

    /** @param {string | null} name @returns {boolean} whether anything is kept under it */
    has: (name) => name !== null && existsSync(path.join(releaseFolder, name)),

    /**
     * @param {string} name @param {string} top  of the release
     * @returns {Promise<{ files: number, digest: string } | null>} null: nothing is kept under that name that would fit
     */
    async fill (name, top) {
      const from = await realpath(path.join(releaseFolder, name)).catch(() => null)
      if (from === null) return null
      const entries = await listTree(from, { except: [] })
      // Another commit may have a file there, or a link, which leads out of the release.
      const outside = entries.filter((entry) => !IN_MODULES.test(entry.name))
      const found = await Promise.all(outside.map((entry) => lstat(path.join(top, entry.name)).catch(() => null)))
      if (outside.some(({ kind }, at) => found[at] && !(kind === 'folder' && found[at].isDirectory()))) return null
      await addTree(entries.map(asLinked), { from, to: top })
      return { files: entries.length, digest: await treeDigest(entries) }
    },

    /**
     * Takes what has been installed into a release, which is kept only once that is whole.
     * @param {string} name
     * @param {{ id: string, top: string, files: Iterable<string>, except: readonly string[] }} release  `files`: which it had before; `except`: absolute
     *   paths of what has not been installed either
     * @returns {Promise<{ digest: string }>}
     */
    async take (name, { id, top, files, except }) {
      const taken = path.join(releaseFolder, takenName(id))
      await mkdir(taken, { mode: 0o700 })
      const entries = await listTree(top, { except })
      const before = new Set(files)
      const isInstalled = (/** @type {TreeEntry} */ entry) => IN_MODULES.test(entry.name) || (entry.kind !== 'folder' && !before.has(entry.name))
      const above = new Set(entries.filter(isInstalled).flatMap((entry) => foldersAbove(entry.name)))
      await addTree(entries.filter((entry) => above.has(entry.name) || isInstalled(entry)).map(asLinked), { from: top, to: taken })
      return { digest: await treeDigest(await listTree(taken, { except: [] })) }
    },

    /**
     * Whether all files are as they were: a build may have written into some, which other releases share.
     * @param {string} name @param {{ id: string, digest: string }} then @returns {Promise<boolean>}
     */
    async isUntouched (name, { id, digest }) {
      const taken = path.join(releaseFolder, takenName(id))
      const folder = await stat(taken).then(() => taken, () => path.join(releaseFolder, name))
      return await treeDigest(await listTree(folder, { except: [] })) === digest
    },

    /** @param {string} name @param {string} id of the release that has become whole */
    async keep (name, id) {
      const taken = path.join(releaseFolder, takenName(id))
      if (!await stat(taken).catch(() => null)) return
      // Others of the same lock file may be for another version of Node.
      const older = namesIn(releaseFolder).filter((each) => each.startsWith(name.slice(0, name.lastIndexOf('-'))))
      await Promise.all(older.map(remove))
      await rename(taken, path.join(releaseFolder, name))
    },

    remove,

    /** @param {string} id of a release */
    forget: (id) => remove(takenName(id)),

    /** Removes what no release needs. @param {Iterable<string | null | undefined>} locks  of all releases */
    async prune (locks) {
      const needed = new Set([...locks].flatMap((lock) => lock ? `${KEPT}${shorten(lock)}` : []))
      const names = namesIn(releaseFolder).filter((name) => !needed.has(name.slice(0, name.lastIndexOf('-'))))
      await Promise.all(names.map(remove))
    }
  }

  /** @param {string} name @returns {Promise<void>} never rejects */
  async function remove (name) {
    await rm(path.join(releaseFolder, name), { recursive: true, force: true, maxRetries: 2 }).catch(onError)
  }
}

/** @param {string} id */
function takenName (id) {
  return `${UNFINISHED}modules-${id}`
}

/** @param {string} lock `sha256:…` */
function shorten (lock) {
  return lock.replace(/^sha256:/, '').slice(0, DIGITS)
}

/** @param {string} folder */
function namesIn (folder) {
  try {
    return readdirSync(folder).filter((name) => name.startsWith(KEPT))
  } catch {
    // ENOENT: no release ever got a folder.
    return []
  }
}

/** @param {TreeEntry} entry */
function asLinked (entry) {
  return WRITTEN.test(entry.name) ? { ...entry, isDependency: false } : entry
}

/** @param {string} name @returns {string[]} */
function foldersAbove (name) {
  const above = path.dirname(name)
  return above === '.' ? [] : [above, ...foldersAbove(above)]
}
