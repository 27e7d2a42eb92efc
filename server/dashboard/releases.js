import { changesOf } from './comparison.js'

/**
 * Releases as a list shows them: what each is now, what came of it, and whether somebody may go back to it from there.
 * @typedef {import('../deck.js').ReleaseView} ReleaseView
 * @typedef {Pick<import('../deck.js').Status, 'release' | 'rollout' | 'workers'>} Status
 * @typedef {{ label: string, tone: import('../events/kinds.js').Tone }} Mark
 */

/** @type {Readonly<Record<string, Mark>>} of those that have never served */
const OUTCOMES = Object.freeze({ failed: { label: 'failed', tone: 'bad' }, 'rolled-back': { label: 'was rolled back', tone: 'warn' } })

/** @param {ReleaseView[]} releases @param {Status} status @returns those that were deployed last come first */
export function releaseRows (releases, status) {
  return releases.toSorted((a, b) => touchedAt(b) - touchedAt(a)).map((release) => toReleaseRow(release, status))
}

/** @param {ReleaseView} release @param {Status} status */
export function toReleaseRow (release, status) {
  const isCurrent = release.id === status.release.id
  const isTakenBack = release.setback?.outcome === 'taken-back'
  const canReturn = release.servedAt !== null && !isCurrent
  return {
    ...release,
    isCurrent,
    canReturn,
    // One click further away: a list is too quick for what was thrown out.
    isOffered: canReturn && !isTakenBack,
    workers: { running: status.workers.filter(({ pid, release: id }) => pid !== null && id === release.id).length, all: status.workers.filter(({ pid }) => pid !== null).length },
    marks: [...currentMarks(release, status), ...pastMarks(release)],
    warning: release.setback && warningOf(release.setback),
    changes: changesOf(release)
  }
}

/** @param {ReleaseView} release @param {Status} status @returns {Mark[]} */
function currentMarks ({ id, isLastGood }, { release, rollout }) {
  if (id === release.id) return [{ label: 'current', tone: 'ok' }]
  if (id === rollout?.to) return [rollout.state === 'rolling-back' ? { label: 'being taken back', tone: 'warn' } : rollout.state === 'held' ? { label: 'held', tone: 'bad' } : { label: 'rolling out', tone: 'info' }]
  return isLastGood ? [{ label: 'last good', tone: 'drain' }] : []
}

/** @param {ReleaseView} release @returns {Mark[]} */
function pastMarks ({ outcome, setback, inUse }) {
  if (setback?.outcome === 'taken-back') return [setback.actor === 'guard' ? { label: 'taken back by the guard', tone: 'bad' } : { label: `taken back by ${setback.actor}`, tone: 'warn' }]
  if (outcome === null && !inUse) return [{ label: 'never deployed', tone: 'idle' }]
  const mark = OUTCOMES[outcome ?? '']
  return mark ? [mark] : []
}

/** @param {NonNullable<ReleaseView['setback']>} setback */
function warningOf ({ outcome, rollout, actor, reason }) {
  const why = reason ? `: ${reason}` : ''
  if (outcome === 'taken-back') return { rollout, text: `Taken back by ${actor === 'guard' ? 'the guard' : actor}${why}`, tone: actor === 'guard' ? 'bad' : 'warn' }
  return { rollout, text: `A later rollout to it ${outcome === 'failed' ? 'failed' : 'was rolled back'}${why}`, tone: 'warn' }
}

/** @param {ReleaseView} release wall time, ms */
function touchedAt ({ deployedAt, createdAt }) {
  return Date.parse(deployedAt ?? createdAt)
}
