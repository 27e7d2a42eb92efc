import { DeckError } from '../errors.js'
import { runningDeckAt } from '../system/running-decks.js'
import { decksTable, deckView } from './decks-table.js'
import { isRunning, readDeckStatus } from './deck-status.js'
import { jsonText } from './output.js'

/** @typedef {import('./apps.js').Apps} Apps */
/** @typedef {import('./deck-status.js').Place} Place */

/**
 * Prints the state of several apps.
 * @param {Apps} apps @param {{ json?: true }} options @param {import('./program.js').Terminal} terminal
 * @throws {DeckError} no-master: none of them runs
 */
export async function appsStatus ({ file, apps }, { json }, { stdout, env, cwd }) {
  const rows = await rowsOf([...apps.values()], { env, cwd })
  const items = rows.map((row) => ({ ...deckView(row), dependsOn: row.dependsOn }))
  stdout.write(`${json ? jsonText(items) : decksTable(rows, { now: Date.now() })}\n`)
  if (rows.every(({ answer }) => answer === null)) throw new DeckError('no-master', `none of the apps of ${file} runs`)
}

/**
 * @template {{ name: string, dataDir: string }} T
 * @param {T[]} apps @param {Place} place
 */
async function rowsOf (apps, place) {
  return await Promise.all(apps.map(async (app) => ({
    ...app,
    adminUrl: runningDeckAt(app.dataDir, place.env)?.adminUrl ?? null,
    answer: await isRunning(app.dataDir, place) ? await readDeckStatus(app.dataDir, place) : null
  })))
}
