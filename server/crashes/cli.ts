import { ID } from '../config/id.ts'
import { formatExactDuration } from '../../public/format.ts'
import { oneLine } from '../system/one-line.ts'
import { tellHosts } from '../fleet/cli-hosts.ts'
import { listCommand, tableText } from '../cli/actions.ts'
import { linesOf, type Columns } from '../cli/output.ts'
import { membersMeant, misuse, queryOf } from '../cli/usage.ts'
import type { CrashGroup, CrashGroupInFull } from './api.ts'
import type { CrashOnHosts, FleetCrashes } from '../fleet/api-crashes.ts'
import type { Context, TextOption } from '../cli/commands.ts'

const PAGE_LIMIT = 100

const FILTERS: readonly TextOption[] = ['state', 'q', 'release', 'since']

const GROUPS: Columns<CrashGroup> = { ID: [true, 'id'], STATE: stateOf, COUNT: [true, 'count'],
  'LAST SEEN': 'lastSeenAt', RELEASE: 'lastRelease', CAUSE: 'cause', WHAT: (group) => shortenTitle(titleOf(group)),
  WHERE: 'culprit' }
const GROUPS_OF_HOSTS: Columns<CrashOnHosts> = {
  STATE: ({ state, members }) => members.every((each) => each.state === state) ? state : 'mixed',
  COUNT: [true, 'count'],
  'LAST SEEN': 'lastSeenAt',
  WHAT: GROUPS.WHAT,
  WHERE: 'culprit',
  MEMBERS: ({ members }) => members.map(({ member, count }) => `${member} (${count})`).join(', '),
  FINGERPRINT: 'fingerprint'
}

const groupsOfHostsText = tableText(GROUPS_OF_HOSTS, 'no crashes')

/** Prints the crash groups, of all hosts too, or one of them with its newest crash. */
export async function crashesCommand (context: Context, id?: string | string[]) {
  await (context.options.allHosts ? printGroupsOfHosts(context, id) : printGroups(context, id))
}

const printGroups = listCommand<CrashGroup, CrashGroupInFull>({ path: '/crashes', filters: FILTERS, limit: PAGE_LIMIT,
  textOf: tableText(GROUPS, 'no crashes'), one: { form: ID, expected: 'the id of a group', textOf: groupText } })

async function printGroupsOfHosts ({ api, options, answer, tell }: Context, id?: string | string[]) {
  if (typeof id === 'string') throw misuse('--all-hosts', 'without the id of a group', 'both')
  const found: FleetCrashes = await api.get(`/crashes?${queryOf(options, FILTERS, membersMeant(options))}`)
  tellHosts(found.hosts, { tell, cutText: 'has more groups than are shown' })
  answer(found, () => groupsOfHostsText(found))
}

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
    requests.map(({ method, path, ageMs, isHanging }) =>
      `${method} ${path} for ${formatExactDuration(ageMs)}${isHanging ? ', hung in it' : ''}`
    )], ['last lines of stderr', stderr]]
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

function titleOf ({ errorName, message, kind }: Pick<CrashGroup, 'errorName' | 'message' | 'kind'>) {
  return errorName === null ? message ?? kind : [errorName, message].filter(Boolean).join(': ')
}

function stateOf ({ state, hasReturned, isNewInRelease }: CrashGroup) {
  if (state === 'open' && hasReturned) return 'open (returned)'
  return state === 'open' && isNewInRelease ? 'open (new)' : state
}

function shortenTitle (text: string) {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}
