import { RELEASE_ID } from '../config/release-id.js'
import { DeckError } from '../errors.js'
import { changesOf, comparisonOf, crashesOn } from './comparison.js'
import { firstLine } from './readable-text.js'
import { toReleaseRow } from './releases.js'

const COMPARABLE = 100
const LABEL_CHARS = 60
/** @type {Readonly<Record<string, string>>} */
const MODES = Object.freeze({
  live: 'runs in its folder, nothing is copied',
  symlink: 'the target of a symbolic link',
  path: 'a folder that the deploy named',
  folder: 'a copy of the folder'
})

/** @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'releases' | 'crashes'>} Deck */

/**
 * One release, and its changes since the one before.
 * @param {{ deck: Deck, id: string, now: number, blocked: string | null }} parts
 * @throws {DeckError} not-found
 */
export function releaseModel ({ deck, id, now, blocked }) {
  const snapshot = deck.snapshot()
  const release = deck.releases.get(requireReleaseId(id))
  return {
    now,
    snapshot,
    blocked,
    release: {
      ...toReleaseRow(release, snapshot),
      slots: snapshot.workers.filter((worker) => worker.release === id).map(({ slot }) => slot),
      means: MODES[release.mode ?? ''] ?? null,
      changes: changesOf(release)
    },
    crashes: crashesOn(deck, id)
  }
}

/**
 * What a rollback to a release would change, to be read before it starts.
 * @param {{ deck: Deck, id: string, now: number, blocked: string | null }} parts
 * @throws {DeckError} not-found
 */
export async function rollbackModel ({ deck, id, now, blocked }) {
  const snapshot = deck.snapshot()
  const comparison = await comparisonOf({ deck, from: snapshot.release.id, to: requireReleaseId(id) })
  return { now, blocked, comparison, release: toReleaseRow(comparison.to, snapshot), crashes: crashesOn(deck, id) }
}

/**
 * Compares a release with `from`, or with the one that runs.
 * @param {{ deck: Deck, id: string, params: URLSearchParams, now: number }} parts
 * @throws {DeckError} not-found
 */
export async function compareModel ({ deck, id, params, now }) {
  const from = requireReleaseId(params.get('from') || deck.snapshot().release.id)
  const comparison = await comparisonOf({ deck, from, to: requireReleaseId(id) })
  return {
    now,
    comparison,
    picker: pickerOf(deck.releases.list({ limit: COMPARABLE }).items, { from, to: id }),
    crashes: { from: crashesOn(deck, from), to: crashesOn(deck, id) }
  }
}

/**
 * The choices of two releases to compare.
 * @param {import('../deck.js').ReleaseView[]} releases @param {{ from?: string, to?: string }} [picked]
 * @returns {{ from: string | undefined, to: string | undefined, choices: { id: string, label: string }[] }}
 */
export function pickerOf (releases, { from, to } = {}) {
  const choices = releases.map(({ id, git, package: about, note }) => ({
    id,
    label: [id, firstLine(git?.subject || note || about?.version || '', LABEL_CHARS)].filter(Boolean).join(' · ')
  }))
  // A picked release may be older than those that are listed.
  for (const id of [to, from]) if (id !== undefined && !choices.some((choice) => choice.id === id)) choices.push({ id, label: id })
  return { from, to, choices }
}

/** @param {string} id */
function requireReleaseId (id) {
  if (RELEASE_ID.test(id)) return id
  throw new DeckError('not-found', `Release ${JSON.stringify(id.slice(0, 40))} does not exist`)
}
