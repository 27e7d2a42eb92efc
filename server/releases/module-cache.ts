import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { lstat, mkdir, realpath, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { attempt } from '../errors.ts'
import { hasInstallScript, type Build } from './build-commands.ts'
import { listTree, treeDigest, type TreeEntry } from './tree.ts'
import { addTree, UNFINISHED } from './tree-copy.ts'

/** The names of what is kept begin with this. */
const KEPT = '.modules-'
/**
 * What tools write into `node_modules` by themselves, perhaps in place, is copied; what packages have brought along is
 * linked.
 */
const WRITTEN = /(^|\/)node_modules\/\.(?!bin\/|pnpm\/|store\/)/
const IN_MODULES = /(^|\/)node_modules(\/|$)/
const PACKAGE = /(^|\/)package\.json$/
const DIGITS = 16

/**
 * Keeps installed packages for the next release that needs the same ones: what is in its `node_modules` are hard links
 * to these, or clones where the file system can make them. Whatever else the install has made is kept too: with Yarn
 * Plug'n'Play that is all.
 */
export function createModuleCache (
  { releaseFolder, onError }: { releaseFolder: string, onError: (error: unknown) => void }
) {
  return {
    /**
     * `files`: of the commit.
     * @returns of what it installs, with that Node on this machine; null: more than the lock file decides that
     */
    async nameOf (build: Build | null,
      { names, read, nodeVersion }: { names: string[], read: (name: string) => Promise<string | null>,
        nodeVersion: string }): Promise<string | null>
    {
      const { install, lock } = build ?? {}
      if (!install?.key || !lock || names.some((name) => IN_MODULES.test(name))) return null
      for (const name of names.filter((each) => PACKAGE.test(each)))
        if (hasInstallScript(await read(name) ?? '')) return null
      const key = createHash('sha256').update(
        JSON.stringify([install.key, `v${nodeVersion}`, process.platform, process.arch])
      ).digest('hex')
      return `${KEPT}${shorten(lock.digest)}-${key.slice(0, DIGITS)}`
    },

    /** Tells whether anything is kept under it */
    has: (name: string | null): boolean => name !== null && existsSync(path.join(releaseFolder, name)),

    /** `top`: of the release. Returns null: nothing is kept under that name that would fit. */
    async fill (name: string, top: string): Promise<{ files: number, digest: string } | null> {
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
     * Takes what has been installed into a release, which is kept only once that is whole. `files`: which it
     * had before; `except`: absolute paths of what has not been installed either.
     */
    async take (name: string,
      { id, top, files, except }: { id: string, top: string, files: Iterable<string>,
        except: readonly string[] }): Promise<{ digest: string }>
    {
      const taken = path.join(releaseFolder, takenName(id))
      await mkdir(taken, { mode: 0o700 })
      const entries = await listTree(top, { except })
      const before = new Set(files)
      const isInstalled = (entry: TreeEntry) =>
        IN_MODULES.test(entry.name) || (entry.kind !== 'folder' && !before.has(entry.name))
      const above = new Set(entries.filter(isInstalled).flatMap((entry) => foldersAbove(entry.name)))
      await addTree(entries.filter((entry) => above.has(entry.name) || isInstalled(entry)).map(asLinked), { from: top,
        to: taken })
      return { digest: await treeDigest(await listTree(taken, { except: [] })) }
    },

    /** Whether all files are as they were: a build may have written into some, which other releases share. */
    async isUntouched (name: string, { id, digest }: { id: string, digest: string }): Promise<boolean> {
      const taken = path.join(releaseFolder, takenName(id))
      const folder = await stat(taken).then(() => taken, () => path.join(releaseFolder, name))
      return await treeDigest(await listTree(folder, { except: [] })) === digest
    },

    /** `id`: of the release that has become whole */
    async keep (name: string, id: string) {
      const taken = path.join(releaseFolder, takenName(id))
      if (!await stat(taken).catch(() => null)) return
      // Others of the same lock file may be for another version of Node.
      const older = namesIn(releaseFolder).filter((each) => each.startsWith(name.slice(0, name.lastIndexOf('-'))))
      await Promise.all(older.map(remove))
      await rename(taken, path.join(releaseFolder, name))
    },

    remove,

    /** `id`: of a release */
    forget: (id: string) => remove(takenName(id)),

    /** Removes what no release needs. `locks`: of all releases. */
    async prune (locks: Iterable<string | null | undefined>) {
      const needed = new Set([...locks].flatMap((lock) => lock ? `${KEPT}${shorten(lock)}` : []))
      const names = namesIn(releaseFolder).filter((name) => !needed.has(name.slice(0, name.lastIndexOf('-'))))
      await Promise.all(names.map(remove))
    }
  }

  /** @returns never rejects */
  async function remove (name: string): Promise<void> {
    await rm(path.join(releaseFolder, name), { recursive: true, force: true, maxRetries: 2 }).catch(onError)
  }
}

function takenName (id: string) {
  return `${UNFINISHED}modules-${id}`
}

/** `lock`: `sha256:…` */
function shorten (lock: string) {
  return lock.replace(/^sha256:/, '').slice(0, DIGITS)
}

function namesIn (folder: string) {
  // ENOENT: no release ever got a folder.
  return attempt(() => readdirSync(folder), []).filter((name) => name.startsWith(KEPT))
}

function asLinked (entry: TreeEntry) {
  return WRITTEN.test(entry.name) ? { ...entry, isDependency: false } : entry
}

function foldersAbove (name: string): string[] {
  const above = path.dirname(name)
  return above === '.' ? [] : [above, ...foldersAbove(above)]
}
