import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { tellAsked } from './fleet-crashes.js'
import { jsonText } from './output.js'

/** @typedef {import('./commands.js').Context} Context */

const MAX_LINES = 200
/** The master checks the values of these options. @type {readonly import('./commands.js').TextOption[]} */
const FILTERS = ['q', 'level', 'stream', 'since', 'until', 'around']
/** Stands for an unknown time, and is as wide as one. */
const NO_TIME = '-'.padEnd('2026-01-31T12:00:00.000Z'.length)

/** Prints the newest lines of all members, or of one. @param {Context} context @param {string} [member] */
export async function fleetLogs ({ api, options, print, tell, isTerminal }, member) {
  const query = new URLSearchParams({ lines: checkedLines(options.lines ?? '100') })
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

/** @param {string} text */
function checkedLines (text) {
  if (/^\d{1,3}$/.test(text) && Number(text) >= 1 && Number(text) <= MAX_LINES) return text
  throw new DeckError('usage', `--lines: expected an integer from 1 to ${MAX_LINES}, received ${JSON.stringify(text)}`)
}
