import { caveatText, changeText } from '../lifecycle/drift.ts'
import { changesBetween } from './changes.ts'
import { commitsBetween } from './commits.ts'
import { differencesBetween, shownFiles, type Differences } from './file-differences.ts'
import type { Drift, Release } from '../lifecycle/state.ts'
import type { Item } from './catalogue.ts'
import type { Stock } from './stock.ts'

/** The list of releases looks at the files of each at most this often. A rollback always looks. */
const LOOK_AGAIN_MS = 2000

/** The releases as people see them: without arguments, which are never shown. */
export function createShownReleases (
  { catalogue, inPlace, manifests, dataDir, inherited, current, used, now }: Stock,
  /** parts of a folder that are no part of a release */
  left: () => string[]
) {
  /** How the files of each release have changed, as the list has last seen it, and when, wall time. */
  const looks: WeakMap<Item, { at: number, change: Drift | null }> = new Map()

  return {
    /** @returns as in list @throws {DeckError} not-found */
    get: (id: string): ReturnType<typeof withChange> => withChange(catalogue.show(catalogue.mustFind(id), use())),

    /**
     * Newest first. `query`: `limit` 1…100.
     * @throws {DeckError} invalid-query
     */
    list (
      query: { limit?: number, cursor?: string | null } = {}
    ): { items: ReturnType<typeof withChange>[], next: string | null } {
      const { items, next } = catalogue.page(query, use())
      return { items: items.map(withChange), next }
    },

    /**
     * Tells how one release differs from another. Of variables it tells only the names. `withFiles`: reads the files
     * of both, which takes a while.
     * @returns `commits`, `files`: null: unknown
     * @throws {DeckError} not-found
     */
    async compare (from: string, to: string,
      { withFiles = false }: { withFiles?: boolean } = {}
    ): Promise<
      { changed: NonNullable<Release['changed']>, commits: Awaited<ReturnType<typeof commitsBetween>>,
        files: ReturnType<typeof shownFiles> | null }
    > {
      const [before, after] = [catalogue.mustFind(from), catalogue.mustFind(to)]
      const [commits, files] = await Promise.all([commitsBetween(before.release, after.release, inherited),
        withFiles ? filesBetween(before.release, after.release) : null])
      return { changed: changesBetween(before, after), commits, files: files && shownFiles(files) }
    }
  }

  /** Of releases that run from one folder it is only known what was there when each was deployed. */
  function filesBetween (before: Release, after: Release): Promise<Differences | null> {
    if (before.path === after.path) return manifests.between(before, after)
    return differencesBetween(before.path, after.path, { left: left(), data: dataDir.folder })
  }

  function use () {
    return { used: used(), current: current() }
  }

  function withChange (shown: ReturnType<typeof catalogue.show>) {
    const change = recentChange(shown.id)
    return { ...shown,
      changedInPlace: change &&
        { ...change, message: change.kind === 'code' ? changeText(shown.id, change) : caveatText(shown.id, change) } }
  }

  /** Pages are drawn often, and a look at the files of ten releases can take 40 ms. */
  function recentChange (id: string) {
    const item = catalogue.mustFind(id)
    const known = looks.get(item)
    if (known !== undefined && Math.abs(now() - known.at) < LOOK_AGAIN_MS) return known.change
    const change = inPlace.changeOf(id)
    looks.set(item, { at: now(), change })
    return change
  }
}
