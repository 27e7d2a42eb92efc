import { runningDecks } from '../system/running-decks.js'
import { decksTable, deckView } from './decks-table.js'
import { readDeckStatus } from './deck-status.js'
import { jsonText } from './output.js'

/**
 * Lists all decks of this user on this machine.
 * @param {{ json?: true }} options @param {import('./program.js').Terminal} terminal
 * @throws {import('../errors.js').DeckError} runtime-dir-unusable
 */
export async function lsCommand ({ json }, { stdout, env, cwd }) {
  const rows = await Promise.all(runningDecks(env).map(async (deck) => ({ ...deck, answer: await readDeckStatus(deck.dataDir, { env, cwd }) })))
  if (json) {
    const items = rows.map((row) => {
      const { entry, cwd, configFile, version, startedAt, master, keeper } = row
      return { ...deckView(row), entry, cwd, configFile, version, startedAt, pid: master.pid, keeperPid: keeper?.pid ?? null }
    })
    stdout.write(`${jsonText(items)}\n`)
  } else {
    stdout.write(`${rows.length === 0 ? 'no deck of this user runs on this machine' : decksTable(rows, { now: Date.now(), hasFolders: true })}\n`)
  }
}
