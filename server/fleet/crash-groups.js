import { z } from 'zod'

/**
 * The crash groups of several decks as one list: what has the same fingerprint is the same fault.
 * @typedef {z.infer<typeof GROUP>} Group  as a member tells of it
 * @typedef {ReturnType<typeof fold>[number]} FleetGroup
 */

/** Asked for at most, of each member. */
export const MAX_GROUPS = 100
const FINGERPRINT = /^v\d{1,3}:[\da-f]{32}$/

/** Cut, not refused: how long it is on another version is no reason to hear nothing of it. */
const text = (/** @type {number} */ chars) => z.string().transform((all) => all.slice(0, chars))
const time = z.string().regex(/^\d{4}-\d\d-\d\dT[\d:.]{8,15}Z$/)
const id = z.int().min(1)

const GROUP = z.object({
  id,
  fingerprint: z.string().regex(FINGERPRINT),
  state: z.enum(['open', 'resolved', 'muted']),
  kind: text(60),
  cause: text(60),
  errorName: text(500).nullable(),
  message: text(4000).nullable(),
  culprit: text(2000).nullable(),
  firstSeenAt: time,
  lastSeenAt: time,
  count: z.int().min(0).max(1e12),
  lastRelease: text(50).nullable(),
  hasReturned: z.boolean(),
  isNewInRelease: z.boolean()
})

const PAGE = z.object({ items: z.array(GROUP).max(MAX_GROUPS), next: z.string().nullable() })

/** @param {unknown} answer @returns {z.infer<typeof PAGE> | null} null: it is no list of groups */
export function pageOf (answer) {
  return PAGE.safeParse(answer).data ?? null
}

/**
 * @param {{ member: string, groups: Group[] }[]} answers
 * @returns the last to crash first, by the clocks of the hosts; what is said of a group is what the last one to crash says
 */
export function fold (answers) {
  /** @type {Map<string, { member: string, group: Group }[]>} */
  const byFingerprint = new Map()
  for (const { member, groups } of answers) {
    for (const group of groups) {
      const known = byFingerprint.get(group.fingerprint)
      if (known) known.push({ member, group })
      else byFingerprint.set(group.fingerprint, [{ member, group }])
    }
  }
  return Array.from(byFingerprint.values(), toOne).sort((one, other) => one.lastSeenAt > other.lastSeenAt ? -1 : one.lastSeenAt < other.lastSeenAt ? 1 : 0)
}

/** @param {{ member: string, group: Group }[]} found at least one */
function toOne (found) {
  const groups = found.map(({ group }) => group)
  const { fingerprint, kind, cause, errorName, message, culprit, lastSeenAt } = groups.reduce((newest, each) => each.lastSeenAt > newest.lastSeenAt ? each : newest)
  return {
    fingerprint,
    state: groups.every(({ state }) => state === groups[0].state) ? groups[0].state : /** @type {const} */ ('mixed'),
    kind,
    cause,
    errorName,
    message,
    culprit,
    count: groups.reduce((total, { count }) => total + count, 0),
    firstSeenAt: groups.reduce((first, each) => each.firstSeenAt < first ? each.firstSeenAt : first, groups[0].firstSeenAt),
    lastSeenAt,
    isNewInRelease: groups.some(({ isNewInRelease }) => isNewInRelease),
    hasReturned: groups.some(({ hasReturned }) => hasReturned),
    members: found.map(({ member, group: { id, count, state, lastSeenAt, lastRelease } }) => ({ member, id, count, state, lastSeenAt, lastRelease })).sort((one, other) => one.member < other.member ? -1 : 1)
  }
}
