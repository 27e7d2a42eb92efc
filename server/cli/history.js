import { DeckError } from '../errors.js'
import { oneLine } from '../system/one-line.js'
import { checkedCount } from './count.js'
import { eventsText } from './output.js'

/** @typedef {import('./commands.js').Context} Context */

const DEFAULT_LIMIT = 50
const PAGE_LIMIT = 1000
/** The master checks the values of these options. @type {readonly import('./commands.js').TextOption[]} */
const FILTERS = ['type', 'cause', 'slot', 'worker', 'release', 'rollout', 'since', 'until', 'q']

/** @param {Context} context */
export async function historyCommand (context) {
  if (context.options.host) throw new DeckError('usage', '--host: expected without an app, received both')
  await printEvents(context, '/events')
}

/** Prints the host's own history. @param {Printing} context */
export async function hostHistory (context) {
  await printEvents(context, '/host/events')
}

/** @typedef {Pick<Context, 'api' | 'options' | 'answer' | 'write' | 'isTerminal'>} Printing */

/** @param {Printing} context @param {string} path */
async function printEvents (context, path) {
  const { api, options, answer } = context
  if (options.csv && options.json) throw new DeckError('usage', '--csv: expected without --json, received both')
  if (options.csv) return await writeCsv(context, path)
  const wanted = checkedLimit(options.limit ?? String(DEFAULT_LIMIT))
  /** @type {import('../api/events.js').Event[]} */
  const items = []
  /** @type {string | null} */
  let next = null
  do {
    const query = new URLSearchParams({ limit: String(wanted - items.length), ...filtersOf(options), ...(next === null ? {} : { cursor: next }) })
    const page = await api.get(`${path}?${query}`)
    items.push(...page.items)
    next = page.next
  } while (next !== null && items.length < wanted)
  answer({ items, next }, () => items.length === 0 ? 'no events' : eventsText(items))
}

/** Writes all that matches, unless a limit is given. @param {Printing} context @param {string} path */
async function writeCsv ({ api, options, write, isTerminal }, path) {
  const query = new URLSearchParams(filtersOf(options))
  if (options.limit !== undefined) query.set('limit', String(checkedLimit(options.limit)))
  const file = api.readText(`${path}?${query}`, 'text/csv')
  for await (const text of isTerminal ? linesForTerminal(file) : file) await write(text)
}

/** Yields a line at a time, without control characters. @param {AsyncIterable<string>} texts */
async function * linesForTerminal (texts) {
  let rest = ''
  for await (const text of texts) {
    const lines = (rest + text).split(/\r?\n/)
    rest = lines.pop() ?? ''
    for (const line of lines) yield `${oneLine(line)}\n`
  }
}

/** @param {import('./commands.js').Options} options @returns {Record<string, string>} */
function filtersOf (options) {
  return Object.fromEntries(FILTERS.filter((name) => options[name] !== undefined).map((name) => [name, String(options[name])]))
}

/** @param {string} limit @returns {number} @throws {DeckError} usage */
export function checkedLimit (limit) {
  return checkedCount('--limit', limit, { max: PAGE_LIMIT })
}
