import { RELEASE_ID } from '../config/release-id.js'
import { DeckError } from '../errors.js'

/** What can be different from the release before, as people call it. */
const CHANGES = Object.freeze({ commit: 'commit', package: 'package.json', lockFile: 'lock file', arguments: 'arguments', mode: 'mode', folder: 'folder', entry: 'entry' })
const MODES = Object.freeze({
  live: 'runs in its folder, nothing is copied', symlink: 'the target of a symbolic link', path: 'a folder that the deploy named', snapshot: 'a copy of the folder'
})

/**
 * What is known of one release, and what was different from the one before.
 * @param {{ deck: Pick<import('../deck.js').Deck, 'snapshot' | 'releases'>, id: string, now: number, blocked: string | null }} parts
 * @throws {DeckError} not-found
 */
export function releaseModel ({ deck, id, now, blocked }) {
  if (!RELEASE_ID.test(id)) throw new DeckError('not-found', `Release ${JSON.stringify(id.slice(0, 40))} does not exist`)
  const snapshot = deck.snapshot()
  const release = deck.releases.get(id)
  return {
    now,
    snapshot,
    blocked,
    release: {
      ...release,
      isRunning: release.id === snapshot.release.id,
      slots: snapshot.workers.filter((worker) => worker.release === id).map(({ slot }) => slot),
      means: MODES[/** @type {keyof typeof MODES} */ (release.mode)] ?? null,
      changes: changesOf(release)
    }
  }
}

/** @param {Pick<import('../deck.js').ReleaseView, 'changed'>} release @returns {{ from: string, parts: string[], variables: string[] } | null} null: there was none before, as far as is known */
export function changesOf ({ changed }) {
  if (!changed) return null
  const names = /** @type {(keyof typeof CHANGES)[]} */ (Object.keys(CHANGES))
  return { from: changed.from, parts: names.filter((name) => changed[name]).map((name) => CHANGES[name]), variables: changed.environment }
}
