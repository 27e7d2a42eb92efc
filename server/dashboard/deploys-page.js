import { PAGE_QUERY } from '../api/filters.js'
import { parseFields } from '../api/input.js'
import { DeckError } from '../errors.js'
import { toRollout } from './overview.js'
import { changesOf } from './release-page.js'

/**
 * What the page about deploys shows.
 * @typedef {Pick<import('../deck.js').Deck, 'snapshot' | 'releases'>} Deck
 * @typedef {Pick<import('../../db/history.js').History, 'rollouts'>} History
 */

const PAGE_SIZE = 25
const LISTED = 20

/** The elements of the page that change, by id; each is the partial of the same name. */
export const DEPLOYS_FRAGMENTS = Object.freeze(['actions', 'rollout', 'verdicts', 'rollouts', 'releases'])

/** @param {{ deck: Deck, history: History, params: URLSearchParams, now: number, blocked: string | null }} parts */
export function deploysModel ({ deck, history, params, now, blocked }) {
  const snapshot = deck.snapshot()
  const { cursor } = parseFields(PAGE_QUERY, params).values
  const { items, next } = read(() => history.rollouts({ limit: PAGE_SIZE, cursor }), { items: [], next: null })
  const past = items.filter(({ id }) => id !== snapshot.rollout?.id).map(toRollout)
  return {
    now,
    snapshot,
    blocked,
    isFirstPage: cursor === undefined,
    rollout: snapshot.rollout ? toRollout(snapshot.rollout) : null,
    past,
    releases: read(() => deck.releases.list({ limit: LISTED }).items, /** @type {import('../deck.js').ReleaseView[]} */ ([])).map((release) => ({ ...release, isRunning: release.id === snapshot.release.id, changes: changesOf(release) })),
    links: { next: next === null ? null : `/deploys?cursor=${next}`, newest: cursor === undefined ? null : '/deploys' }
  }
}

/** @template T @param {() => T} work @param {T} otherwise @returns {T} */
function read (work, otherwise) {
  try {
    return work()
  } catch (error) {
    if (error instanceof DeckError && error.code === 'invalid-query') throw error
    // A broken history must not take the controls of a rollout down with it.
    return otherwise
  }
}
