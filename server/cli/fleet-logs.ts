import { oneLine } from '../system/one-line.ts'
import { tellAsked } from './fleet-crashes.ts'
import { NO_TIME } from './logs.ts'
import { jsonText } from './output.ts'
import { checkedCount, queryOf } from './usage.ts'
import type { Context } from './commands.ts'
import type { FleetLogLines } from '../api/fleet-logs.ts'

const MAX_LINES = 200

/** Prints the newest lines of all members, or of one. */
export async function fleetLogs ({ api, options, print, tell, isTerminal }: Context, member?: string) {
  const lines = checkedCount('--lines', options.lines ?? '100', { max: MAX_LINES })
  const query = queryOf(options, ['q', 'level', 'stream', 'since', 'until', 'around'], { lines, member })
  const found: FleetLogLines = await api.get(`/fleet/logs?${query}`)
  if (options.json) return print(jsonText(found))
  tellAsked(found, tell)
  for (const name of found.cut) tell(`${oneLine(name)} searched only the newest part of its files`)
  if (found.items.length === 0) tell('no line matches')
  for (const { member: name, slot, stream, text, arrivedAt } of found.items) {
    print(
      `${oneLine(arrivedAt ?? NO_TIME)} ${oneLine(name)} ${Number(slot)} ${stream} | ${
        isTerminal ? oneLine(text) : text
      }`
    )
  }
}
