import { PAGE_QUERY } from '../api/filters.ts'
import { parseFields } from '../api/input.ts'
import { lastRollout } from './api.ts'
import { blockedReason, runsProgram, toRollout } from '../dashboard/overview.ts'
import { readOr } from '../dashboard/read-or.ts'
import { baseOf, pickerOf } from '../releases/page.ts'
import { releaseRows } from '../releases/page-list.ts'

/** The page about deploys. */
type Deck = Pick<import('../deck.ts').Deck, 'snapshot' | 'releases' | 'crashes' | 'jobs'>
type History = Pick<import('../../db/history.ts').History, 'rollouts' | 'page'>

const PAGE_SIZE = 25
const KNOWN = 100
const LISTED = 20

export function deploysModel (
  { deck, history, params, now }: { deck: Deck, history: History, params: URLSearchParams, now: () => number }
) {
  const snapshot = deck.snapshot()
  const { cursor } = parseFields(PAGE_QUERY, params).values
  const { items, next } = readOr(() => history.rollouts({ limit: PAGE_SIZE, cursor }), { items: [], next: null })
  const releases = readOr(() => deck.releases.list({ limit: KNOWN }).items, [])
  const past = items.filter(({ id }) => id !== snapshot.rollout?.id).map((rollout) => toRollout(rollout))
  return { now: now(), snapshot, blocked: blockedReason(snapshot), lastRollout: lastRollout(deck, history),
    build: deck.jobs.building(), isFirstPage: cursor === undefined,
    rollout: snapshot.rollout ? toRollout(snapshot.rollout, { history, isProgram: runsProgram(snapshot) }) : null, past,
    releases: releaseRows(releases, snapshot).slice(0, LISTED),
    picker: pickerOf(releases, { from: readOr(() => baseOf(deck, deck.releases.get(snapshot.release.id)), undefined),
      to: snapshot.release.id }),
    links: { next: next === null ? null : `/deploys?cursor=${next}`,
      newest: cursor === undefined ? null : '/deploys' } }
}
