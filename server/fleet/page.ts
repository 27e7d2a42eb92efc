import { z } from 'zod'
import { integerParam, parseFields } from '../api/input.ts'
import { fleetOf, type FleetDeck } from './api.ts'
import { marksOf } from './api-builds.ts'
import { STATES } from './document.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { selectMembers, HEALTHS, healthOf, isIll, isSilent, labelsOf, linkTo, toMemberRow, toneOf, totalsOf,
  usualVersionOf } from './page-members.ts'
import { observationsOf } from './page-observations.ts'
import { supersededView, toFleetRollout, versionOf } from './page-rollout-parts.ts'
import { toShownProblem } from '../events/page-filters.ts'
import type { AppFleet as Fleet, FleetStatus } from './app-fleet.ts'
import type { Filters, Marked } from './page-members.ts'
import type { Powers } from '../dashboard/powers.ts'

/** The page about the fleet: its members and its rollout. */
type Asked = { deck: FleetDeck, params: URLSearchParams, now: () => number, can?: Powers }

/** The elements of the page that change, by id; each is the partial of the same name. */
const ROLLOUT_FRAGMENTS = Object.freeze(['fleet-actions', 'fleet-rollout'])
const MEMBER_FRAGMENTS = Object.freeze(['fleet-head', 'fleet-facts', 'fleet-tabs', 'fleet-members', 'fleet-past'])

const PAGE_SIZE = 100
/** A rollout of hundreds of hosts shows only those that matter now. */
const MOST_TURNS = 12
const MOST_TROUBLES = 3
const MOST_LABELS = 100
const MOST_CANARIES = 200
/**
 * With hundreds of members there is always something new, so members are rendered this often. A rollout is rendered at
 * once.
 */
const MEMBERS_EVERY_MS = 1000
/** The page does not wait longer for a NATS server that does not answer. */
const ANSWER_WITHIN_MS = 500

const QUERY = z.object({
  health: z.enum(Object.keys(HEALTHS)).optional().describe(`one of ${Object.keys(HEALTHS).join(', ')}`),
  label: z.string().max(262).regex(/^[\w.-]{1,60}:/).optional().describe('a label such as zone:a'),
  q: z.string().max(100).optional().describe('1 to 100 characters of a name'),
  page: integerParam(1, 1000)
})

export async function fleetModel ({ deck, params, now }: Asked) {
  if (!deck.fleet && !deck.joinsFleet) return { now: now(), isAlone: true, canonicalUrl: '/fleet' }
  const fleet = fleetOf(deck)
  await waitAtMost(fleet.look().catch(() => null), ANSWER_WITHIN_MS)
  const status = fleet.status()
  await waitAtMost(observationsOf(fleet).pastOf(status.rollout?.id ?? null, now()), ANSWER_WITHIN_MS)
  const shown = shownOf(status, { fleet, params, now: now() })
  return { ...shown, isAlone: false,
    choices: { labels: labelsOf(status.members).slice(0, MOST_LABELS),
      names: [...new Set(status.members.flatMap(({ labels }) => Object.keys(labels)))].sort(),
      members: status.members.filter(({ isSilent }) => !isSilent).map(({ member }) => member).slice(0,
        MOST_CANARIES) } }
}

export function followFleet ({ deck: { fleet }, params, now }: Asked) {
  let version = ''
  let renderedAt = -Infinity

  return () => {
    if (!fleet) return null
    const status = fleet.status()
    const isDue = now() - renderedAt >= MEMBERS_EVERY_MS
    if (!isDue && version === versionOf(status.rollout)) return null
    version = versionOf(status.rollout)
    if (isDue) renderedAt = now()
    return { ...shownOf(status, { fleet, params, now: now() }),
      fragments: isDue ? [...ROLLOUT_FRAGMENTS, ...MEMBER_FRAGMENTS] : ROLLOUT_FRAGMENTS }
  }
}

function shownOf ({ name, app, member, nats, problem: nameProblem, members: known, rollout }: FleetStatus,
  { fleet, params, now }: { fleet: Fleet, params: URLSearchParams, now: number })
{
  const observations = observationsOf(fleet)
  observations.note(known, now)
  const marks = marksOf(known, rollout)
  const members = known.map((each) => ({ ...each, mark: marks.get(each.member) ?? null }))
  const isAway = !nats.isConnected
  const { filters, page, problem } = filtersOf(params)
  const found = problem ? [] : selectMembers(members, filters, isAway)
  const pages = Math.max(1, Math.ceil(found.length / PAGE_SIZE))
  const at = Math.min(page, pages)
  const usualVersion = usualVersionOf(known)
  const toRow = (each: typeof members[number]) => toMemberRow(each, { observations, isAway, usualVersion, filters })
  return { now, name, app, member, nats, nameProblem, filters, problem, status: problem?.status,
    health: healthOf(members, { nats, rollout }),
    troubles: isAway ? { items: [], more: 0 } : troublesOf(members, toRow),
    totals: totalsOf(members, (member) => [member], members.map((member) => toneOf(member, isAway))),
    rollout: rollout && toFleetRollout(rollout, { members: known, mostRows: MOST_TURNS, isAway }),
    blocked: blockedReason({ nats, rollout }), tabs: tabsOf(filters, members),
    isNarrowed: filters.label !== undefined || filters.q !== undefined,
    rows: found.slice((at - 1) * PAGE_SIZE, at * PAGE_SIZE).map(toRow),
    found: { total: found.length, from: (at - 1) * PAGE_SIZE + 1, to: Math.min(found.length, at * PAGE_SIZE), pages },
    past: observations.past(rollout?.id ?? null, now).map(supersededView),
    links: { clear: linkTo({ health: filters.health }),
      previous: at > 1 ? linkTo(filters, { page: at > 2 ? String(at - 1) : undefined }) : null,
      next: at < pages ? linkTo(filters, { page: String(at + 1) }) : null },
    canonicalUrl: linkTo(filters, { page: at > 1 ? String(at) : undefined }) }
}

function filtersOf (
  params: URLSearchParams
): { filters: Filters, page: number, problem: ReturnType<typeof toShownProblem> | null } {
  try {
    const { texts: { page: _, ...filters }, values: { page = 1 } } = parseFields(QUERY, params)
    if (filters.health === 'all') delete filters.health
    return { filters, page: Number(page), problem: null }
  } catch (error) {
    return { filters: {}, page: 1, problem: toShownProblem(error) }
  }
}

function tabsOf (filters: Filters, members: Marked[]) {
  return Object.entries(HEALTHS).map(([health, { label, isOf }]) => ({ label, count: members.filter(isOf).length,
    isCurrent: (filters.health ?? 'all') === health,
    url: linkTo(filters, { health: health === 'all' ? undefined : health, page: undefined }) })
  )
}

function troublesOf (members: Marked[], toRow: (member: Marked) => ReturnType<typeof toMemberRow>) {
  const all = selectMembers(members, {}).filter((member) => isSilent(member) || isIll(member))
  return { items: all.slice(0, MOST_TROUBLES).map(toRow), more: Math.max(0, all.length - MOST_TROUBLES) }
}

export function blockedReason ({ nats, rollout }: Pick<FleetStatus, 'nats' | 'rollout'>): string | null {
  if (!nats.isConnected) return 'The fleet is out of reach.'
  if (rollout && !STATES[rollout.state].done) {
    return `Rollout ${rollout.id} of the fleet is ${rollout.state.replace('-', ' ')}. Only one can run at a time.`
  }
  return null
}
