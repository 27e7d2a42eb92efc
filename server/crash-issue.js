import os from 'node:os'
import { formatBytes, formatExactDuration } from '../public/format.js'
import { readable } from '../public/readable-text.js'

/**
 * A crash group as the text of an issue, for GitHub, GitLab, Gitea and others that read Markdown. What an app has thrown is hostile: it is in
 * blocks and spans of code, where it mentions nobody, links nowhere and shows no picture.
 * @typedef {Pick<import('../db/crash-groups.js').CrashGroup, 'id' | 'kind' | 'cause' | 'errorName' | 'message' | 'culprit' | 'count' | 'firstSeenAt' | 'lastSeenAt' | 'firstRelease' | 'lastRelease'>} Group
 * @typedef {import('../db/crashes.js').CrashRecord} Crash
 * @typedef {import('./crashes/source-lines.js').Lines} Lines
 * @typedef {{ title: string, body: string }} Issue
 */

const MAX_TITLE = 120
/** GitHub takes 65,536 characters. */
const MAX_BLOCK = 8000
const MAX_LINES = 20

/**
 * @param {Pick<import('./crashes/crashes.js').CrashService, 'find' | 'sourceLines'>} crashes
 * @param {number} id of a group @param {string} app
 * @param {Crash | null} [chosen]  one of its crashes; without it the newest
 * @returns {Issue} @throws {import('./errors.js').DeckError} not-found
 */
export function crashIssue (crashes, id, app, chosen) {
  const group = crashes.find(id)
  const crash = chosen ?? group.latest
  return issueOf(group, crash, { lines: crash ? crashes.sourceLines(crash) : [], host: os.hostname(), app })
}

/**
 * @param {Group} group @param {Crash | null} crash  one of its crashes; null: none is kept
 * @param {{ lines: (Lines | null)[], host: string, app: string }} about  `lines`: around each frame
 * @returns {Issue}
 */
export function issueOf (group, crash, { lines, host, app }) {
  const sections = [
    block('', titleOf(group, 2000)),
    seenText(group),
    ...(crash ? [sourceOf(crash, lines), ...evidenceOf(crash)] : []),
    factsOf(group, crash, { host, app })
  ]
  return { title: titleOf(group, MAX_TITLE), body: `${sections.filter((section) => section !== '').join('\n\n')}\n` }
}

/** @param {Group} group @param {number} maxChars */
function titleOf ({ errorName, message, kind, culprit }, maxChars) {
  const what = errorName === null ? message ?? kind : [errorName, message].filter(Boolean).join(': ')
  const title = readable(`${what}${culprit ? `, in ${culprit}` : ''}`).replace(/\s+/g, ' ').trim()
  return title.length <= maxChars ? title : `${title.slice(0, maxChars - 1)}…`
}

/** @param {Group} group */
function seenText ({ count, firstSeenAt, lastSeenAt, firstRelease, lastRelease }) {
  if (count === 1) return `Seen once, at ${firstSeenAt}${inRelease(firstRelease)}.`
  return `Seen ${count} times, first at ${firstSeenAt}${inRelease(firstRelease)}, last at ${lastSeenAt}${inRelease(lastRelease)}.`
}

/** @param {string | null} release */
function inRelease (release) {
  return release === null ? '' : ` in ${span(release)}`
}

/** The lines around the innermost frame of the app. @param {Crash} crash @param {(Lines | null)[]} lines */
function sourceOf ({ frames }, lines) {
  const index = frames.findIndex(({ isInApp }, at) => isInApp && lines[at])
  if (index === -1) return ''
  const { function: name, file, line } = frames[index]
  const shown = (lines[index] ?? []).map(({ number, text }) => `${number === line ? '>' : ' '} ${String(number).padStart(5)}  ${text}`)
  return block(`${span(`${file}:${line}`)}${name === null ? '' : ` in ${span(name)}`}`, shown.join('\n'))
}

/** @param {Crash} crash */
function evidenceOf ({ stack, causes, requests, stderr }) {
  return [
    block('### Stack', stack),
    ...causes.map(({ errorName, errorMessage, stack }) => block('### Caused by', stack ?? `${errorName}: ${errorMessage}`)),
    block('### Requests in flight', requests.map(({ method, path, ageMs }) => `${method} ${path} for ${formatExactDuration(ageMs)}`).join('\n')),
    block('### Last lines of stderr', stderr.slice(-MAX_LINES).join('\n'))
  ]
}

/** @param {Group} group @param {Crash | null} crash @param {{ host: string, app: string }} place */
function factsOf ({ id, kind, cause }, crash, { host, app }) {
  const { release, nodeVersion, uptimeMs = null, code, signal, memory } = crash ?? {}
  /** @type {[string, string | null | undefined][]} */
  const rows = [
    ['Cause', cause === kind ? cause : `${cause}, ${kind}`],
    ['App', app],
    ['Host', host],
    ['Release', release],
    ['Node.js', nodeVersion],
    ['Lived for', uptimeMs === null ? null : formatExactDuration(uptimeMs)],
    ['Exit', signal ?? (code == null ? null : `code ${code}`)],
    ['Memory', memory?.rssBytes ? formatBytes(memory.rssBytes) : null],
    ['Crash group', `${id} of clusterdeck`]
  ]
  return ['### Facts', '', ...rows.flatMap(([name, value]) => value ? [`- ${name}: ${span(value)}`] : [])].join('\n')
}

/** @param {string} title @param {string | null} text @returns {string} nothing where there is no text */
function block (title, text) {
  const shown = readable(text).trimEnd()
  if (shown === '') return ''
  const fence = '`'.repeat(Math.max(3, longestRun(shown) + 1))
  const cut = shown.length <= MAX_BLOCK ? shown : `${shown.slice(0, MAX_BLOCK)}\n…`
  return `${title}${title && '\n\n'}${fence}text\n${cut}\n${fence}`
}

/** @param {string} text */
function span (text) {
  const shown = readable(text).replace(/\s+/g, ' ').trim().slice(0, 300)
  const ticks = '`'.repeat(longestRun(shown) + 1)
  return ticks.length === 1 ? `\`${shown}\`` : `${ticks} ${shown} ${ticks}`
}

/** Of backticks, which would end what is in as many. @param {string} text */
function longestRun (text) {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map(({ length }) => length))
}
