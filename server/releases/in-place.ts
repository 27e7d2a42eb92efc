import { mayChange } from './resolve.ts'
import type { Drift, Release } from '../lifecycle/state.ts'
import type { Catalogue } from './catalogue.ts'

/**
 * Tells which releases are no longer what they were, as their folder was changed in place: by an edit, `git pull`, `npm
 * ci` or a build. Other code is a certain change. Of files that no worker has loaded nobody knows whether a deploy or
 * the app itself has written them.
 */
export function createInPlace ({ catalogue, drift }: {
  catalogue: Pick<Catalogue, 'find' | 'newestFirst'>,
  /** knows what the workers of this master have loaded */
  drift: Pick<import('./drift.ts').Drift, 'of' | 'knows'>
}) {
  return {
    /**
     * What a new worker of these releases would not find as it was. The files that the workers have loaded decide.
     * Where this master has seen none of them, a later deploy from the same folder counts, unless it was of the same
     * commit, or had the same files. Returns those that have changed.
     */
    look (ids: Iterable<string>): Record<string, Drift> {
      const changed: Record<string, Drift> = {}
      for (const id of new Set(ids)) {
        const change = drift.of(id) ?? (drift.knows(id) ? null : overwritten(id, isAnotherCommit)) ?? rewritten(id)
        if (change) changed[id] = change
      }
      return changed
    },

    /**
     * Whether a rollback to this release would bring it back as it was. Beside the files that workers load, apps read
     * files that nobody sees (templates, the output of a build), so a later deploy of other code from the same folder
     * counts in any case.
     */
    changeOf: (id: string): Drift | null =>
      drift.of(id) ?? overwritten(id, drift.knows(id) ? isOtherCode : isAnotherCommit) ?? rewritten(id)
  }

  function rewritten (id: string): Drift | null {
    return catalogue.find(id)?.rewritten ?? null
  }

  /** @returns the first later release from the same folder that differs, as the change */
  function overwritten (id: string, differs: (one: Release, other: Release) => boolean): Drift | null {
    const { release, sameFilesUntil } = catalogue.find(id) ?? {}
    if (!release || !mayChange(release)) return null
    const oldestFirst = catalogue.newestFirst().map((item) => item.release).reverse()
    const [own, same] = [id, sameFilesUntil].map((which) => oldestFirst.findIndex((each) => each.id === which))
    const first = oldestFirst.find((each, place) =>
      place > own && mayChange(each) && each.path === release.path && differs(release, each) &&
      (place > same || isOtherCode(release, each))
    )
    return first ? { count: 0, files: [], since: first.createdAt, by: first.id, kind: 'code' } : null
  }
}

/** Unless both are of one clean checkout, nobody knows. */
function isAnotherCommit (one: Release, other: Release) {
  const isClean = one.git?.isDirty === false && other.git?.isDirty === false
  return !isClean || isOtherCode(one, other)
}

function isOtherCode (one: Release, other: Release) {
  return one.git?.commit !== other.git?.commit || one.lockFile !== other.lockFile ||
    one.package?.version !== other.package?.version
}
