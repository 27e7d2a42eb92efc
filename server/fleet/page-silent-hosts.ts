import { mayUse } from '../api/roles.ts'
import { lastKnownText } from '../words/last-known.ts'
import type { AppFleet } from './app-fleet.ts'
import type { Fleet } from './fleet.ts'
import type { Powers } from '../dashboard/powers.ts'

/** The hosts of the fleet that are silent: a badge in the top bar and a line on the overview. */
type SilentHost = { member: string, heardAt: string, text: string, url: string }

/** More lines would push the page away. */
const MOST_LINES = 3

/** `fleet`: of an app */
export function silentForApp (fleet: Pick<AppFleet, 'silences'> | null): SilentHost[] {
  return (fleet?.silences() ?? []).map((member) => ({ member: member.member, heardAt: timeOf(member.heardAt),
    text: lastKnownText([member]), url: `/fleet/members/${member.member}` })
  )
}

/** `fleet`: of a host */
export function silentForHost (fleet: Pick<Fleet, 'silences'> | null, can?: Powers): SilentHost[] {
  return (fleet?.silences() ?? []).flatMap(({ host: { member, apps }, heardAt }) => {
    const visible = apps.filter(({ app }) => mayUse(can ?? {}, app))
    return can?.apps && visible.length === 0
      ? []
      : [{ member, heardAt: timeOf(heardAt), text: lastKnownText(visible), url: `/fleet#host-${member}` }]
  })
}

export function silentLines (hosts: SilentHost[]): { hosts: SilentHost[], more: number } {
  return { hosts: hosts.slice(0, MOST_LINES), more: Math.max(0, hosts.length - MOST_LINES) }
}

/** @returns ISO 8601; the same each time */
function timeOf (monotonicMs: number): string {
  return new Date(performance.timeOrigin + monotonicMs).toISOString()
}
