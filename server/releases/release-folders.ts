import { mkdirSync, readdirSync, renameSync } from 'node:fs'
import { lstat, mkdir, realpath, rm, symlink } from 'node:fs/promises'
import path from 'node:path'
import { formatNames } from '../../public/format.ts'
import { attempt, DeckError, errorCode, errorText } from '../errors.ts'
import { lookThroughApp } from './app-files.ts'
import { isBelow, mapPath, type Place } from './resolve.ts'
import { copyTree, makeWithin, UNFINISHED } from './tree-copy.ts'
import { listTree, treeDigest, type TreeEntry } from './tree.ts'
import { workspaceFolder } from './workspace.ts'
import type { Runtime } from '../launch/launch.ts'
import type { Release } from '../lifecycle/state.ts'

/** The names of folders that are being removed begin with this. */
const LEAVING = '.gone-'

/**
 * What a copy of the app would be made of. `top`: the folder that is copied, of which the app's package folder may be a
 * part; `missing`: shared folders that are to be made.
 */
export type Draft = { top: string, place: Place, entries: TreeEntry[], digest: string, links: Record<string, string>,
  missing: string[] }
/**
 * `shared`: files and folders of the app that all releases have in common; `exclude`: what no release has of its own.
 * Both from the package folder of the app.
 */
type Parts = { shared: readonly string[], exclude: readonly string[] }

/**
 * Keeps the folders from which releases run, each named by its release: `r7`, … They are copies of the app's folder, so
 * whatever is done to that, a release stays what it was.
 */
export function createReleaseFolders ({ dataFolder, releaseFolder, onError }: {
  /** is never copied */
  dataFolder: string,
  /** where the copies are */
  releaseFolder: string,
  /** a copy could not be removed */
  onError: (error: unknown) => void
}) {
  return {
    /**
     * It changes nothing. `place`: of the code that is copied; `home`: the app's package folder as
     * configured, which has what is shared.
     * @throws {DeckError} copy-failed, invalid-config
     */
    async look (place: Place,
      { shared, exclude, home, runtime }: Parts & { home: string, runtime?: Runtime }): Promise<Draft>
    {
      const { folder, entry } = place
      const data = await realpath(dataFolder)
      const top = await workspaceFolder(folder)
      if (top === data) {
        throw new DeckError('copy-failed',
          `dataDir: expected another folder than that of the app, received ${top}: its copy would have to hold itself`)
      }
      if (runtime !== 'other' && !isBelow(entry, top)) {
        throw new DeckError('copy-failed', `the copy of ${top} failed: its entry, ${entry}, is not in it`)
      }
      const within = (name: string) => path.relative(top, path.join(folder, name))
      const targets = await Promise.all(shared.map((name) => sharedTarget(home, name)))
      const links = Object.fromEntries(shared.map((name, at) => [within(name), targets[at].place]))
      const missing = targets.filter(({ isThere }) => !isThere).map(({ place }) => place)
      const left = [...Object.keys(links), ...exclude.map(within)]
      try {
        const entries = await listTree(top, { except: [data, ...left.map((name) => path.join(top, name))] })
        return { top, place, entries, digest: [await treeDigest(entries), ...Object.entries(links).flat()].join('|'),
          links, missing }
      } catch (error) {
        if (error instanceof DeckError) throw error
        throw new DeckError('copy-failed', `the copy of ${top} failed: ${errorText(error)}`, { cause: error })
      }
    },

    /**
     * `id`: of the release that gets the copy; `execArgv`: options of Node, as `pinOptions` gives them. Returns where
     * its workers find in it what the app has.
     * @throws {DeckError} copy-failed; then nothing is left of it
     */
    async keep (id: string, { top, place, entries, links, missing }: Draft,
      execArgv: string[]
    ): Promise<{ mode: 'folder', entry: string, path: string, cwd: string, calledAs?: string, execArgv: string[] }> {
      mkdirSync(releaseFolder, { recursive: true, mode: 0o700 })
      for (const folder of missing) await mkdir(folder, { recursive: true })
      const copy = path.join(await realpath(releaseFolder), id)
      await copyTree(entries, { from: top, to: copy, links })
      const inCopy = (file: string) =>
        file === top || isBelow(file, top) ? path.join(copy, path.relative(top, file)) : file
      const { entry, folder, cwd, calledAs } = place
      return { mode: 'folder', entry: inCopy(entry), path: inCopy(folder), cwd: inCopy(cwd),
        execArgv: execArgv.map((word) => mapPath(word, inCopy)),
        ...(calledAs !== undefined && { calledAs: inCopy(calledAs) }) }
    },

    /**
     * Makes an empty folder for a release. Until that is known, it counts as unfinished.
     * @returns `top`: a real path; `index`: where git may keep what it is about to write
     */
    async begin (id: string): Promise<{ top: string, index: string }> {
      mkdirSync(releaseFolder, { recursive: true, mode: 0o700 })
      const folder = await realpath(releaseFolder)
      await mkdir(path.join(folder, id), { mode: 0o700 })
      await mkdir(path.join(folder, UNFINISHED + id), { mode: 0o700 })
      return { top: path.join(folder, id), index: path.join(folder, UNFINISHED + id, 'index') }
    },

    /** `id`: that was begun, and has all that it needs */
    finish: (id: string) => removeFolder(UNFINISHED + id),

    /** `parts`: as of share(), which makes what is missing @throws {DeckError} invalid-config */
    async checkShared ({ shared, home }: { shared: readonly string[], home: string }) {
      for (const name of shared) await sharedTarget(home, name)
    },

    /**
     * Puts links to what all releases share in the place of what a folder has there itself.
     * @param release `folder`: its package folder, real path
     * @throws {DeckError} invalid-config
     */
    async share ({ top, folder }: { top: string, folder: string },
      { shared, home }: { shared: readonly string[], home: string })
    {
      for (const name of shared) {
        const { place: target, isThere } = await sharedTarget(home, name)
        const { dir, base } = path.parse(path.join(folder, name))
        const link = path.join(await makeWithin(dir, top), base)
        if (!isThere) await mkdir(target, { recursive: true })
        await rm(link, { recursive: true, force: true })
        await symlink(target, link)
      }
    },

    /**
     * Refuses a deploy after which the app would not find what it has written into the folder of its release: a
     * database, uploads. `release`: that runs, or ran last; `options`: of the next one.
     * @throws {DeckError} unshared-files
     */
    async checkWritten (release: Pick<Release, 'id' | 'path' | 'createdAt'>,
      { home, ...parts }: Parts & { home: string })
    {
      const { id, path: folder } = release
      const { copy, written } = await findWritten(release, parts)
      if (written.length === 0) return
      const files = written.map((name) => path.relative(path.relative(copy, folder), name))
      throw new DeckError('unshared-files',
        `releases.shared: expected what the app writes, received ${formatNames(files)} ` +
          `in the folder of ${id}, ${copy}, where the next release would not find them. To keep them, stop the app, move them to ${home}, list them in releases.shared and start it. ` +
          'What may be lost, list in releases.exclude', { details: { release: id, files: written.slice(0, 100) } })
    },

    /**
     * Refuses the first release of a commit, if the app would not find what it has in its own folder alone.
     * `left`: what it finds, or need not find.
     * @throws {DeckError} unshared-files
     */
    async checkOwnFolder (home: string,
      { left, env }: { left: readonly string[], env: Record<string, string | undefined> })
    {
      const except = [await realpath(dataFolder), ...left.map((name) => path.resolve(home, name))]
      const { data, environment } = await lookThroughApp(home, { except, env })
      const files = [...data, ...environment]
      if (files.length === 0) return
      throw new DeckError('unshared-files',
        `releases.shared: expected the databases, uploads and .env files of the app, received none of ${
          formatNames(files)
        } in ${home}, ` +
          'where the release of a commit would not find them. List them in releases.shared, or in releases.exclude what it can do without',
        { details: { files: files.slice(0, 100) } })
    },

    /**
     * What the next release would not find of what the app has written so far.
     * @param release that runs
     * @returns `copy`: the package folder in it; `files`: from there, and folders of which it
     * has written all, with a slash; `bytes`: the size of the copy without packages
     * @throws {DeckError} copy-failed
     */
    async written (release: Pick<Release, 'id' | 'path' | 'createdAt'>,
      parts: Parts): Promise<{ copy: string, files: string[], bytes: number }>
    {
      const { copy, written, entries } = await findWritten(release, parts)
      const home = path.relative(copy, release.path)
      return { copy: release.path,
        files: wholeFolders(written, entries).map((name) =>
          path.join(path.relative(home, name), name.endsWith('/') ? '/' : '')
        ), bytes: entries.reduce((sum, { size }) => sum + size, 0) }
    },

    /** @returns the names of all copies, also unfinished ones */
    names (): string[] {
      // ENOENT: no release ever got a folder.
      return attempt(() => readdirSync(releaseFolder), []).filter((name) =>
        /^r\d+$/.test(name) || name.startsWith(UNFINISHED) || name.startsWith(LEAVING)
      )
    },

    remove: removeFolder
  }

  /** `name`: it is renamed first, so that half of it is never taken for a whole @returns never rejects */
  async function removeFolder (name: string): Promise<void> {
    try {
      const leaving = path.join(releaseFolder, name.startsWith(LEAVING) ? name : `${LEAVING}${name}`)
      if (!name.startsWith(LEAVING)) renameSync(path.join(releaseFolder, name), leaving)
      // ENOTEMPTY: somebody writes into it who is about to end.
      await rm(leaving, { recursive: true, force: true, maxRetries: 5, retryDelay: 300 })
    } catch (error) {
      // ENOENT: another process has removed it.
      if (errorCode(error) !== 'ENOENT') onError(error)
    }
  }

  /** `parts`: do not count */
  async function findWritten ({ id, path: folder, createdAt }: Pick<Release, 'id' | 'path' | 'createdAt'>,
    { shared, exclude }: Parts): Promise<{ copy: string, written: string[], entries: TreeEntry[] }>
  {
    const copy = path.join(await realpath(releaseFolder).catch(() => releaseFolder), id)
    const left = [...shared, ...exclude].map((name) => path.join(folder, name).replace(/\/$/, ''))
    const since = Date.parse(createdAt)
    const entries = await listTree(copy, { except: left, packages: false }).catch(nothingIfGone)
    // The release says its time in whole milliseconds, and its last file may be of the same one.
    const written = entries.filter(({ kind, ctimeMs }) => kind === 'file' && Math.floor(ctimeMs) > since).map((
      { name }
    ) => name)
    return { copy, written, entries }
  }
}

/**
 * `entries`: of the same tree. Returns the same; in place of the files of a folder with nothing else in it, the folder.
 */
function wholeFolders (written: string[], entries: TreeEntry[]): string[] {
  const isWritten = new Set(written)
  const mixed = new Set(['.',
    ...entries.filter(({ kind, name }) => kind !== 'folder' && !isWritten.has(name)).flatMap(({ name }) =>
      foldersOf(name)
    )])
  return [...new Set(written.map((name) => {
    const whole = foldersOf(name).findLast((folder) => !mixed.has(folder))
    return whole === undefined ? name : `${whole}/`
  }))]
}

/** @returns the folders that it is in, the innermost first */
function foldersOf (name: string): string[] {
  const folder = path.dirname(name)
  return folder === '.' ? [] : [folder, ...foldersOf(folder)]
}

/**
 * `name`: of something shared; a folder may end with a slash, and is made if it is not there.
 * @throws {DeckError} invalid-config
 */
async function sharedTarget (home: string, name: string): Promise<{ place: string, isThere: boolean }> {
  const target = path.join(home, name).replace(/\/$/, '')
  const isThere = await lstat(target).then(() => true, () => false)
  if (!isThere && !name.endsWith('/')) {
    throw new DeckError('invalid-config',
      `releases.shared: expected files and folders of ${home}, received ${name}, which is not there; a folder that is to be made ends with "/"`)
  }
  return { place: target, isThere }
}

/** In a folder that somebody has removed, there is nothing to lose. */
function nothingIfGone (error: unknown) {
  if (errorCode(error) !== 'ENOENT') throw error
  return []
}
