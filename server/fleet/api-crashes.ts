import { z } from 'zod'
import { FINGERPRINT } from '../config/fingerprint.ts'
import { DeckError } from '../errors.ts'
import { askAll, askHost, HOSTS, lenient, missingIn, onlyOf, type Hosts } from '../api/ask.ts'
import { operation, type Resource } from '../api/endpoint.ts'
import { COUNT, NUMBER, pageOf, TIME } from '../api/fields.ts'
import { fleetOf, type FleetDeck } from './api.ts'
import { CRASH_GROUP } from '../api/shapes.ts'
import type { CrashAction } from '../crashes/crashes.ts'
import type { AppFleet } from './app-fleet.ts'
import type { Person } from './rpc-client.ts'

/** Crash groups of several hosts as one list: the same fingerprint is the same fault. Times are by their own clocks. */
export type CrashOnHosts = CrashGroup & { members: NonNullable<CrashGroup['members']> }
export type FleetCrashes = { items: CrashOnHosts[], next: null, hosts: Hosts }
type CrashGroup = z.infer<typeof CRASH_GROUP_OF_HOSTS>
type Filter = { state?: 'open' | 'resolved' | 'muted', q?: string, release?: string, since?: number,
  fingerprint?: string }
type Sort = keyof typeof ORDERS

/** So many groups are asked of each host. */
export const MAX_GROUPS = 100
/** So many groups of all hosts are kept, those that crashed last. */
export const MAX_FOLDED = 1000
const WITHIN_MS = 3000

const NAME = z.string().regex(FINGERPRINT).meta({ description: 'the fingerprint of a group of crashes',
  examples: ['v1:0123456789abcdef0123456789abcdef'] })

export const CRASH_GROUP_OF_HOSTS = CRASH_GROUP.extend({
  members: z.array(
    z.strictObject({ member: z.string(), id: NUMBER.describe('the id of the group on that member'), count: COUNT,
      state: CRASH_GROUP.shape.state, lastSeenAt: TIME, lastRelease: CRASH_GROUP.shape.lastRelease })
  ).optional().describe('the members that have it; the rest is as on the one where it crashed last, and `count` of all')
}).meta({ id: 'ListedCrashGroup' })

/** Another version may know other kinds and causes. */
export const SAID = lenient(pageOf(CRASH_GROUP.extend({ fingerprint: NAME, kind: z.string(), cause: z.string() })),
  MAX_GROUPS) as z.ZodType<{ items: z.infer<typeof CRASH_GROUP>[], next: string | null }>

const ORDERS = Object.freeze({ last: ({ lastSeenAt }: CrashGroup) => lastSeenAt,
  count: ({ count }: CrashGroup) => count, first: ({ firstSeenAt }: CrashGroup) => firstSeenAt })

export type SettledFleetCrash = z.infer<typeof SETTLED>
const SETTLED = z.strictObject({ fingerprint: NAME, hosts: HOSTS,
  members: z.array(z.strictObject({ member: z.string(), id: NUMBER })).describe('members that had the group') }).meta({
    id: 'FleetCrashSettled'
  })

const ACTIONS: readonly [CrashAction, string][] = Object.freeze([['resolve',
  'Marks a group as resolved on all members'], ['mute', 'Mutes a group on all members: nobody is told of it any more'],
  ['reopen', 'Opens a group again on all members']])

/** How often groups were settled from here: what was listed before is old then. */
const SETTLED_TIMES: WeakMap<AppFleet, number> = new WeakMap()

export function settledTimes (fleet: AppFleet | null): number {
  return (fleet && SETTLED_TIMES.get(fleet)) ?? 0
}

export function fleetCrashResources ({ deck }: { deck: FleetDeck }): Record<string, Resource> {
  return Object.fromEntries(
    ACTIONS.map((
      [action, summary]
    ) => [`/fleet/crashes/:fingerprint/${action}`, {
      POST: operation({ name: `${action}FleetCrash`, summary, description: 'Only members that answer change the group.',
        role: 'operator', cli: `clusterdeck fleet ${action} v1:0123456789abcdef0123456789abcdef`,
        path: { fingerprint: NAME }, problems: ['no-fleet', 'not-found'], answer: SETTLED, form: { next: refuseSome },
        handle: async ({ params, auth }) => ({
          body: await settleCrash(fleetOf(deck), parseFingerprint(params.fingerprint), action, auth)
        }) })
    }])
  )
}

/** @throws {DeckError} no-fleet, fleet-away, not-found */
export async function fleetCrashes (deck: FleetDeck,
  { member, state, sort = 'last', limit = MAX_FOLDED, since, ...filter }: Filter & { member: string, sort?: Sort,
    limit?: number }, person: Person): Promise<FleetCrashes>
{
  const fleet = fleetOf(deck)
  const folded = createFold()
  const query = { ...filter, ...(since !== undefined && { since: new Date(since).toISOString() }) }
  const hosts = await askAll(await fleet.members(onlyOf(member)), async (name) => {
    const { items, next } = await groupsOf(fleet, name, query, person)
    folded.add(name, items)
    return next !== null
  })
  const orderOf = ORDERS[sort]
  const items = folded.items.filter((item) => !state || item.members.some((each) => each.state === state)).sort((one,
    other) => orderOf(one) === orderOf(other) ? 0 : orderOf(one) > orderOf(other) ? -1 : 1
  )
  return { items: items.slice(0, limit), next: null,
    hosts: { ...hosts, cut: [...new Set([...hosts.cut, ...folded.cut])].sort() } }
}

/**
 * Resolves, mutes or reopens the group on all members that answer.
 * @throws {DeckError} not-found
 */
async function settleCrash (fleet: AppFleet, fingerprint: string, action: CrashAction,
  person: Person): Promise<SettledFleetCrash>
{
  const members: SettledFleetCrash['members'] = []
  const hosts = await askAll(await fleet.members(), async (member) => {
    const group = (await groupsOf(fleet, member, { fingerprint }, person)).items.at(0)
    if (!group) return false
    await fleet.obtain(member, { method: 'POST', path: `/crashes/${group.id}/${action}` }, person, {
      withinMs: WITHIN_MS
    })
    members.push({ member, id: group.id })
    return false
  })
  SETTLED_TIMES.set(fleet, settledTimes(fleet) + 1)
  if (members.length === 0 && hosts.answered === hosts.asked)
    throw new DeckError('not-found', `No member of the fleet has a crash group ${fingerprint}`)
  return { fingerprint, hosts, members: members.sort((one, other) => one.member < other.member ? -1 : 1) }
}

function groupsOf (fleet: AppFleet, member: string, query: Record<string, string>, person: Person) {
  return askHost(fleet, member, { path: `/crashes?${new URLSearchParams({ limit: String(MAX_GROUPS), ...query })}`,
    answer: SAID, withinMs: WITHIN_MS }, person)
}

/** @throws {DeckError} not-possible: some members did not answer */
function refuseSome ({ hosts }: SettledFleetCrash) {
  const left = missingIn(hosts)
  if (left.length > 0)
    throw new DeckError('not-possible', `Done on the members that answered, but not on ${left.join(', ')}`)
  return null
}

/** @throws {DeckError} invalid-id */
function parseFingerprint (text: string) {
  if (FINGERPRINT.test(text)) return text
  throw new DeckError('invalid-id',
    `fingerprint: expected one such as v1:0123456789abcdef0123456789abcdef, received ${
      JSON.stringify(text.slice(0, 80))
    }`)
}

/** Takes the answers one by one and keeps of each group only the newest. */
export function createFold () {
  const byFingerprint: Map<string, CrashOnHosts> = new Map()
  const cut: Set<string> = new Set()

  return {
    /** The members that have more groups than are kept. */
    get cut (): string[] {
      return [...cut]
    },

    add (member: string, groups: z.infer<typeof CRASH_GROUP>[]) {
      for (const group of groups) {
        const { id, count, state, lastSeenAt, lastRelease } = group
        const known = byFingerprint.get(group.fingerprint)
        const members = known?.members ?? []
        members.push({ member, id, count, state, lastSeenAt, lastRelease })
        const [newest, older] = known && known.lastSeenAt >= lastSeenAt ? [known, group] : [group, known]
        byFingerprint.set(group.fingerprint, { ...newest, count: count + (known?.count ?? 0),
          firstSeenAt: older && older.firstSeenAt < newest.firstSeenAt ? older.firstSeenAt : newest.firstSeenAt,
          isNewInRelease: newest.isNewInRelease || (older?.isNewInRelease ?? false),
          hasReturned: newest.hasReturned || (older?.hasReturned ?? false), members })
      }
      if (byFingerprint.size > 2 * MAX_FOLDED) dropOldest()
    },

    /** Each is as the member has it where it crashed last. */
    get items (): CrashOnHosts[] {
      dropOldest()
      return Array.from(byFingerprint.values(),
        (group) => ({ ...group, members: group.members.toSorted((one, other) => one.member < other.member ? -1 : 1) }))
    }
  }

  function dropOldest () {
    if (byFingerprint.size <= MAX_FOLDED) return
    const newestFirst = [...byFingerprint.values()].sort((one, other) => one.lastSeenAt > other.lastSeenAt ? -1 : 1)
    for (const { fingerprint, members } of newestFirst.slice(MAX_FOLDED)) {
      byFingerprint.delete(fingerprint)
      for (const { member } of members) cut.add(member)
    }
  }
}
