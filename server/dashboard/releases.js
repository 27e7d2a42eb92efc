import { changesOf } from './comparison.js'

/**
 * Releases as a list shows them: the state of each, its outcome, and whether the list offers a rollback to it.
 * @typedef {import('../deck.js').ReleaseView} ReleaseView
 * @typedef {Pick<import('../deck.js').Status, 'release' | 'rollout' | 'workers'>} Status
 * @typedef {{ label: string, tone: import('../events/kinds.js').Tone }} Mark
 */

/** @type {Readonly<Record<string, Mark>>} outcomes of releases that never served */
export const OUTCOMES = Object.freeze({ failed: { label: 'failed', tone: 'bad' }, 'rolled-back': { label: 'rolled back', tone: 'warn' } })

/** @type {Mark} */
const CHANGED = { label: 'changed in place', tone: 'warn' }

/**
 * A release that a page may offer to roll back to.
 * @param {Pick<import('../deck.js').Deck, 'releases'>} deck @param {() => string} idOf  may throw where there is none @param {Status} status
 * @returns {ReturnType<typeof toReleaseRow> | null}
 */
export function offeredRelease (deck, idOf, status) {
  try {
    const release = toReleaseRow(deck.releases.get(idOf()), status)
    return release.isOffered ? release : null
  } catch {
    // The release is no longer kept, or the history cannot be read.
    return null
  }
}

/** @param {ReleaseView[]} releases @param {Status} status @returns the last deployed come first */
export function releaseRows (releases, status) {
  return releases.toSorted((a, b) => touchedAt(b) - touchedAt(a)).map((release) => toReleaseRow(release, status))
}

/** @param {ReleaseView} release @param {Status} status */
export function toReleaseRow (release, status) {
  const isCurrent = release.id === status.release.id
  const isRolledBack = release.setback?.outcome === 'rolled-back'
  const canReturn = release.servedAt !== null && !isCurrent && release.changedInPlace?.kind !== 'code'
  return {
    ...release,
    isCurrent,
    canReturn,
    // A release that was rolled back is one click further away: its own page offers it.
    isOffered: canReturn && !isRolledBack,
    workers: {
      running: status.workers.filter(({ pid, release: id }) => pid !== null && id === release.id).length,
      all: status.workers.filter(({ pid }) => pid !== null).length
    },
    marks: [...currentMarks(release, status), ...pastMarks(release), ...hasOtherFiles(release) ? [CHANGED] : []],
    warning: release.setback && warningOf(release.setback),
    changedText: release.changedInPlace && changedText(release.changedInPlace, isCurrent),
    changes: changesOf(release)
  }
}

/** @param {ReleaseView} release @param {Status} status @returns {Mark[]} */
function currentMarks ({ id, isLastGood, changedInPlace }, { release, rollout }) {
  if (id === release.id) return [{ label: 'current', tone: 'ok' }]
  if (id === rollout?.to) {
    if (rollout.state === 'rolling-back') return [{ label: 'rolling back', tone: 'warn' }]
    return [rollout.state === 'held' ? { label: 'held', tone: 'bad' } : { label: 'rolling out', tone: 'info' }]
  }
  return isLastGood && changedInPlace?.kind !== 'code' ? [{ label: 'last good', tone: 'drain' }] : []
}

/** @param {ReleaseView} release */
function hasOtherFiles ({ changedInPlace }) {
  return changedInPlace !== null && changedInPlace.kind !== 'unknown'
}

/** @param {NonNullable<ReleaseView['changedInPlace']>} change @param {boolean} isCurrent */
function changedText ({ kind, message }, isCurrent) {
  if (kind !== 'code') return `${message}.`
  return `${isCurrent ? 'New workers run other code' : 'It cannot come back'}: ${message}.`
}

/** @param {ReleaseView} release @returns {Mark[]} */
function pastMarks ({ outcome, setback, inUse }) {
  if (setback?.outcome === 'rolled-back') {
    const isByGuard = setback.actor === 'guard'
    return [{ label: isByGuard ? 'rolled back by the guard' : `rolled back by ${setback.actor}`, tone: isByGuard ? 'bad' : 'warn' }]
  }
  if (outcome === null && !inUse) return [{ label: 'never deployed', tone: 'idle' }]
  const mark = OUTCOMES[outcome ?? '']
  return mark ? [mark] : []
}

/** @param {NonNullable<ReleaseView['setback']>} setback */
function warningOf ({ outcome, rollout, actor, reason }) {
  const why = reason ? `: ${reason}` : ''
  if (outcome === 'rolled-back') {
    return { rollout, text: `Rolled back by ${actor === 'guard' ? 'the guard' : actor}${why}`, tone: actor === 'guard' ? 'bad' : 'warn' }
  }
  return { rollout, text: `A later rollout to this release did not succeed${why}`, tone: 'warn' }
}

/** @param {ReleaseView} release @returns {number} when it was last deployed, wall time, ms */
function touchedAt ({ deployedAt, createdAt }) {
  return Date.parse(deployedAt ?? createdAt)
}
