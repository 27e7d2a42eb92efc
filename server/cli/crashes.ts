import { ID } from '../config/id.ts'
import { formatExactDuration } from '../../public/format.ts'
import { oneLine } from '../system/one-line.ts'
import { formatTable, linesOf } from './output.ts'
import { checkedWord, misuse, queryOf } from './usage.ts'
import type { CrashGroup, CrashGroupInFull } from '../api/crashes.ts'
import type { Context, TextOption } from './commands.ts'

const PAGE_LIMIT = 100
const FILTERS: readonly TextOption[] = ['state', 'q', 'release', 'since']
const STATES = ['open', 'resolved', 'muted']

/** Prints the crash groups, or one of them with its newest crash. */
export async function crashesCommand ({ api, options, answer }: Context, id?: string) {
  if (id !== undefined && !ID.test(id)) throw misuse('crashes', 'the id of a group', JSON.stringify(id))
  if (options.state !== undefined) checkedWord('--state', STATES, options.state)
  if (options.issue) {
    if (id === undefined) throw misuse('--issue', 'the id of a group')
    const issue = await api.get<{ title: string, body: string }>(`/crashes/${id}/issue`)
    return answer(issue, () => `# ${issue.title}\n\n${issue.body}`)
  }
  if (id !== undefined) {
    const group = await api.get<CrashGroupInFull>(`/crashes/${id}`)
    return answer(group, () => groupText(group))
  }
  const page = await api.get<{ items: CrashGroup[] }>(`/crashes?${queryOf(options, FILTERS, { limit: PAGE_LIMIT })}`)
  answer(page, () => page.items.length === 0 ? 'no crashes' : groupsText(page.items))
}

function groupsText (groups: CrashGroup[]) {
  return formatTable(['ID', 'STATE', 'COUNT', 'LAST SEEN', 'RELEASE', 'CAUSE', 'WHAT', 'WHERE'],
    groups.map((
      group
    ) => [group.id, stateOf(group), group.count, group.lastSeenAt, group.lastRelease, group.cause,
      shortenTitle(titleOf(group)), group.culprit]
    ), { right: [0, 2] })
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

function titleOf ({ errorName, message, kind }: CrashGroup) {
  return errorName === null ? message ?? kind : [errorName, message].filter(Boolean).join(': ')
}

function stateOf ({ state, hasReturned, isNewInRelease }: CrashGroup) {
  if (state === 'open' && hasReturned) return 'open (returned)'
  return state === 'open' && isNewInRelease ? 'open (new)' : state
}

function shortenTitle (text: string) {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}
