import { mayChange } from './resolve.js'

/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {import('../lifecycle/state.js').Drift} Drift */

/**
 * Tells which releases are no longer what they were, as their folder was changed in place: by an edit, `git pull`, `npm ci` or a build.
 * Other code is a certain change. Of files that no worker has loaded nobody knows whether a deploy or the app itself has written them.
 * @param {object} parts
 * @param {Pick<import('./catalogue.js').Catalogue, 'find' | 'newestFirst'>} parts.catalogue
 * @param {Pick<import('./drift.js').Drift, 'of' | 'knows'>} parts.drift  knows what the workers of this master have loaded
 */
export function createInPlace ({ catalogue, drift }) {
  return {
    /**
     * What a new worker of these releases would not find as it was. The files that the workers have loaded decide. Where this master has
     * seen none of them, a later deploy from the same folder counts, unless it was of the same commit.
     * @param {Iterable<string>} ids @returns {Record<string, Drift>} those that have changed
     */
    look (ids) {
      /** @type {Record<string, Drift>} */
      const changed = {}
      for (const id of new Set(ids)) {
        const change = drift.of(id) ?? (drift.knows(id) ? null : overwritten(id, isAnotherCommit)) ?? rewritten(id)
        if (change) changed[id] = change
      }
      return changed
    },

    /**
     * Whether a rollback to this release would bring it back as it was. Beside the files that workers load, apps read files that nobody sees
     * (templates, the output of a build), so a later deploy of other code from the same folder counts in any case.
     * @param {string} id @returns {Drift | null}
     */
    changeOf: (id) => drift.of(id) ?? overwritten(id, drift.knows(id) ? isOtherCode : isAnotherCommit) ?? rewritten(id)
  }

  /** @param {string} id @returns {Drift | null} */
  function rewritten (id) {
    return catalogue.find(id)?.rewritten ?? null
  }

  /**
   * @param {string} id @param {(one: Release, other: Release) => boolean} differs
   * @returns {Drift | null} the first later release from the same folder that differs, as the change
   */
  function overwritten (id, differs) {
    const release = catalogue.find(id)?.release
    if (!release || !mayChange(release)) return null
    const newest = catalogue.newestFirst().map((item) => item.release)
    const later = newest.slice(0, newest.findIndex((each) => each.id === id)).reverse()
    const first = later.find((each) => mayChange(each) && each.path === release.path && differs(release, each))
    return first ? { count: 0, files: [], since: first.createdAt, by: first.id, kind: 'code' } : null
  }
}

/** Unless both are of one clean checkout, nobody knows. @param {Release} one @param {Release} other */
function isAnotherCommit (one, other) {
  const isClean = one.git?.isDirty === false && other.git?.isDirty === false
  return !isClean || isOtherCode(one, other)
}

/** @param {Release} one @param {Release} other */
function isOtherCode (one, other) {
  return one.git?.commit !== other.git?.commit || one.lockFile !== other.lockFile || one.package?.version !== other.package?.version
}
