import { summaryOf, type Summary } from './api.ts'
import type { AppFleet as Fleet } from './app-fleet.ts'
import type { Member } from './presence.ts'

/**
 * What pages about the fleet remember between two renderings: when each member was last heard, and the rollouts before the
 * current one.
 */
export type Observations = ReturnType<typeof createObservations>

/** An age is exact to the millisecond but comes from another clock, so small changes are ignored. */
const SAME_WITHIN_MS = 2000
/** Past rollouts come over the network, so an empty list is not asked for again sooner. */
const PAST_RETRY_MS = 60_000

const OBSERVATIONS: WeakMap<Fleet, Observations> = new WeakMap()

export function observationsOf (fleet: Fleet): Observations {
  const observations = OBSERVATIONS.get(fleet) ?? createObservations(fleet)
  OBSERVATIONS.set(fleet, observations)
  return observations
}

export function createObservations (fleet: Pick<Fleet, 'past'>) {
  /** by member; wall time, ms */
  const known: Map<string, number> = new Map()
  let past: { id: number | null, at: number, coming: Promise<Summary[]>, rollouts: Summary[] } | null = null

  return {
    /** `now`: wall time, ms */
    note (members: Member[], now: number) {
      const names = new Set(members.map(({ member }) => member))
      for (const name of known.keys()) if (!names.has(name)) known.delete(name)
      for (const { member, ageMs } of members) {
        const heardAt = now - ageMs
        if (Math.abs((known.get(member) ?? 0) - heardAt) > SAME_WITHIN_MS) known.set(member, heardAt)
      }
    },

    /** @returns when it was last heard, ISO 8601; small deviations are left out */
    heardAt: (member: string): string => new Date(known.get(member) ?? 0).toISOString(),

    /**
     * Lists the rollouts before the current one that are known now. They do not change. `id`: of the current one;
     * `now`: wall time, ms.
     * @returns newest first
     */
    past (id: number | null, now: number): Summary[] {
      askForPast(id, now)
      return past?.rollouts ?? []
    },

    /** The same, but waits for the answer. */
    pastOf: (id: number | null, now: number): Promise<Summary[]> => askForPast(id, now)
  }

  function askForPast (id: number | null, now: number) {
    if (past && past.id === id && (past.rollouts.length > 0 || now - past.at < PAST_RETRY_MS)) return past.coming
    const asked = { id, at: now, coming: fetchPast(), rollouts: past?.rollouts ?? [] }
    past = asked
    return asked.coming

    async function fetchPast () {
      const rollouts = (await fleet.past().catch(() => [])).filter((each) => each.id !== id).map(summaryOf)
      asked.rollouts = rollouts
      return rollouts
    }
  }
}
