import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { table } from './output.js'

/** @typedef {import('./commands.js').Context} Context */

const STATES = Object.freeze({ resolve: 'resolved', mute: 'muted', reopen: 'open' })
const FINGERPRINT = /^v\d{1,3}:[\da-f]{32}$/

/** The groups of all members. @param {Context} context */
export async function fleetCrashes ({ api, options, print, tell }) {
  const found = await api.get('/fleet/crashes')
  if (options.json) return print(JSON.stringify(found, null, 2))
  tellAsked(found, tell)
  for (const member of found.cut) tell(`${oneLine(member)} has more groups than are shown`)
  print(found.items.length === 0 ? 'no crashes' : groupsText(found.items))
}

/** One group, on all members that answer. @param {keyof typeof STATES} action */
export function settleFleetCrash (action) {
  return async (/** @type {Context} */ { api, options, print, tell }, /** @type {string | undefined} */ fingerprint) => {
    if (fingerprint === undefined || !FINGERPRINT.test(fingerprint)) throw new DeckError('usage', `fleet ${action}: expected the fingerprint of a group, as "clusterdeck fleet crashes" prints it, received ${fingerprint === undefined ? 'nothing' : JSON.stringify(fingerprint)}`)
    const settled = await api.post(`/fleet/crashes/${fingerprint}/${action}`)
    if (options.json) print(JSON.stringify(settled, null, 2))
    else tellAsked(settled, tell)
    const left = [...settled.silent, ...settled.refused.map((/** @type {any} */ { member }) => member)]
    if (left.length > 0) throw new DeckError('not-possible', `${STATES[action]} on ${settled.members.length} members; not on ${left.join(', ')}, if they have it`)
    if (!options.json) print(oneLine(`${STATES[action]} on ${settled.members.map((/** @type {any} */ { member }) => member).join(', ')}`))
  }
}

/** @param {any[]} groups */
function groupsText (groups) {
  return table(['STATE', 'COUNT', 'LAST SEEN', 'WHAT', 'WHERE', 'MEMBERS', 'FINGERPRINT'], groups.map((group) => [
    group.state, group.count, group.lastSeenAt, titleOf(group), group.culprit, group.members.map(memberText).join(', '), group.fingerprint
  ]), { right: [1] })
}

/** @param {{ asked: number, answered: number, silent: string[], refused: { member: string, problem: string }[] }} found @param {(text: string) => void} tell */
function tellAsked ({ asked, answered, silent, refused }, tell) {
  if (answered < asked) tell(`${answered} of ${asked} answered`)
  if (silent.length > 0) tell(oneLine(`silent: ${silent.join(', ')}`))
  for (const { member, problem } of refused) tell(oneLine(`${member}: ${problem}`))
}

/** @param {{ member: string, count: number }} one */
function memberText ({ member, count }) {
  return `${member} (${count})`
}

/** @param {any} group */
function titleOf ({ errorName, message, kind }) {
  const title = errorName === null ? message ?? kind : `${errorName}: ${message}`
  return title.length > 80 ? `${title.slice(0, 79)}…` : title
}
