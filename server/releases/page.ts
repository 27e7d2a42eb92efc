import { capitalised } from '../../public/format.ts'
import { lastRollout } from '../rollouts/api.ts'
import { isNewer, RELEASE_ID } from '../config/release-id.ts'
import { DeckError } from '../errors.ts'
import { count } from '../words/health.ts'
import { baseOf, knownBase } from './api-comparison.ts'
import { worseRoutes } from '../vitals/page-routes.ts'
import { comparisonOf, crashesOn } from './page-comparison.ts'
import { blockedReason, toRollout } from '../dashboard/overview.ts'
import { readOr } from '../dashboard/read-or.ts'
import { firstLine } from '../dashboard/readable-text.ts'
import { offeredRelease, toReleaseRow } from './page-list.ts'
import type { RolloutView } from '../lifecycle/rollout/record.ts'
import type { Powers } from '../dashboard/powers.ts'
import type { Status } from '../deck.ts'
import type { KeptRelease } from '../api/shapes.ts'
import type { Tone } from '../events/kinds.ts'

const COMPARABLE = 100
const LABEL_CHARS = 60
/** So many rollouts are searched for those of a release, and so many of them are shown. */
const SEARCHED_ROLLOUTS = 50
const SHOWN_ROLLOUTS = 5
const SEARCHED_LOOKS = 20
const SHOWN_HOLDERS = 3
const MODES: Readonly<Record<string, string>> = Object.freeze({ live: 'Runs in its folder, nothing is copied',
  symlink: 'The target of a symbolic link', path: 'A folder that the deploy named', folder: 'A copy of the folder' })

type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'releases' | 'crashes' | 'vitals'>
type History = Pick<import('../../db/history.ts').History, 'rollouts' | 'rollout' | 'page'>
type Asked = { deck: Deck, history: History, id: string, now: () => number, can?: Powers }

/**
 * One release, and its changes since the one before.
 * @throws {DeckError} not-found
 */
export async function releasePageModel ({ deck, ...asked }: Asked) {
  const model = releaseModel({ deck, ...asked })
  const { base: from, now, release: { id: to } } = model
  return { ...model, comparison: from === null ? null : await comparisonOf(deck, { from, to, now, can: asked.can }) }
}

/** Its comparison does not change. */
export function followRelease (asked: Asked) {
  return () => releaseModel(asked)
}

/** @throws {DeckError} not-found */
export function releaseModel ({ deck, history, id, now }: Asked) {
  const snapshot = deck.snapshot()
  const shown = deck.releases.get(requireReleaseId(id))
  const release = toReleaseRow(shown, snapshot)
  return {
    now: now(),
    snapshot,
    blocked: blockedReason(snapshot),
    lastRollout: lastRollout(deck, history),
    release: { ...release, means: MODES[release.mode ?? ''] ?? release.mode },
    standing: standingOf(release, { snapshot, history }),
    // On the page of the release that runs, a rollback leads to the last good release.
    wayBack: release.isCurrent
      ? offeredRelease(deck, () => deck.releases.before(id), snapshot)
      : release.canReturn
      ? release
      : null,
    base: readOr(() => knownBase(deck, shown), null),
    rollouts: readOr(() => rolloutsOf(history, id), []),
    crashes: crashesOn(deck, id),
    memory: readOr(() => memoryOf(history, id), null)
  }
}

/** What the release is by now beyond its marks, and what somebody can do about it. */
function standingOf (release: ReturnType<typeof toReleaseRow>,
  { snapshot, history }: { snapshot: Status, history: History }
): { tone: Tone, text: string, failed?: ReturnType<typeof toRollout> | null, next?: string, rollout?: number | null } {
  const { rollout } = snapshot
  if (release.isCurrent) return { tone: 'ok', text: runningText(release) }
  if (rollout?.to === release.id) return { tone: 'info', text: runningText(release), rollout: rollout.id }
  if (release.servedAt === null) return unservedStanding(release, { current: snapshot.release.id, history })
  return { tone: 'idle', text: 'It has served before.',
    next: release.canReturn ? 'A rollback brings it back, slot by slot.' : 'To have it again, deploy that code.' }
}

function runningText ({ workers: { running, all } }: ReturnType<typeof toReleaseRow>) {
  return running === all ? '' : `${running} of ${count(all, 'worker')} ${running === 1 ? 'runs' : 'run'} it.`
}

function unservedStanding ({ outcome, rollout }: ReturnType<typeof toReleaseRow>,
  { current, history }: { current: string, history: History }): ReturnType<typeof standingOf>
{
  const kept = rollout === null ? null : readOr(() => history.rollout(rollout), null)
  const failed = kept && toRollout(kept)
  const isFailed = outcome === 'failed'
  if (!isFailed && outcome !== 'rolled-back') return { tone: 'idle', text: '' }
  const ended = `Its deploy ${isFailed ? 'failed' : 'was rolled back'}`
  const reason = failed?.reason ? `${capitalised(failed.reason)}.` : `${ended}.`
  return { tone: isFailed ? 'bad' : 'warn', rollout, failed,
    text: failed?.decided ? `${ended}: ${failed.decided.title}.` : reason,
    next: `${current} runs. Correct the code and deploy again: that makes a new release.` }
}

function rolloutsOf (history: History, id: string) {
  const isOf = ({ kind, from, to }: RolloutView) => kind === 'restart' ? from === id : to === id
  return history.rollouts({ limit: SEARCHED_ROLLOUTS }).items.filter(isOf).slice(0, SHOWN_ROLLOUTS).map((rollout) =>
    toRollout(rollout)
  )
}

/** What held the memory of its workers, by the last look that found it. */
function memoryOf (history: History, id: string) {
  const looks = history.page({ type: 'memory.examined', release: id, limit: SEARCHED_LOOKS }).items
  const last = looks.find(({ detail }) => detail?.holders?.length)
  return last
    ? { id: last.id, at: last.at, holders: last.detail?.holders?.slice(0, SHOWN_HOLDERS),
      sinceRelease: last.detail?.sinceRelease }
    : null
}

/**
 * What a rollback to a release would change, to be read before it starts.
 * @throws {DeckError} not-found
 */
export async function rollbackModel (
  { deck, history, id, now, can }: { deck: Deck, history: Pick<History, 'rollouts'>, id: string, now: () => number,
    can?: Powers }
) {
  const snapshot = deck.snapshot()
  const comparison = await comparisonOf(deck, { from: snapshot.release.id, to: requireReleaseId(id), now: now(), can })
  return { now: now(), blocked: blockedReason(snapshot), lastRollout: lastRollout(deck, history), comparison,
    release: toReleaseRow(comparison.to, snapshot), crashes: crashesOn(deck, id) }
}

/**
 * Compares a release with `from`, or with the one before it. `id`: of the release; empty: it is `to`
 * @throws {DeckError} not-found
 */
export async function compareModel (
  { deck, id: named, params, now, can }: { deck: Deck, id: string, params: URLSearchParams, now: () => number,
    can?: Powers }
) {
  const picks = picksOf(params)
  const id = named || (picks?.to ?? String(params.get('to') ?? ''))
  const from = requireReleaseId(
    picks?.from ?? (params.get('from') || baseOf(deck, deck.releases.get(requireReleaseId(id))))
  )
  const comparison = await comparisonOf(deck, { from, to: id, now: now(), can })
  return { now: now(), comparison,
    routes: comparison.unsure === null ? worseRoutes(deck.vitals, { from, to: id }, now()) : [],
    picker: pickerOf(deck.releases.list({ limit: COMPARABLE }).items, { from, to: id }),
    crashes: { from: crashesOn(deck, from), to: crashesOn(deck, id) } }
}

/** Two that were ticked in a list, the older one first. Returns null: none was @throws {DeckError} invalid-query */
function picksOf (params: URLSearchParams): { from: string, to: string } | null {
  const picks = params.getAll('pick')
  if (!params.has('pick')) return null
  if (picks.length !== 2)
    throw new DeckError('invalid-query', `pick: expected two releases to compare, received ${picks.length}`)
  const [from, to] = picks.map(requireReleaseId).sort((a, b) => isNewer(a, b) ? 1 : -1)
  return { from, to }
}

function pickerOf (releases: KeptRelease[],
  { from, to }: { from?: string, to?: string } = {}
): { from: string | undefined, to: string | undefined, choices: { id: string, label: string }[] } {
  const choices = releases.map(({ id, git, package: about, note }) => ({ id,
    label: [id, firstLine(git?.subject || note || about?.version || '', LABEL_CHARS)].filter(Boolean).join(' · ') })
  )
  // A picked release may be older than those that are listed.
  for (const id of [to, from])
    if (id !== undefined && !choices.some((choice) => choice.id === id)) choices.push({ id, label: id })
  return { from, to, choices }
}

function requireReleaseId (id: string) {
  if (RELEASE_ID.test(id)) return id
  throw new DeckError('not-found', `Release ${JSON.stringify(id.slice(0, 40))} does not exist`)
}
