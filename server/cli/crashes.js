import { ID } from '../config/id.js'
import { DeckError } from '../errors.js'
import { formatExactDuration } from '../../public/format.js'
import { oneLine } from '../system/one-line.js'
import { table } from './output.js'

const PAGE_LIMIT = 100
const STATES = Object.freeze(['open', 'resolved', 'muted'])

/**
 * The groups, or one of them with its newest crash.
 * @param {import('./commands.js').Context} context @param {string} [id]
 */
export async function crashes ({ api, options, print }, id) {
  if (id !== undefined && !ID.test(id)) throw new DeckError('usage', `crashes: expected the id of a group, received ${JSON.stringify(id)}`)
  if (options.state !== undefined && !STATES.includes(options.state)) {
    throw new DeckError('usage', `--state: expected one of ${STATES.join(', ')}, received ${JSON.stringify(options.state)}`)
  }
  if (id !== undefined) {
    const group = await api.get(`/crashes/${id}`)
    return print(options.json ? JSON.stringify(group, null, 2) : groupText(group))
  }
  const query = new URLSearchParams({ limit: String(PAGE_LIMIT) })
  for (const name of ['state', 'q', 'release', 'since']) if (options[name] !== undefined) query.set(name, options[name])
  const page = await api.get(`/crashes?${query}`)
  print(options.json ? JSON.stringify(page, null, 2) : page.items.length === 0 ? 'no crashes' : groupsText(page.items))
}

/** @param {any[]} groups */
function groupsText (groups) {
  return table(['ID', 'STATE', 'COUNT', 'LAST SEEN', 'RELEASE', 'CAUSE', 'WHAT', 'WHERE'], groups.map((group) => [
    group.id, stateOf(group), group.count, group.lastSeenAt, group.lastRelease, group.cause, shorten(titleOf(group)), group.culprit
  ]), { right: [0, 2] })
}

/** @param {any} group */
function groupText (group) {
  const { latest } = group
  const facts = [
    ['group', `${group.id}, ${stateOf(group)}`],
    ['what', titleOf(group)],
    ['where', group.culprit ?? '-'],
    ['cause', `${group.cause} (${group.kind})`],
    ['seen', `${group.count} times, first ${group.firstSeenAt}, last ${group.lastSeenAt}`],
    ['releases', group.releases.map((/** @type {any} */ { release, count }) => `${release} (${count})`).join(', ') || '-']
  ].map(([name, value]) => `${name.padEnd(10)}${oneLine(String(value))}`)
  return [facts, ...(latest ? sectionsOf(latest) : [])].map((lines) => lines.join('\n')).join('\n\n')
}

/** @param {any} crash @returns {string[][]} */
function sectionsOf ({ at, worker, slot, uptimeMs, code, signal, stack, causes, requests, stderr }) {
  const how = signal ?? (code === null ? 'unknown' : `code ${code}`)
  /** @type {[string, string[]][]} */
  const sections = [
    [`newest: ${at}, worker ${worker} (slot ${slot}), up ${formatExactDuration(uptimeMs)}, ${how}`, String(stack ?? '').split('\n')],
    ...causes.map((/** @type {any} */ cause) => [`caused by ${cause.errorName}: ${cause.errorMessage}`, String(cause.stack ?? '').split('\n').slice(1)]),
    ['requests in flight', requests.map((/** @type {any} */ { method, path, ageMs }) => `${method} ${path} for ${formatExactDuration(ageMs)}`)],
    ['last lines of stderr', stderr]
  ]
  return sections.map(([title, lines]) => [oneLine(title), ...lines.filter(Boolean).map((line) => `  ${oneLine(line)}`)])
    .filter((lines, index) => index === 0 || lines.length > 1)
}

/** @param {any} group */
function titleOf ({ errorName, message, kind }) {
  return errorName === null ? message ?? kind : `${errorName}: ${message}`
}

/** @param {any} group */
function stateOf ({ state, hasReturned, isNewInRelease }) {
  if (state === 'open' && hasReturned) return 'open (returned)'
  return state === 'open' && isNewInRelease ? 'open (new)' : state
}

/** @param {string} text */
function shorten (text) {
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}
