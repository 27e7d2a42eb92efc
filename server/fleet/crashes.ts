import { DeckError } from '../errors.ts'
import { askAll, type Asked } from './ask-all.ts'
import { createFold, MAX_GROUPS, pageOf, type FleetGroup } from './crash-groups.ts'
import type { CrashAction } from '../crashes/crashes.ts'
import type { Person } from './rpc-client.ts'
import type { AppFleet } from './app-fleet.ts'

/**
 * Asks all members that have an app for its crashes, many at once, and says how many answered. This host answers itself
 * without NATS.
 */
/** `state`: on at least one member; `since`: ms since the epoch */
type Filter = { state?: 'open' | 'resolved' | 'muted', q?: string, since?: number }
/** `cut`: those that have more groups than are asked for */
export type FleetCrashes =
  & Asked
  & { cut: string[], items: FleetGroup[] }
/** `members`: those that had the group */
type Settled = Asked & { fingerprint: string, members: { member: string, id: number }[] }

const WITHIN = Object.freeze({ withinMs: 3000 })

export function createFleetCrashes (
  { obtain, members }: { obtain: AppFleet['obtain'], members: () => Promise<{ member: string }[]> }
) {
  let settled = 0
  return {
    /** @returns how often groups were settled from here: what was listed before is old then */
    settledTimes: () => settled,

    async list ({ state, q, since }: Filter, person: Person): Promise<FleetCrashes> {
      const folded = createFold()
      const { values, ...asked } = await askAll(await members(), async (member) => {
        const query = { ...(q !== undefined && { q }),
          ...(since !== undefined && { since: new Date(since).toISOString() }) }
        const { items, next } = await groupsOf(member, query, person)
        folded.add(member, items)
        return next !== null
      })
      const { items } = folded
      return { ...asked,
        cut: Array.from(new Set([...values.filter(({ value }) => value).map(({ member }) => member), ...folded.cut]))
          .sort(),
        items: state === undefined ? items : items.filter((item) => item.members.some((each) => each.state === state)) }
    },

    /**
     * Resolves, mutes or reopens the group on all members that answer.
     * @throws {DeckError} not-found
     */
    async settle (fingerprint: string, action: CrashAction, person: Person): Promise<Settled> {
      const { values, ...asked } = await askAll(await members(), async (member) => {
        const group = (await groupsOf(member, { fingerprint }, person)).items.at(0)
        if (group === undefined) return null
        await obtain(member, { method: 'POST', path: `/crashes/${group.id}/${action}` }, person, WITHIN)
        return group.id
      })
      settled++
      const reached = values.flatMap(({ member, value }) => value === null ? [] : [{ member, id: value }])
      if (reached.length === 0 && asked.answered === asked.asked)
        throw new DeckError('not-found', `No member of the fleet has a crash group ${fingerprint}`)
      return { fingerprint, ...asked, members: reached }
    }
  }

  async function groupsOf (member: string, query: Record<string, string>, person: Person) {
    const path = `/crashes?${new URLSearchParams({ limit: String(MAX_GROUPS), ...query })}`
    const page = pageOf(await obtain(member, { method: 'GET', path }, person, WITHIN))
    if (!page) throw new DeckError('not-possible', `${member} sent a list of crashes that this version cannot read`)
    return page
  }
}
