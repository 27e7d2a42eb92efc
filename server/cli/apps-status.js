import { DeckError } from '../errors.js'
import { runningDeckAt } from '../system/running-decks.js'
import { decksTable, deckView } from './decks-table.js'
import { isRunning, lookAt } from './look.js'

/** @typedef {import('./apps.js').Apps} Apps */
/** @typedef {import('./look.js').Place} Place */

/**
 * How each of several apps is.
 * @param {Apps} apps @param {{ json?: true }} options @param {import('./program.js').Terminal} terminal
 * @throws {DeckError} no-master: none of them runs
 */
export async function appsStatus ({ file, apps }, { json }, { stdout, env, cwd }) {
  const rows = await rowsOf([...apps.values()], { env, cwd })
  stdout.write(`${json ? JSON.stringify(rows.map((row) => ({ ...deckView(row), dependsOn: row.dependsOn })), null, 2) : decksTable(rows, { now: Date.now() })}\n`)
  if (rows.every(({ look }) => look === null)) throw new DeckError('no-master', `none of the apps of ${file} runs`)
}

/**
 * @template {{ name: string, dataDir: string }} T
 * @param {T[]} apps @param {Place} place
 */
export async function rowsOf (apps, place) {
  return await Promise.all(apps.map(async (app) => ({
    ...app,
    adminUrl: runningDeckAt(app.dataDir, place.env)?.adminUrl ?? null,
    look: await isRunning(app.dataDir, place) ? await lookAt(app.dataDir, place) : null
  })))
}
