import os from 'node:os'
import { formatBytes, formatExactDuration } from '../public/format.ts'
import { readable } from '../public/readable-text.ts'
import type { CrashRecord as Crash } from '../db/crashes.ts'
import type { Lines } from './crashes/source-lines.ts'
import type { CrashGroup } from '../db/crash-groups.ts'
import type { CrashService } from './crashes/crashes.ts'

/**
 * A crash group as the text of an issue, for GitHub, GitLab, Gitea and others that read Markdown. What an app has
 * thrown is hostile: it is in blocks and spans of code, where it mentions nobody, links nowhere and shows no picture.
 */
type Group = Pick<CrashGroup,
  'id' | 'kind' | 'cause' | 'errorName' | 'message' | 'culprit' | 'count' | 'firstSeenAt' | 'lastSeenAt'
    | 'firstRelease' | 'lastRelease'>
type Issue = { title: string, body: string }

const MAX_TITLE = 120
/** GitHub takes 65,536 characters. */
const MAX_BLOCK = 8000
const MAX_LINES = 20

/**
 * `id`: of a group; `chosen`: one of its crashes; without it the newest.
 * @throws {import('./errors.ts').DeckError} not-found
 */
export function crashIssue (crashes: Pick<CrashService, 'find' | 'sourceLines'>, id: number, app: string,
  chosen?: Crash | null): Issue
{
  const group = crashes.find(id)
  const crash = chosen ?? group.latest
  return issueOf(group, crash, { lines: crash ? crashes.sourceLines(crash) : [], host: os.hostname(), app })
}

/** `crash`: one of its crashes; null: none is kept; `lines`: around each frame */
export function issueOf (group: Group, crash: Crash | null,
  { lines, host, app }: { lines: (Lines | null)[], host: string, app: string }): Issue
{
  const sections = [block('', titleOf(group, 2000)), seenText(group),
    ...(crash ? [sourceOf(crash, lines), ...evidenceOf(crash)] : []), factsOf(group, crash, { host, app })]
  return { title: titleOf(group, MAX_TITLE), body: `${sections.filter((section) => section !== '').join('\n\n')}\n` }
}

function titleOf ({ errorName, message, kind, culprit }: Group, maxChars: number) {
  const what = errorName === null ? message ?? kind : [errorName, message].filter(Boolean).join(': ')
  const title = readable(`${what}${culprit ? `, in ${culprit}` : ''}`).replace(/\s+/g, ' ').trim()
  return title.length <= maxChars ? title : `${title.slice(0, maxChars - 1)}…`
}

function seenText ({ count, firstSeenAt, lastSeenAt, firstRelease, lastRelease }: Group) {
  if (count === 1) return `Seen once, at ${firstSeenAt}${inRelease(firstRelease)}.`
  return `Seen ${count} times, first at ${firstSeenAt}${inRelease(firstRelease)}, last at ${lastSeenAt}${
    inRelease(lastRelease)
  }.`
}

function inRelease (release: string | null) {
  return release === null ? '' : ` in ${span(release)}`
}

/** The lines around the innermost frame of the app. */
function sourceOf ({ frames }: Crash, lines: (Lines | null)[]) {
  const index = frames.findIndex(({ isInApp }, at) => isInApp && lines[at])
  if (index === -1) return ''
  const { function: name, file, line } = frames[index]
  const shown = (lines[index] ?? []).map(({ number, text }) =>
    `${number === line ? '>' : ' '} ${String(number).padStart(5)}  ${text}`
  )
  return block(`${span(`${file}:${line}`)}${name === null ? '' : ` in ${span(name)}`}`, shown.join('\n'))
}

function evidenceOf ({ stack, causes, requests, stderr }: Crash) {
  return [block('### Stack', stack),
    ...causes.map(({ errorName, errorMessage, stack }) =>
      block('### Caused by', stack ?? `${errorName}: ${errorMessage}`)
    ),
    block('### Requests in flight',
      requests.map(({ method, path, ageMs }) => `${method} ${path} for ${formatExactDuration(ageMs)}`).join('\n')),
    block('### Last lines of stderr', stderr.slice(-MAX_LINES).join('\n'))]
}

function factsOf ({ id, kind, cause }: Group, crash: Crash | null, { host, app }: { host: string, app: string }) {
  const { release, nodeVersion, uptimeMs = null, code, signal, memory } = crash ?? {}
  const rows: [string, string | null | undefined][] = [['Cause', cause === kind ? cause : `${cause}, ${kind}`], ['App',
    app], ['Host', host], ['Release', release], ['Node.js', nodeVersion], ['Lived for',
    uptimeMs === null ? null : formatExactDuration(uptimeMs)], ['Exit',
    signal ?? (code == null ? null : `code ${code}`)], ['Memory',
    memory?.rssBytes ? formatBytes(memory.rssBytes) : null], ['Crash group', `${id} of clusterdeck`]]
  return ['### Facts', '', ...rows.flatMap(([name, value]) => value ? [`- ${name}: ${span(value)}`] : [])].join('\n')
}

/** @returns nothing where there is no text */
function block (title: string, text: string | null): string {
  const shown = readable(text).trimEnd()
  if (shown === '') return ''
  const fence = '`'.repeat(Math.max(3, longestRun(shown) + 1))
  const cut = shown.length <= MAX_BLOCK ? shown : `${shown.slice(0, MAX_BLOCK)}\n…`
  return `${title}${title && '\n\n'}${fence}text\n${cut}\n${fence}`
}

function span (text: string) {
  const shown = readable(text).replace(/\s+/g, ' ').trim().slice(0, 300)
  const ticks = '`'.repeat(longestRun(shown) + 1)
  return ticks.length === 1 ? `\`${shown}\`` : `${ticks} ${shown} ${ticks}`
}

/** Of backticks, which would end what is in as many. */
function longestRun (text: string) {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map(({ length }) => length))
}
