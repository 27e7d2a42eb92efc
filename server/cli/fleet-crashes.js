import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { formatTable, jsonText } from './output.js'

/** @typedef {import('./commands.js').Context} Context */
/** @typedef {import('../api/fleet-crashes.js').FleetCrashes} FleetCrashes */
/** @typedef {import('../api/fleet-crashes.js').FleetCrashGroup} FleetCrashGroup */

const STATES = Object.freeze({ resolve: 'resolved', mute: 'muted', reopen: 'open' })
const FINGERPRINT = /^v\d{1,3}:[\da-f]{32}$/

/** Prints the crash groups of all members. @param {Context} context */
export async function fleetCrashes ({ api, options, print, tell }) {
  /** @type {FleetCrashes} */
  const found = await api.get('/fleet/crashes')
  if (options.json) return print(jsonText(found))
  tellAsked(found, tell)
  for (const member of found.cut) tell(`${oneLine(member)} has more groups than are shown`)
  print(found.items.length === 0 ? 'no crashes' : groupsText(found.items))
}

/** Makes the command that settles one group on all members that answer. @param {keyof typeof STATES} action */
export function settleFleetCrash (action) {
  return async (/** @type {Context} */ { api, options, print, tell }, /** @type {string | undefined} */ text) => {
    const fingerprint = checkedFingerprint(action, text)
    /** @type {import('../api/fleet-crashes.js').SettledFleetCrash} */
    const settled = await api.post(`/fleet/crashes/${fingerprint}/${action}`)
    if (options.json) print(jsonText(settled))
    else tellAsked(settled, tell)
    const left = [...settled.silent, ...settled.refused.map(({ member }) => member)]
    if (left.length > 0) throw new DeckError('not-possible', `${STATES[action]} on ${settled.members.length} members; unknown on ${left.join(', ')}`)
    if (!options.json) print(oneLine(`${STATES[action]} on ${settled.members.map(({ member }) => member).join(', ')}`))
  }
}

/** @param {string} action for the message @param {string | undefined} text @returns {string} @throws {DeckError} usage */
function checkedFingerprint (action, text) {
  if (text !== undefined && FINGERPRINT.test(text)) return text
  const received = text === undefined ? 'nothing' : JSON.stringify(text)
  throw new DeckError('usage', `fleet ${action}: expected the fingerprint of a group, as "clusterdeck fleet crashes" prints it, received ${received}`)
}

/** @param {FleetCrashGroup[]} groups */
function groupsText (groups) {
  return formatTable(['STATE', 'COUNT', 'LAST SEEN', 'WHAT', 'WHERE', 'MEMBERS', 'FINGERPRINT'], groups.map((group) => [
    group.state, group.count, group.lastSeenAt, titleOf(group), group.culprit, group.members.map(memberText).join(', '), group.fingerprint
  ]), { right: [1] })
}

/** @param {Pick<FleetCrashes, 'asked' | 'answered' | 'silent' | 'refused'>} found @param {(text: string) => void} tell */
export function tellAsked ({ asked, answered, silent, refused }, tell) {
  if (answered < asked) tell(`${answered} of ${asked} answered`)
  if (silent.length > 0) tell(oneLine(`silent: ${silent.join(', ')}`))
  for (const { member, problem } of refused) tell(oneLine(`${member}: ${problem}`))
}

/** @param {{ member: string, count: number }} one */
function memberText ({ member, count }) {
  return `${member} (${count})`
}

/** @param {FleetCrashGroup} group */
function titleOf ({ errorName, message, kind }) {
  const title = errorName === null ? message ?? kind : `${errorName}: ${message}`
  return title.length > 80 ? `${title.slice(0, 79)}…` : title
}
