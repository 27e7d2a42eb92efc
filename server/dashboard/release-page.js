import { capitalised } from '../../public/format.js'
import { lastRollout } from '../api/rollouts.js'
import { RELEASE_ID } from '../config/release-id.js'
import { DeckError } from '../errors.js'
import { count } from '../health.js'
import { comparisonOf, crashesOn } from './comparison.js'
import { blockedReason, toRollout } from './overview.js'
import { readOr } from './read-or.js'
import { firstLine } from './readable-text.js'
import { offeredRelease, toReleaseRow } from './releases.js'

const COMPARABLE = 100
const LABEL_CHARS = 60
/** So many rollouts are searched for those of a release, and so many of them are shown. */
const SEARCHED_ROLLOUTS = 50
const SHOWN_ROLLOUTS = 5
const SEARCHED_LOOKS = 20
const SHOWN_HOLDERS = 3
/** @type {Readonly<Record<string, string>>} */
const MODES = Object.freeze({
  live: 'runs in its folder, nothing is copied',
  symlink: 'the target of a symbolic link',
  path: 'a folder that the deploy named',
  folder: 'a copy of the folder'
})

/** The elements of the page that change, by id; each is the partial of the same name. */
export const RELEASE_FRAGMENTS = Object.freeze(['release-head', 'release-crashes', 'release-memory', 'release-rollouts'])

/**
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'releases' | 'crashes'>} Deck
 * @typedef {Pick<import('../../db/history.js').History, 'rollouts' | 'rollout' | 'page'>} History
 * @typedef {import('../lifecycle/rollout/record.js').RolloutView} RolloutView
 * @typedef {{ deck: Deck, history: History, id: string, now: () => number, can?: import('./powers.js').Powers }} Asked
 */

/**
 * One release, and its changes since the one before.
 * @param {Asked} asked
 * @throws {DeckError} not-found
 */
export async function releasePageModel ({ deck, ...asked }) {
  const model = releaseModel({ deck, ...asked })
  return { ...model, comparison: model.base === null ? null : await comparisonOf({ deck, from: model.base, to: model.release.id }) }
}

/** @param {Asked & { render: (name: string, model: object) => string }} asked @returns {() => { id: string, html: string }[]} */
export function followRelease ({ render, ...asked }) {
  return () => {
    const model = { can: asked.can, ...releaseModel(asked) }
    return RELEASE_FRAGMENTS.map((id) => ({ id, html: render(`partials/${id}`, model) }))
  }
}

/** @param {Asked} asked @throws {DeckError} not-found */
export function releaseModel ({ deck, history, id, now }) {
  const snapshot = deck.snapshot()
  const shown = deck.releases.get(requireReleaseId(id))
  const release = { ...toReleaseRow(shown, snapshot), slots: snapshot.workers.filter((worker) => worker.release === id).map(({ slot }) => slot) }
  return {
    now: now(),
    snapshot,
    blocked: blockedReason(snapshot),
    lastRollout: lastRollout(deck, history),
    release: { ...release, means: MODES[release.mode ?? ''] ?? null },
    standing: standingOf(release, { snapshot, history }),
    // On the page of the release that runs, a rollback leads to the last good release.
    wayBack: release.isCurrent ? offeredRelease(deck, () => deck.releases.before(id), snapshot) : release.canReturn ? release : null,
    base: readOr(() => knownBase(deck, shown), null),
    rollouts: readOr(() => rolloutsOf(history, id), []),
    crashes: crashesOn(deck, id),
    memory: readOr(() => memoryOf(history, id), null)
  }
}

/**
 * What the release is by now, and what somebody can do about it.
 * @param {ReturnType<typeof toReleaseRow> & { slots: number[] }} release @param {{ snapshot: import('../deck.js').Status, history: History }} cluster
 * @returns {{ tone: import('../events/kinds.js').Tone, text: string, reason?: string | null, next?: string, rollout?: number | null }}
 */
function standingOf (release, { snapshot, history }) {
  const { rollout } = snapshot
  if (release.isCurrent) return { tone: 'ok', text: runningText(release) }
  if (rollout?.to === release.id) return { tone: 'info', text: runningText(release), rollout: rollout.id }
  if (release.servedAt === null) return unservedStanding(release, { current: snapshot.release.id, history })
  if (release.changedInPlace?.kind === 'code') return { tone: 'idle', text: 'It has served before.', next: 'To have it again, deploy that code.' }
  return { tone: 'idle', text: 'It has served before.', next: 'A rollback brings it back, slot by slot.' }
}

/** @param {ReturnType<typeof toReleaseRow>} release */
function runningText ({ workers: { running, all } }) {
  return running === all ? `All ${count(all, 'worker')} run it.` : `${running} of ${count(all, 'worker')} ${running === 1 ? 'runs' : 'run'} it.`
}

/** @param {ReturnType<typeof toReleaseRow>} release @param {{ current: string, history: History }} parts @returns {ReturnType<typeof standingOf>} */
function unservedStanding ({ outcome, rollout }, { current, history }) {
  const told = rollout === null ? null : readOr(() => history.rollout(rollout)?.reason, null)
  const reason = told ? `${capitalised(told)}.` : null
  const next = 'Correct the code and deploy again: that makes a new release.'
  if (outcome === 'failed') return { tone: 'bad', text: `Its deploy failed; ${current} runs.`, reason, next, rollout }
  if (outcome === 'rolled-back') return { tone: 'warn', text: `Its deploy was rolled back; ${current} runs.`, reason, next, rollout }
  return { tone: 'idle', text: 'It was never deployed.' }
}

/** @param {History} history @param {string} id */
function rolloutsOf (history, id) {
  const isOf = (/** @type {RolloutView} */ { kind, from, to }) => kind === 'restart' ? from === id : to === id
  return history.rollouts({ limit: SEARCHED_ROLLOUTS }).items.filter(isOf).slice(0, SHOWN_ROLLOUTS).map((rollout) => toRollout(rollout))
}

/** What held the memory of its workers, by the last look that found it. @param {History} history @param {string} id */
function memoryOf (history, id) {
  const looks = history.page({ type: 'memory.examined', release: id, limit: SEARCHED_LOOKS }).items
  const last = looks.find(({ detail }) => detail?.holders?.length > 0)
  return last ? { id: last.id, at: last.at, holders: last.detail?.holders.slice(0, SHOWN_HOLDERS), sinceRelease: last.detail?.sinceRelease } : null
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
 * Compares a release with `from`, or with the one before it.
 * @param {{ deck: Deck, id: string, params: URLSearchParams, now: number }} parts
 * @throws {DeckError} not-found
 */
export async function compareModel ({ deck, id, params, now }) {
  const from = requireReleaseId(params.get('from') || baseOf(deck, deck.releases.get(requireReleaseId(id))))
  const comparison = await comparisonOf({ deck, from, to: id })
  return {
    now,
    comparison,
    picker: pickerOf(deck.releases.list({ limit: COMPARABLE }).items, { from, to: id }),
    crashes: { from: crashesOn(deck, from), to: crashesOn(deck, id) }
  }
}

/** @param {Deck} deck @param {import('../deck.js').ReleaseView} release @returns {string} what it is compared with: the one before it, else the one that runs */
export function baseOf (deck, release) {
  return knownBase(deck, release) ?? deck.snapshot().release.id
}

/** @param {Deck} deck @param {import('../deck.js').ReleaseView} release @returns {string | null} null: it is the first one that is kept */
function knownBase ({ releases }, { id, changed }) {
  // A list looks at the files of all of its releases.
  const before = changed && readOr(() => releases.get(changed.from), null)
  if (before) return before.id
  const older = releases.list({ limit: COMPARABLE }).items.filter((each) => numberOf(each) < numberOf({ id })).sort((one, other) => numberOf(other) - numberOf(one))
  return older[0]?.id ?? null
}

/** @param {{ id: string }} release */
function numberOf ({ id }) {
  return Number(id.slice(1))
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
