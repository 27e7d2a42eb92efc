import { PAGE_QUERY } from '../api/filters.js'
import { parseFields } from '../api/input.js'
import { lastRollout } from '../api/rollouts.js'
import { runsProgram, toRollout } from './overview.js'
import { readOr } from './read-or.js'
import { baseOf, pickerOf } from './release-page.js'
import { releaseRows } from './releases.js'

/**
 * The page about deploys.
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'releases' | 'crashes' | 'jobs'>} Deck
 * @typedef {Pick<import('../../db/history.js').History, 'rollouts' | 'page'>} History
 */

const PAGE_SIZE = 25
const KNOWN = 100
const LISTED = 20

/** The elements of the page that change, by id; each is the partial of the same name. */
export const DEPLOYS_FRAGMENTS = Object.freeze(['actions', 'build', 'rollout', 'verdicts', 'rollouts', 'releases'])

/** @param {{ deck: Deck, history: History, params: URLSearchParams, now: number, blocked: string | null }} parts */
export function deploysModel ({ deck, history, params, now, blocked }) {
  const snapshot = deck.snapshot()
  const { cursor } = parseFields(PAGE_QUERY, params).values
  const { items, next } = readOr(() => history.rollouts({ limit: PAGE_SIZE, cursor }), { items: [], next: null })
  const releases = readOr(() => deck.releases.list({ limit: KNOWN }).items, [])
  const past = items.filter(({ id }) => id !== snapshot.rollout?.id).map((rollout) => toRollout(rollout))
  return {
    now,
    snapshot,
    blocked,
    lastRollout: lastRollout(deck, history),
    build: deck.jobs.building(),
    isFirstPage: cursor === undefined,
    rollout: snapshot.rollout ? toRollout(snapshot.rollout, { history, isProgram: runsProgram(snapshot) }) : null,
    past,
    releases: releaseRows(releases, snapshot).slice(0, LISTED),
    picker: pickerOf(releases, { from: readOr(() => baseOf(deck, deck.releases.get(snapshot.release.id)), undefined), to: snapshot.release.id }),
    links: { next: next === null ? null : `/deploys?cursor=${next}`, newest: cursor === undefined ? null : '/deploys' }
  }
}
