import { DeckError } from '../errors.ts'
import { oneLine } from '../system/one-line.ts'
import { formatTable, jsonText } from './output.ts'
import { misuse } from './usage.ts'
import type { Context } from './commands.ts'
import type { FleetCrashGroup, FleetCrashes, SettledFleetCrash } from '../api/fleet-crashes.ts'

const STATES = Object.freeze({ resolve: 'resolved', mute: 'muted', reopen: 'open' })
const FINGERPRINT = /^v\d{1,3}:[\da-f]{32}$/

/** Prints the crash groups of all members. */
export async function fleetCrashes ({ api, options, print, tell }: Context) {
  const found: FleetCrashes = await api.get('/fleet/crashes')
  if (options.json) return print(jsonText(found))
  tellAsked(found, tell)
  for (const member of found.cut) tell(`${oneLine(member)} has more groups than are shown`)
  print(found.items.length === 0 ? 'no crashes' : groupsText(found.items))
}

/** Makes the command that settles one group on all members that answer. */
export function settleFleetCrash (action: keyof typeof STATES) {
  return async ({ api, options, print, tell }: Context, text: string | undefined) => {
    const fingerprint = checkedFingerprint(action, text)
    const settled: SettledFleetCrash = await api.post(`/fleet/crashes/${fingerprint}/${action}`)
    if (options.json) print(jsonText(settled))
    else tellAsked(settled, tell)
    const left = [...settled.silent, ...settled.refused.map(({ member }) => member)]
    if (left.length > 0)
      throw new DeckError('not-possible',
        `${STATES[action]} on ${settled.members.length} members; unknown on ${left.join(', ')}`)
    if (!options.json) print(oneLine(`${STATES[action]} on ${settled.members.map(({ member }) => member).join(', ')}`))
  }
}

/** `action`: for the message @throws {DeckError} usage */
function checkedFingerprint (action: string, text: string | undefined): string {
  if (text !== undefined && FINGERPRINT.test(text)) return text
  const received = text === undefined ? 'nothing' : JSON.stringify(text)
  throw misuse(`fleet ${action}`, 'the fingerprint of a group, as "clusterdeck fleet crashes" prints it', received)
}

function groupsText (groups: FleetCrashGroup[]) {
  return formatTable(['STATE', 'COUNT', 'LAST SEEN', 'WHAT', 'WHERE', 'MEMBERS', 'FINGERPRINT'],
    groups.map((
      group
    ) => [group.state, group.count, group.lastSeenAt, titleOf(group), group.culprit,
      group.members.map(memberText).join(', '), group.fingerprint]
    ), { right: [1] })
}

export function tellAsked (
  { asked, answered, silent, refused }: Pick<FleetCrashes, 'asked' | 'answered' | 'silent' | 'refused'>,
  tell: (text: string) => void
) {
  if (answered < asked) tell(`${answered} of ${asked} answered`)
  if (silent.length > 0) tell(oneLine(`silent: ${silent.join(', ')}`))
  for (const { member, problem } of refused) tell(oneLine(`${member}: ${problem}`))
}

function memberText ({ member, count }: { member: string, count: number }) {
  return `${member} (${count})`
}

function titleOf ({ errorName, message, kind }: FleetCrashGroup) {
  const title = errorName === null ? message ?? kind : `${errorName}: ${message}`
  return title.length > 80 ? `${title.slice(0, 79)}…` : title
}
