import { mayUse } from '../api/roles.js'
import { lastKnownText } from '../last-known.js'

/**
 * The hosts of the fleet that are silent: a badge in the top bar and a line on the overview.
 * @typedef {{ member: string, heardAt: string, text: string, url: string }} SilentHost
 */

/** More lines would push the page away. */
const MOST_LINES = 3

/** @param {Pick<import('../fleet/app-fleet.js').AppFleet, 'silences'> | null} fleet  of an app @returns {SilentHost[]} */
export function silentForApp (fleet) {
  return (fleet?.silences() ?? []).map((member) => ({ member: member.member, heardAt: timeOf(member.heardAt), text: lastKnownText([member]), url: `/fleet/members/${member.member}` }))
}

/** @param {Pick<import('../fleet/fleet.js').Fleet, 'silences'> | null} fleet  of a host @param {import('./powers.js').Powers} [can] @returns {SilentHost[]} */
export function silentForHost (fleet, can) {
  return (fleet?.silences() ?? []).flatMap(({ host: { member, apps }, heardAt }) => {
    const visible = apps.filter(({ app }) => mayUse(can ?? {}, app))
    return can?.apps && visible.length === 0 ? [] : [{ member, heardAt: timeOf(heardAt), text: lastKnownText(visible), url: `/fleet#host-${member}` }]
  })
}

/** @param {SilentHost[]} hosts @returns {{ hosts: SilentHost[], more: number }} */
export function silentLines (hosts) {
  return { hosts: hosts.slice(0, MOST_LINES), more: Math.max(0, hosts.length - MOST_LINES) }
}

/** @param {number} monotonicMs @returns {string} ISO 8601; the same each time */
function timeOf (monotonicMs) {
  return new Date(performance.timeOrigin + monotonicMs).toISOString()
}
