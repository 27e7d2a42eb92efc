import { missingIn, onlyOf, VIEWER } from '../api/ask.ts'
import { fleetCrashes, settledTimes, type CrashOnHosts } from './api-crashes.ts'
import { fleetOf, type FleetDeck } from './api.ts'
import { count, listText } from '../words/health.ts'
import { GROUP_STATES } from '../crashes/page-kinds.ts'
import { blankModel, crashTexts, listModel, parseCrashFilters } from '../crashes/page.ts'
import { followAnswers } from '../dashboard/follow-answers.ts'
import { fleetGaps } from './page-gaps.ts'
import { hostChoices, urlOn } from './page-members.ts'
import { toShownProblem } from '../events/page-filters.ts'
import type { Hosts } from '../api/ask.ts'
import type { Member } from './presence.ts'
import type { Asked } from '../dashboard/pages.ts'

/** The page of the crashes for several hosts: a row for each fault, with the hosts that have it. */
type KnownMember = Pick<Member, 'member' | 'isOwn' | 'url'>

const MAX_SHOWN = 100
/** Not more often, as all members are asked each time. */
const REFRESH_EVERY_MS = 10_000

export async function fleetCrashesModel (
  { deck, params, now }: { deck: FleetDeck, params: URLSearchParams, now: () => number }
) {
  const members = deck.fleet?.status().members ?? []
  const choices = hostChoices(deck)
  try {
    const asked = parseCrashFilters(params, now())
    const { member = '*', cursor: _, ...filter } = asked.query
    const { items, hosts } = await fleetCrashes(deck, { ...filter, member }, VIEWER)
    const gaps = await fleetGaps(fleetOf(deck), { only: onlyOf(member), now: now(), isOfCrashes: true })
    return { ...listModel(asked, { now: now() }), choices, gaps, total: 0, hosts: hostTexts(hosts),
      groups: items.slice(0, MAX_SHOWN).map((group) => toRow(group, members)),
      hidden: Math.max(0, items.length - MAX_SHOWN) }
  } catch (error) {
    return { ...blankModel(params, now()), choices, hosts: null, hidden: 0, problem: toShownProblem(error) }
  }
}

export function followFleetCrashes (asked: Asked) {
  return followAnswers(asked, { model: fleetCrashesModel, everyMs: REFRESH_EVERY_MS,
    isNewsOf: () => settledTimes(asked.deck.fleet) })
}

function hostTexts (hosts: Hosts) {
  const { asked, answered, silent, cut } = hosts
  const missing = missingIn(hosts)
  return { answered: `${answered} of ${count(asked, 'member')} answered`,
    missing: missing.length === 0
      ? null
      : `Left out: ${listText(missing)} ${silent.length === 0 ? 'cannot be read from here' : 'did not answer'}.`,
    cut: cut.length === 0 ? null : `${listText(cut)} ${cut.length === 1 ? 'has' : 'have'} more crashes than are shown` }
}

function toRow ({ members, ...group }: CrashOnHosts, known: readonly KnownMember[]) {
  const states = Object.keys(GROUP_STATES).map((state) => ({ state,
    number: members.filter((each) => each.state === state).length })
  ).filter(({ number }) => number > 0)
  const hosts = members.map((each) => ({ ...each,
    ...placeOf(each, known.find(({ member }) => member === each.member)) })
  )
  const nearest = hosts.find(({ member }) => known.some((each) => each.isOwn && each.member === member))
  const releases = [...new Set(members.map(({ lastRelease }) => lastRelease))]
  return { ...group, key: group.fingerprint.replace(':', '-'), ...crashTexts(group), hosts,
    newIn: !group.isNewInRelease ? null : releases.length === 1 && releases[0] !== null ? releases[0] : 'its release',
    mixed: states.length > 1
      ? states.map(({ state, number }) => `${GROUP_STATES[state].label.toLowerCase()} on ${number}`).join(', ')
      : null, url: (nearest ?? hosts.toSorted((one, other) => one.lastSeenAt > other.lastSeenAt ? -1 : 1)[0]).url }
}

/** The page of this crash on that host, or else the page of the host. */
function placeOf ({ member, id }: { member: string, id: number }, known?: KnownMember) {
  const url = urlOn(known, `/crashes/${id}`)
  return { url: url ?? `/fleet/members/${member}`, isElsewhere: url !== null && !known?.isOwn }
}
