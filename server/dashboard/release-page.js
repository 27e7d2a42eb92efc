import { RELEASE_ID } from '../config/release-id.js'
import { DeckError } from '../errors.js'

/** What can be different from the release before, as people call it. */
const CHANGES = Object.freeze({ commit: 'commit', package: 'package.json', lockFile: 'lock file', arguments: 'arguments', mode: 'mode', folder: 'folder', entry: 'entry' })
const MODES = Object.freeze({
  live: 'runs in its folder as it is', symlink: 'what a symbolic link led to', path: 'a folder that the deploy named', snapshot: 'a copy of the folder'
})

/**
 * What is known of one release, and what was different from the one before.
 * @param {{ deck: { snapshot: () => any, releases: { get: (id: string) => any } }, id: string, now: number, blocked: string | null }} parts
 * @throws {DeckError} not-found
 */
export function releaseModel ({ deck, id, now, blocked }) {
  if (!RELEASE_ID.test(id)) throw new DeckError('not-found', 'There is no such release')
  const snapshot = deck.snapshot()
  const release = deck.releases.get(id)
  return {
    now,
    snapshot,
    blocked,
    release: {
      ...release,
      isRunning: release.id === snapshot.release.id,
      slots: snapshot.workers.filter((/** @type {any} */ worker) => worker.release === id).map((/** @type {any} */ { slot }) => slot),
      means: MODES[/** @type {keyof typeof MODES} */ (release.mode)] ?? null,
      changes: changesOf(release)
    }
  }
}

/** @param {any} release @returns {{ from: string, parts: string[], variables: string[] } | null} null: there was none before, as far as is known */
export function changesOf ({ changed }) {
  if (!changed) return null
  return { from: changed.from, parts: Object.entries(CHANGES).filter(([name]) => changed[name]).map(([, word]) => word), variables: changed.environment }
}
