import { DeckError } from '../errors.js'
import { askAll } from './ask-all.js'
import { createFold, MAX_GROUPS, pageOf } from './crash-groups.js'

/**
 * Asks all members that have an app for its crashes, many at once, and says how many answered. This host answers itself without NATS.
 * @typedef {import('../crashes/crashes.js').CrashAction} CrashAction
 * @typedef {import('./rpc-client.js').Person} Person
 * @typedef {{ state?: 'open' | 'resolved' | 'muted', q?: string, since?: number }} Filter `state`: on at least one member; `since`: ms since the epoch
 * @typedef {import('./ask-all.js').Asked} Asked
 * @typedef {Asked & { cut: string[], items: import('./crash-groups.js').FleetGroup[] }} FleetCrashes `cut`: those that have more groups than are asked for
 * @typedef {Asked & { fingerprint: string, members: { member: string, id: number }[] }} Settled `members`: those that had the group
 */

const WITHIN = Object.freeze({ withinMs: 3000 })

/**
 * @param {object} parts
 * @param {import('./app-fleet.js').AppFleet['obtain']} parts.obtain
 * @param {() => Promise<{ member: string }[]>} parts.members
 */
export function createFleetCrashes ({ obtain, members }) {
  return {
    /** @param {Filter} filter @param {Person} person @returns {Promise<FleetCrashes>} */
    async list ({ state, q, since }, person) {
      const folded = createFold()
      const { values, ...asked } = await askAll(await members(), async (member) => {
        const query = { ...(q !== undefined && { q }), ...(since !== undefined && { since: new Date(since).toISOString() }) }
        const { items, next } = await groupsOf(member, query, person)
        folded.add(member, items)
        return next !== null
      })
      const { items } = folded
      return {
        ...asked,
        cut: Array.from(new Set([...values.filter(({ value }) => value).map(({ member }) => member), ...folded.cut])).sort(),
        items: state === undefined ? items : items.filter((item) => item.members.some((each) => each.state === state))
      }
    },

    /**
     * Resolves, mutes or reopens the group on all members that answer.
     * @param {string} fingerprint @param {CrashAction} action @param {Person} person @returns {Promise<Settled>}
     * @throws {DeckError} not-found
     */
    async settle (fingerprint, action, person) {
      const { values, ...asked } = await askAll(await members(), async (member) => {
        const group = (await groupsOf(member, { fingerprint }, person)).items.at(0)
        if (group === undefined) return null
        await obtain(member, { method: 'POST', path: `/crashes/${group.id}/${action}` }, person, WITHIN)
        return group.id
      })
      const reached = values.flatMap(({ member, value }) => value === null ? [] : [{ member, id: value }])
      if (reached.length === 0 && asked.answered === asked.asked) throw new DeckError('not-found', `No member of the fleet has a crash group ${fingerprint}`)
      return { fingerprint, ...asked, members: reached }
    }
  }

  /** @param {string} member @param {Record<string, string>} query @param {Person} person */
  async function groupsOf (member, query, person) {
    const path = `/crashes?${new URLSearchParams({ limit: String(MAX_GROUPS), ...query })}`
    const page = pageOf(await obtain(member, { method: 'GET', path }, person, WITHIN))
    if (!page) throw new DeckError('not-possible', `${member} sent a list of crashes that this version cannot read`)
    return page
  }
}
