import { ID } from '../config/id.ts'
import { DeckError } from '../errors.ts'
import { formatExactDuration } from '../../public/format.ts'
import { oneLine } from '../system/one-line.ts'
import { listCommand, tableText } from './actions.ts'
import { formatTable, jsonText, linesOf, type Columns } from './output.ts'
import { checkedForm } from './usage.ts'
import type { CrashGroup, CrashGroupInFull } from '../api/crashes.ts'
import type { FleetCrashGroup, FleetCrashes, SettledFleetCrash } from '../api/fleet-crashes.ts'
import type { Context } from './commands.ts'

const PAGE_LIMIT = 100
const SETTLED = Object.freeze({ resolve: 'resolved', mute: 'muted', reopen: 'open' })
const FINGERPRINT = /^v\d{1,3}:[\da-f]{32}$/

const GROUPS: Columns<CrashGroup> = { ID: [true, 'id'], STATE: stateOf, COUNT: [true, 'count'],
  'LAST SEEN': 'lastSeenAt', RELEASE: 'lastRelease', CAUSE: 'cause', WHAT: (group) => shortenTitle(titleOf(group)),
  WHERE: 'culprit' }

/** Prints the crash groups, or one of them with its newest crash. */
export const crashesCommand = listCommand<CrashGroup, CrashGroupInFull>({ path: '/crashes',
  filters: ['state', 'q', 'release', 'since'], limit: PAGE_LIMIT, textOf: tableText(GROUPS, 'no crashes'),
  one: { form: ID, expected: 'the id of a group', textOf: groupText } })

function groupText (group: CrashGroupInFull) {
  const { latest } = group
  const facts = linesOf([['group', `${group.id}, ${stateOf(group)}`], ['what', titleOf(group)], ['where',
    group.culprit ?? '-'], ['cause', `${group.cause} (${group.kind})`], ['seen',
    `${group.count} times, first ${group.firstSeenAt}, last ${group.lastSeenAt}`], ['releases',
    group.releases.map(({ release, count }) => `${release} (${count})`).join(', ') || '-']], 10)
  return [facts, ...(latest ? sectionsOf(latest) : []).map((lines) => lines.join('\n'))].join('\n\n')
}

function sectionsOf (
  { at, worker, slot, uptimeMs, code, signal, stack, causes, requests, stderr }: NonNullable<CrashGroupInFull['latest']>
): string[][] {
  const how = signal ?? (code === null ? 'unknown' : `code ${code}`)
  const sections: [string, string[]][] = [[
    `newest: ${at}, worker ${worker} (slot ${slot}), up ${formatExactDuration(uptimeMs)}, ${how}`,
    String(stack ?? '').split('\n')
  ], ...causes.map((cause) => sectionOf(cause)), ['requests in flight',
    requests.map(({ method, path, ageMs }) => `${method} ${path} for ${formatExactDuration(ageMs)}`)], [
    'last lines of stderr',
    stderr
  ]]
  return sections.map((
    [title, lines]
  ) => [oneLine(title), ...lines.filter(Boolean).map((line) => `  ${oneLine(line)}`)]).filter((lines, index) =>
    index === 0 || lines.length > 1
  )
}

function sectionOf (
  { errorName, errorMessage, stack }: { errorName: string, errorMessage: string, stack: string | null }
): [title: string, lines: string[]] {
  return [`caused by ${errorName}: ${errorMessage}`, String(stack ?? '').split('\n').slice(1)]
}

function titleOf ({ errorName, message, kind }: Pick<FleetCrashGroup, 'errorName' | 'message' | 'kind'>) {
  return errorName === null ? message ?? kind : [errorName, message].filter(Boolean).join(': ')
}

function stateOf ({ state, hasReturned, isNewInRelease }: CrashGroup) {
  if (state === 'open' && hasReturned) return 'open (returned)'
  return state === 'open' && isNewInRelease ? 'open (new)' : state
}

function shortenTitle (text: string) {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}

/** Prints the crash groups of all members. */
export async function fleetCrashes ({ api, options, print, tell }: Context) {
  const found: FleetCrashes = await api.get('/fleet/crashes')
  if (options.json) return print(jsonText(found))
  tellAsked(found, tell)
  for (const member of found.cut) tell(`${oneLine(member)} has more groups than are shown`)
  print(found.items.length === 0 ? 'no crashes' : fleetGroupsText(found.items))
}

/** Makes the command that settles one group on all members that answer. */
export function settleFleetCrash (action: keyof typeof SETTLED) {
  return async ({ api, options, print, tell }: Context, text: string | undefined) => {
    const fingerprint = checkedForm(`fleet ${action}`, FINGERPRINT,
      'the fingerprint of a group, as "clusterdeck fleet crashes" prints it', text)
    const settled: SettledFleetCrash = await api.post(`/fleet/crashes/${fingerprint}/${action}`)
    if (options.json) print(jsonText(settled))
    else tellAsked(settled, tell)
    const left = [...settled.silent, ...settled.refused.map(({ member }) => member)]
    if (left.length > 0)
      throw new DeckError('not-possible',
        `${SETTLED[action]} on ${settled.members.length} members; unknown on ${left.join(', ')}`)
    if (!options.json) print(oneLine(`${SETTLED[action]} on ${settled.members.map(({ member }) => member).join(', ')}`))
  }
}

function fleetGroupsText (groups: FleetCrashGroup[]) {
  return formatTable(['STATE', 'COUNT', 'LAST SEEN', 'WHAT', 'WHERE', 'MEMBERS', 'FINGERPRINT'],
    groups.map((
      group
    ) => [group.state, group.count, group.lastSeenAt, shortenTitle(titleOf(group)), group.culprit,
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
