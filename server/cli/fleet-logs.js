import { oneLine } from '../system/one-line.js'
import { checkedCount } from './count.js'
import { tellAsked } from './fleet-crashes.js'
import { NO_TIME } from './logs.js'
import { jsonText } from './output.js'

/** @typedef {import('./commands.js').Context} Context */

const MAX_LINES = 200
/** The master checks the values of these options. @type {readonly import('./commands.js').TextOption[]} */
const FILTERS = ['q', 'level', 'stream', 'since', 'until', 'around']

/** Prints the newest lines of all members, or of one. @param {Context} context @param {string} [member] */
export async function fleetLogs ({ api, options, print, tell, isTerminal }, member) {
  const query = new URLSearchParams({ lines: String(checkedCount('--lines', options.lines ?? '100', { max: MAX_LINES })) })
  if (member !== undefined) query.set('member', member)
  for (const name of FILTERS) if (options[name] !== undefined) query.set(name, options[name])
  /** @type {import('../api/fleet-logs.js').FleetLogLines} */
  const found = await api.get(`/fleet/logs?${query}`)
  if (options.json) return print(jsonText(found))
  tellAsked(found, tell)
  for (const name of found.cut) tell(`${oneLine(name)} searched only the newest part of its files`)
  if (found.items.length === 0) tell('no line matches')
  for (const { member: name, slot, stream, text, arrivedAt } of found.items) {
    print(`${oneLine(arrivedAt ?? NO_TIME)} ${oneLine(name)} ${Number(slot)} ${stream} | ${isTerminal ? oneLine(text) : text}`)
  }
}
