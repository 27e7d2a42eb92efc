import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { errorCode } from '../errors.ts'
import { differencesOf, listFolder, stampsOf, type Differences, type Stamps } from './file-differences.ts'
import { mayChange } from './resolve.ts'
import type { Drift, Release } from '../lifecycle/state.ts'
import type { TreeEntry } from './tree.ts'
import type { Catalogue, Item } from './catalogue.ts'

const MAX_NAMED = 5

/**
 * Keeps a manifest of each release that runs from a folder of the app: what was in that folder when it was deployed. So
 * it is known which files another deploy from the same folder has changed that no worker had loaded, such as templates
 * or the output of a build. Nothing waits for it: a deploy goes on while its folder is listed.
 */
export function createManifests ({ dataDir, catalogue, onError }: {
  /** has the manifests, and is in none */
  dataDir: { folder: string },
  /** hears how the others have changed */
  catalogue: Pick<Catalogue, 'newestFirst' | 'find' | 'save'>,
  onError: (error: unknown) => void
}) {
  const folder = path.join(dataDir.folder, 'manifests')
  /** One folder is listed at a time. */
  let turn: Promise<void> = Promise.resolve()
  /** Once it is, the history, the log and the data folder may belong to another master. */
  let isClosed = false

  return {
    /**
     * This release is deployed (again) with what is in its folder now. Until that is listed, nobody knows what it has
     * changed. `left`: parts of its package folder that are no part of a release.
     */
    note (release: Release, left: readonly string[]) {
      if (!mayChange(release)) return
      const others = catalogue.newestFirst().filter(({ release: { id } }) =>
        id !== release.id && isFromSameFolder(id, release)
      )
      for (const item of others) item.rewritten = { kind: 'unknown', count: 0, files: [], since: null, by: null }
      Object.assign(catalogue.find(release.id) ?? {}, { rewritten: null })
      turn = turn.then(() => compare(release, others, left)).catch(tellError)
    },

    /**
     * How the files of its folder differ now from those that it was deployed with. `left`: as for note. Returns null:
     * it is not known.
     */
    async since (release: Release, left: readonly string[]): Promise<Differences | null> {
      await turn
      const [before, now] = await Promise.all([readManifest(release.id), list(release, left)])
      return before && now && differencesOf(before, stampsOf(now))
    },

    /** How the files of two releases of one folder differed when each was deployed. Returns null: it is not known. */
    async between (one: Pick<Release, 'id'>, other: Pick<Release, 'id'>): Promise<Differences | null> {
      await turn
      const [before, now] = await Promise.all([readManifest(one.id), readManifest(other.id)])
      return before && now && differencesOf(before, now)
    },

    /** Removes the manifests of releases that are not known. @returns never rejects */
    async prune (): Promise<void> {
      const names = await readdir(folder).catch(() => [])
      await Promise.all(
        names.filter((name) => !catalogue.find(name.split('.')[0])).map((name) =>
          rm(path.join(folder, name), { force: true }).catch(tellError)
        )
      )
    },

    /** What is still being listed is not kept. */
    close () {
      isClosed = true
    },

    /** @returns until all folders are listed */
    settled: (): Promise<void> => turn
  }

  function tellError (error: unknown) {
    if (!isClosed) onError(error)
  }

  function isFromSameFolder (id: string, { path: its }: Release) {
    const other = catalogue.find(id)?.release
    return other !== undefined && mayChange(other) && other.path === its
  }

  async function compare (release: Release, others: Item[], left: readonly string[]) {
    if (isClosed) return
    // If this fails, the manifest of an earlier deploy must not count.
    await rm(fileOf(release.id), { force: true })
    const files = await list(release, left)
    if (files === null || isClosed) return
    const stamps = stampsOf(files)
    for (const item of others) {
      const before = await readManifest(item.release.id)
      if (!before) continue
      item.rewritten = toChange(differencesOf(before, stamps), files)
      if (item.rewritten === null) item.sameFilesUntil = release.id
    }
    if (isClosed) return
    catalogue.save()
    await writeManifest(release.id, stamps)
  }

  /** Null: it cannot be read, or has too many files */
  function list (release: Release, left: readonly string[]): Promise<TreeEntry[] | null> {
    return listFolder(release.path, { left, data: dataDir.folder }).catch(() => null)
  }

  /** Null: there is none that can be read */
  async function readManifest (id: string): Promise<Stamps | null> {
    try {
      return JSON.parse(String(await promisify(gunzip)(await readFile(fileOf(id)))))
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') tellError(error)
      return null
    }
  }

  async function writeManifest (id: string, stamps: Stamps) {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeFile(`${fileOf(id)}.new`, await promisify(gzip)(JSON.stringify(stamps)), { mode: 0o600 })
    await rename(`${fileOf(id)}.new`, fileOf(id))
  }

  function fileOf (id: string) {
    return path.join(folder, `${id}.stamps.gz`)
  }
}

/** `files`: as they are now */
function toChange ({ added, changed, removed }: Differences, files: TreeEntry[]): Drift | null {
  const names = [...changed, ...added, ...removed]
  if (names.length === 0) return null
  const written = new Set([...changed, ...added])
  const times = files.filter(({ name }) => written.has(name)).map(({ ctimeMs }) => ctimeMs)
  const since = times.length === 0 ? null : new Date(times.reduce((first, time) => Math.min(first, time))).toISOString()
  return { kind: 'folder', count: names.length, files: names.slice(0, MAX_NAMED), since, by: null }
}
