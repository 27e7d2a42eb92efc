import { attempt } from '../errors.ts'
import { isNewer } from '../config/release-id.ts'
import { changesOf } from './page-comparison.ts'
import type { Deck } from '../deck.ts'
import type { KeptRelease, Setback } from '../api/shapes.ts'
import type { Tone } from '../events/kinds.ts'

/** Releases as a list shows them: the state of each, its outcome, and whether the list offers a rollback to it. */
type Status = Pick<import('../deck.ts').Status, 'release' | 'rollout' | 'workers'>
type Mark = { label: string, tone: Tone }

/** outcomes of releases that never served */
export const OUTCOMES: Readonly<Record<string, Mark>> = Object.freeze({ failed: { label: 'failed', tone: 'bad' },
  'rolled-back': { label: 'rolled back', tone: 'idle' } })

const CHANGED: Mark = { label: 'changed in place', tone: 'warn' }

/** A release that a page may offer to roll back to. `idOf`: may throw where there is none. */
export function offeredRelease (deck: Pick<Deck, 'releases'>, idOf: () => string, status: Status): ReturnType<
  typeof toReleaseRow
> | null {
  // It may no longer be kept, and the history may not be readable.
  return attempt(() => {
    const release = toReleaseRow(deck.releases.get(idOf()), status)
    return release.isOffered ? release : null
  })
}

/** @returns the last deployed come first */
export function releaseRows (releases: KeptRelease[], status: Status) {
  return releases.toSorted((a, b) => touchedAt(b) - touchedAt(a)).map((release) => toReleaseRow(release, status))
}

export function toReleaseRow (release: KeptRelease, status: Status) {
  const isCurrent = release.id === status.release.id
  const isRolledBack = release.setback?.outcome === 'rolled-back'
  const wasDeployed = release.servedAt !== null || release.outcome !== null
  const canReturn = wasDeployed && !isCurrent && release.changedInPlace?.kind !== 'code'
  // A new worker that starts beside an old one is of the same slot.
  const serving = status.workers.filter(({ state }) => state === 'ready')
  return {
    ...release,
    isCurrent,
    canReturn,
    returns: release.servedAt !== null && !isRolledBack && !isNewer(release.id, status.release.id)
      ? `Roll back to ${release.id}`
      : `Redeploy ${release.id}`,
    // A release that was rolled back is one click further away: the list of deploys offers it.
    isOffered: canReturn && release.servedAt !== null && !isRolledBack,
    workers: { running: serving.filter(({ release: id }) => id === release.id).length, all: serving.length },
    marks: [...currentMarks(release, status), ...pastMarks(release), ...hasOtherFiles(release) ? [CHANGED] : []],
    warning: release.setback && warningOf(release.setback),
    changedText: release.changedInPlace && changedText(release.changedInPlace, isCurrent),
    changes: changesOf(release)
  }
}

function currentMarks ({ id, isLastGood, changedInPlace }: KeptRelease, { release, rollout }: Status): Mark[] {
  if (id === release.id) return [{ label: 'runs now', tone: 'ok' }]
  if (id === rollout?.to) {
    if (rollout.state === 'rolling-back') return [{ label: 'rolling back', tone: 'warn' }]
    return [rollout.state === 'held' ? { label: 'held', tone: 'bad' } : { label: 'rolling out', tone: 'info' }]
  }
  return isLastGood && changedInPlace?.kind !== 'code' ? [{ label: 'last good', tone: 'idle' }] : []
}

function hasOtherFiles ({ changedInPlace }: KeptRelease) {
  return changedInPlace !== null && changedInPlace.kind !== 'unknown'
}

function changedText ({ kind, message }: NonNullable<KeptRelease['changedInPlace']>, isCurrent: boolean) {
  if (kind !== 'code') return `${message}.`
  return `${isCurrent ? 'New workers run other code' : 'It cannot come back'}: ${message}.`
}

function pastMarks ({ outcome, setback, inUse }: KeptRelease): Mark[] {
  if (setback?.outcome === 'rolled-back') {
    return [{ label: 'rolled back', tone: setback.actor === 'guard' ? 'bad' : 'warn' }]
  }
  if (outcome === null && !inUse) return [{ label: 'never deployed', tone: 'idle' }]
  const mark = OUTCOMES[outcome ?? '']
  return mark ? [mark] : []
}

function warningOf ({ outcome, rollout, actor, reason }: Setback) {
  const why = reason ? `: ${reason}` : ''
  if (outcome === 'rolled-back')
    return { rollout, text: `${rolledBackBy(actor)}${why}`, tone: actor === 'guard' ? 'bad' : 'warn' }
  return { rollout, text: `A later rollout to this release did not succeed${why}`, tone: 'warn' }
}

export function rolledBackBy (actor: string): string {
  return `Rolled back by ${actor === 'guard' ? 'the guard' : actor}`
}

/** @returns when it was last deployed, wall time, ms */
function touchedAt ({ deployedAt, createdAt }: KeptRelease): number {
  return Date.parse(deployedAt ?? createdAt)
}
