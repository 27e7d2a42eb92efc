import { runningDecks } from '../system/running-decks.js'
import { decksTable, deckView } from './decks-table.js'
import { lookAt } from './look.js'

/**
 * All decks of this user on this machine.
 * @param {{ json?: true }} options @param {import('./program.js').Terminal} terminal
 * @throws {import('../errors.js').DeckError} runtime-dir-unusable
 */
export async function ls ({ json }, { stdout, env, cwd }) {
  const rows = await Promise.all(runningDecks(env).map(async (deck) => ({ ...deck, look: await lookAt(deck.dataDir, { env, cwd }) })))
  if (json) {
    const items = rows.map((row) => ({ ...deckView(row), entry: row.entry, cwd: row.cwd, configFile: row.configFile, version: row.version, startedAt: row.startedAt, pid: row.master.pid, keeperPid: row.keeper?.pid ?? null }))
    stdout.write(`${JSON.stringify(items, null, 2)}\n`)
  } else {
    stdout.write(`${rows.length === 0 ? 'no deck of this user runs on this machine' : decksTable(rows, { now: Date.now(), isElsewhere: true })}\n`)
  }
}
