import { z } from 'zod'
import { isoTime } from './untrusted-json.ts'

// Folds the crash groups of several decks into one list: the same fingerprint is the same fault.

/** As a member reports it. */
export type Group = z.infer<typeof GROUP>
export type FleetGroup = ReturnType<typeof createFold>['items'][number]
type GroupOfMember =
  & { member: string }
  & Pick<Group, 'id' | 'count' | 'state' | 'lastSeenAt' | 'lastRelease'>

/** So many groups are asked of each member. */
export const MAX_GROUPS = 100
/** So many groups of all members are kept, those that crashed last. */
export const MAX_FOLDED = 1000
const FINGERPRINT = /^v\d{1,3}:[\da-f]{32}$/
const MIXED = 'mixed'

/** Longer texts are cut, not refused: another version may allow more. */
const text = (chars: number) => z.string().transform((all) => all.length > chars ? copyOf(all.slice(0, chars)) : all)
const id = z.int().min(1)

const GROUP = z.object({ id, fingerprint: z.string().regex(FINGERPRINT), state: z.enum(['open', 'resolved', 'muted']),
  kind: text(60), cause: text(60), errorName: text(500).nullable(), message: text(4000).nullable(),
  culprit: text(2000).nullable(), firstSeenAt: isoTime, lastSeenAt: isoTime, count: z.int().min(0).max(1e12),
  lastRelease: text(50).nullable(), hasReturned: z.boolean(), isNewInRelease: z.boolean() })

const PAGE = z.object({ items: z.array(GROUP).max(MAX_GROUPS), next: z.string().nullable() })

/** A substring would keep the whole text in memory. */
function copyOf (text: string) {
  return Buffer.from(text).toString()
}

/** Null: it is no list of groups */
export function pageOf (answer: unknown): z.infer<typeof PAGE> | null {
  return PAGE.safeParse(answer).data ?? null
}

/** Takes the answers one by one and keeps of each group only the newest. Times are by the clocks of the hosts. */
export function createFold () {
  const byFingerprint: Map<string,
    { newest: Group, isNewInRelease: boolean, hasReturned: boolean, firstSeenAt: string, members: GroupOfMember[] }> =
      new Map()
  const cut: Set<string> = new Set()

  return {
    /** The members that have more groups than are kept. */
    get cut (): string[] {
      return Array.from(cut)
    },

    add (member: string, groups: Group[]) {
      for (const group of groups) {
        const { id, fingerprint, count, state, lastSeenAt, lastRelease, firstSeenAt } = group
        const known = byFingerprint.get(fingerprint)
        const members = known?.members ?? []
        members.push({ member, id, count, state, lastSeenAt, lastRelease })
        byFingerprint.set(fingerprint, { newest: known && known.newest.lastSeenAt >= lastSeenAt ? known.newest : group,
          firstSeenAt: known && known.firstSeenAt < firstSeenAt ? known.firstSeenAt : firstSeenAt,
          isNewInRelease: group.isNewInRelease || known?.isNewInRelease === true,
          hasReturned: group.hasReturned || known?.hasReturned === true, members })
      }
      if (byFingerprint.size > 2 * MAX_FOLDED) dropOldest()
    },

    /** @returns the last to crash first; its texts are those of the member that crashed last */
    get items () {
      dropOldest()
      return sortedGroups().map(([fingerprint, { newest, firstSeenAt, isNewInRelease, hasReturned, members }]) => ({
        fingerprint,
        state: members.every(({ state }) => state === members[0].state) ? members[0].state : MIXED,
        kind: newest.kind,
        cause: newest.cause,
        errorName: newest.errorName,
        message: newest.message,
        culprit: newest.culprit,
        count: members.reduce((total, { count }) => total + count, 0),
        firstSeenAt,
        lastSeenAt: newest.lastSeenAt,
        isNewInRelease,
        hasReturned,
        members: members.toSorted((one, other) => one.member < other.member ? -1 : 1)
      }))
    }
  }

  function sortedGroups () {
    return Array.from(byFingerprint).sort(([, { newest: one }], [, { newest: other }]) => {
      if (one.lastSeenAt === other.lastSeenAt) return 0
      return one.lastSeenAt > other.lastSeenAt ? -1 : 1
    })
  }

  function dropOldest () {
    if (byFingerprint.size <= MAX_FOLDED) return
    for (const [fingerprint, { members }] of sortedGroups().slice(MAX_FOLDED)) {
      byFingerprint.delete(fingerprint)
      for (const { member } of members) cut.add(member)
    }
  }
}
